// A look at the page of a line in each of its states, with invented numbers: for who
// prepares a sale. Nothing is asked of the server, and nothing is kept.

import { $, h } from './dom';
import { t } from './lang';
import { before, type Mine, type Placed } from './place';
import type { Line } from './wire';

/** Scene is the page in one state, as one fan sees it. */
export interface Scene {
  frame: Line; // what everybody is told
  mine?: Mine;
  problem?: { code: string };
}

const minutes = (n: number) => new Date(Date.now() + n * 60000).toISOString();

const frame = (state: Line['state'], serving: number, more: Partial<Line> = {}): Line => ({
  n: 1, prev: 0, at: Date.now(), state, serving, rate: 4000, pace: 4000, slowed: null, waiting: 61234, inside: 18200, seatsLeft: 21034, eta: { slow: 3650, fast: 4000 },
  joinsAt: minutes(-120), closesAt: minutes(-20), opensAt: minutes(-15), draw: { state: 'drawn', tickets: 50000 },
  since: 1, poll_after_ms: 5000, ...more,
});

const DRAW: Partial<Line> = { closesAt: minutes(25), opensAt: minutes(30), draw: { state: 'announced', tickets: 41200 } };
const at = (number: number, serving: number): Placed => ({ is: 'placed', ticket: '', number, ahead: before(number, serving), from: 31415 });

/** SCENES are the states, by the names they have in the address. */
export const SCENES: Record<keyof typeof t.preview.scenes, Scene> = {
  soon: { frame: frame('draw', 0, { ...DRAW, joinsAt: minutes(10), waiting: 0 }) },
  join: { frame: frame('draw', 0, DRAW) },
  code: { frame: frame('draw', 0, { ...DRAW, asks: 'code' }) },
  drawing: { frame: frame('draw', 0, DRAW), mine: { is: 'listed', ticket: '' } },
  drawn: { frame: frame('closed', 0, { opensAt: minutes(5) }), mine: at(31415, 0) },
  far: { frame: frame('open', 9000), mine: at(31415, 9000) },
  near: { frame: frame('open', 31295), mine: at(31415, 31295) },
  paused: { frame: frame('paused', 20000), mine: at(31415, 20000) },
  slowed: { frame: frame('open', 20000, { slowed: 'checkout', eta: { slow: 400, fast: 2000 } }), mine: at(31415, 20000) },
  stalled: { frame: frame('open', 20000, { eta: { slow: 0, fast: 4000 } }), mine: at(31415, 20000) },
  turn: { frame: frame('open', 31500), mine: { is: 'inside', ticket: '', until: minutes(5) } },
  signin: { frame: frame('open', 31500), mine: at(31415, 31415), problem: { code: 'token_missing' } },
  ended: { frame: frame('open', 39000), mine: { is: 'out', why: 'spent' } },
  over: { frame: frame('over', 40000, { seatsLeft: 0 }), mine: at(51415, 40000) },
  missing: { frame: frame('open', 20000), mine: { ...at(51415, 20000), leftOut: true } },
  offline: { frame: frame('open', 20000), mine: at(31415, 20000), problem: { code: 'offline' } },
};

/** preview has the page show the scene of this name, or the list of them, and do nothing else. */
export function preview(name: string, show: (scene: Scene) => void): void {
  const { preview: words } = t;
  const known = Object.hasOwn(SCENES, name) ? name as keyof typeof SCENES : null;
  document.body.prepend(h('aside', { id: 'preview' }, words.note, ' ', h('a', { href: '?preview' }, words.all)));
  $('name').textContent = words.name;
  $('where').textContent = words.venue;
  document.addEventListener('click', (e) => {
    const inert = (e.target as Element).closest('main button, main a:not(#scenes a)');
    if (!inert) return;
    e.preventDefault();
    e.stopImmediatePropagation();
  }, true);
  if (known) show(SCENES[known]);
  else $('news').textContent = words.which;
  $('enter').removeAttribute('href');
  const list = h('ul', { id: 'scenes' }, ...Object.entries(words.scenes).map(([key, says]) =>
    h('li', {}, h('a', { href: `?preview=${key}`, 'aria-current': key === name && 'page' }, says))));
  document.querySelector('main')?.append(h('nav', { 'aria-label': words.states }, list));
  document.title = words.title(known ? words.scenes[known] : words.none);
}
