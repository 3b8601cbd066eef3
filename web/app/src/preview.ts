// A look at the page of a line in each of its states, with invented numbers: for who
// prepares a sale. Nothing is asked of the server, and nothing is kept.

import { $, h } from './dom';
import type { Mine, Placed } from './place';
import type { Line } from './wire';

/** Scene is the page in one state, as one fan sees it. */
export interface Scene {
  says: string;
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
const at = (number: number, serving: number): Placed => ({ is: 'placed', ticket: '', number, ahead: number - serving, from: 31415 });

/** SCENES are the states, by the names they have in the address. */
export const SCENES: Record<string, Scene> = {
  soon: { says: 'Before anybody can join', frame: frame('draw', 0, { ...DRAW, joinsAt: minutes(10), waiting: 0 }) },
  join: { says: 'Anybody can join the draw', frame: frame('draw', 0, DRAW) },
  code: { says: 'Who joins needs a code', frame: frame('draw', 0, { ...DRAW, asks: 'code' }) },
  drawing: { says: 'Takes part in the draw', frame: frame('draw', 0, DRAW), mine: { is: 'listed', ticket: '' } },
  drawn: { says: 'The draw is held, the line not open', frame: frame('closed', 0, { opensAt: minutes(5) }), mine: at(31415, 0) },
  far: { says: 'Far back in the line', frame: frame('open', 9000), mine: at(31415, 9000) },
  near: { says: 'Nearly there', frame: frame('open', 31295), mine: at(31415, 31295) },
  paused: { says: 'Nobody is let in for the moment', frame: frame('paused', 20000), mine: at(31415, 20000) },
  slowed: { says: 'It goes slower than it should', frame: frame('open', 20000, { slowed: 'checkout', eta: { slow: 400, fast: 2000 } }), mine: at(31415, 20000) },
  stalled: { says: 'Nobody was called for a minute', frame: frame('open', 20000, { eta: { slow: 0, fast: 4000 } }), mine: at(31415, 20000) },
  turn: { says: 'It is the fan’s turn', frame: frame('open', 31500), mine: { is: 'inside', ticket: '', until: minutes(5) } },
  signin: { says: 'The fan’s turn, and the session is over', frame: frame('open', 31500), mine: at(31415, 31415), problem: { code: 'token_missing' } },
  ended: { says: 'The time to choose seats is over', frame: frame('open', 39000), mine: { is: 'out', why: 'spent' } },
  over: { says: 'Sold out, or ended', frame: frame('over', 40000, { seatsLeft: 0 }), mine: at(51415, 40000) },
  missing: { says: 'The ticket is missing on the list of the draw', frame: frame('open', 20000), mine: { ...at(51415, 20000), leftOut: true } },
  offline: { says: 'The connection is gone', frame: frame('open', 20000), mine: at(31415, 20000), problem: { code: 'offline' } },
};

const NOTE = 'Preview: all of this is invented. Nobody waits here, nothing can be joined or bought, and no place is given.';

/** preview has the page show the scene of this name, or the list of them, and do nothing else. */
export function preview(name: string, show: (scene: Scene) => void): void {
  const scene = SCENES[name];
  document.body.prepend(h('p', { id: 'preview', role: 'note' }, NOTE, ' ', h('a', { href: '?preview' }, 'All states')));
  $('name').textContent = 'An invented evening';
  $('where').textContent = 'A house that does not exist';
  document.addEventListener('click', (e) => {
    const inert = (e.target as Element).closest('main button, main a:not(#scenes a)');
    if (!inert) return;
    e.preventDefault();
    e.stopImmediatePropagation();
  }, true);
  if (scene) show(scene);
  else $('news').textContent = 'What fans see in each state of the line:';
  $('enter').removeAttribute('href');
  const list = h('ul', { id: 'scenes' }, ...Object.entries(SCENES).map(([key, { says }]) =>
    h('li', {}, h('a', { href: `?preview=${key}`, 'aria-current': key === name && 'page' }, says))));
  document.querySelector('main')?.append(h('nav', { 'aria-label': 'States of this preview' }, list));
  document.title = `Preview: ${scene?.says ?? 'the states of a line'}`;
}
