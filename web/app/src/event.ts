// The page of one event: everything is put together here.

import { Api, Problem } from './api';
import { Cart, type Told } from './cart';
import { ACCESSIBLE, Chart } from './chart';
import { Clock, Countdown, mmss } from './clock';
import { $, h, swatch } from './dom';
import { Feed, type Mode } from './feed';
import { toLine } from './line';
import { areaWords, describe, SeatList } from './list';
import { SeatMap } from './map';
import { Panel } from './panel';
import { announce, note, type Kind } from './say';
import { Session } from './session';
import { State } from './state';
import type * as wire from './wire';
import { CANCELLED, money, remaining, sentence, UNHELD, when } from './words';

const MODES: Record<Mode, string> = {
  connecting: 'Connecting…', live: 'Live', polling: 'Updated now and then', waiting: 'Reconnecting…', late: 'Updates may be late',
  unheld: 'Only sold seats are shown: yours are confirmed at checkout',
  guarded: 'Sign in to see which seats are free',
  outside: 'Which seats are free is shown to who is let in',
};

const clock = new Clock();
const api = new Api(clock, new Session());
const id = decodeURIComponent(location.pathname.split('/')[2] ?? '');

async function main(): Promise<void> {
  try {
    const event = await details();
    const cart = new Cart(api, event);
    header(event);
    await house(event, cart, new State(await chart(event.chart)));
  } catch (err) {
    const p = err instanceof Problem ? err : { code: 'internal' };
    const says = p.code === 'unknown_event' ? [h('h1', {}, sentence(p))] : [h('h1', {}, 'This page could not be loaded'), h('p', {}, sentence(p))];
    $('fatal').replaceChildren(...says, h('p', {}, h('a', { href: '/' }, 'All events'), ' · ', h('a', { href: '' }, 'Try again')));
    $('fatal').hidden = false;
    if (!(err instanceof Problem)) throw err;
  }
}

/** Holds follows whether bookings hold their seats. */
class Holds {
  #event: wire.Event; // whose holds it keeps true
  #turned: () => void; // is called when that has changed
  #asking = false;

  constructor(event: wire.Event, turned: () => void) {
    this.#event = event;
    this.#turned = turned;
  }

  /** heard judges what the feed says. All but the word of a stream is a reason to ask. */
  heard(mode: Mode): void {
    if (mode === 'unheld') this.#are(false);
    else if (mode === 'late' && this.#event.holds || (mode === 'live' || mode === 'polling') && !this.#event.holds) this.#ask();
  }

  async #ask(): Promise<void> {
    if (this.#asking) return;
    this.#asking = true;
    const now = await details().catch(() => this.#event);
    this.#asking = false;
    this.#are(now.holds);
  }

  #are(held: boolean): void {
    if (held === this.#event.holds) return;
    this.#event.holds = held;
    this.#turned();
  }
}

/** details is the event as it is sold now. */
async function details(): Promise<wire.Event> {
  const event = await api.get<wire.Event>(`/v1/events/${encodeURIComponent(id)}`);
  return { ...event, holds: event.holds ?? true };
}

/** chart fetches and flattens a chart. */
async function chart(sha: string): Promise<Chart> {
  return new Chart(sha, await api.get(`/v1/charts/${sha}.json`));
}

/** house builds map, list, panel and feed around one state. */
async function house(event: wire.Event, cart: Cart, first: State): Promise<void> {
  let state = first;
  const pick = (i: number) => choose(state, cart, i);
  const map = new SeatMap($<HTMLCanvasElement>('map'), {
    seat: pick,
    area: (area) => { document.getElementById(`area-${area}`)?.scrollIntoView({ block: 'nearest' }); document.querySelector<HTMLElement>(`#area-${CSS.escape(area)} button:last-child`)?.focus(); },
    hover: (what, px, py) => tooltip(what === null ? null : typeof what === 'number' ? describe(state, what, cart, event)
      : [what.name, areaWords(state.areas.get(what.id) ?? 0)], px, py),
    here: (section) => here(section && `${section.name} · ${remaining(state.free[section.index], state.held[section.index], 'free')}`),
  });
  const list = new SeatList($('list'), { cart, event, pick });
  const panel = new Panel($('panel'), { api, cart, event, clock, reveal: (i) => { views('map', list); map.reveal(i); } });
  const show = (next: State) => {
    state = next;
    cart.on(state);
    map.show(state);
    list.show(state);
    panel.on(state);
    legend(event, state);
    $('key-wheelchair').hidden = !state.chart.flags.some((f) => f & ACCESSIBLE);
  };
  show(first);
  cart.addEventListener('change', () => map.looks(cart.picked, cart.mine));
  told(cart);
  controls(map, list);
  opening(event, panel);

  const apply = (changed: number[], flash: boolean) => {
    map.changed(changed, flash);
    list.update();
    cart.seen(changed);
    legend(event, state);
    if (event.areas.length && cart.stage === 'picking') panel.draw();
  };
  const holds = new Holds(event, () => panel.draw());
  let inside = true; // what the map says; whoever holds seats pays for them first
  let resumed = false;
  const leave = () => { if (!inside && resumed && cart.stage === 'picking') toLine(event.id); };
  cart.addEventListener('change', leave);
  const feed = new Feed({
    event: event.id, chart: event.chart, guarded: event.guarded, api, clock,
    sink: {
      snapshot: (frame) => apply(state.snapshot(frame), false),
      delta: (frame) => apply(state.delta(frame), true),
      chart: async (sha) => {
        const [next, now] = await Promise.all([chart(sha), details()]);
        if (now.chart !== sha) throw new Error('the event is on another chart'); // of two servers one is behind: ask again
        Object.assign(event, now); // its prices and areas are that chart's
        show(new State(next));
      },
      mode: (mode) => {
        holds.heard(mode);
        inside = mode !== 'outside';
        leave();
        const shown = mode === 'late' && !event.holds ? 'unheld' : mode; // a poll does not say why it is late
        $('live').dataset.mode = shown;
        $('live-text').textContent = MODES[shown];
      },
      heard: () => { $('asof').textContent = `as of ${new Date(clock.now()).toLocaleTimeString()}`; },
    },
  });
  feed.start(event.mode === 'hot');
  await cart.resume();
  resumed = true;
  leave();
}

function header(event: wire.Event): void {
  document.title = `${event.name} · Seatcast`;
  $('name').textContent = event.name;
  $('where').textContent = `${event.venue} · ${when(event.startsAt, event.zone)}`;
}

/** legend lists categories with prices, all in, and what is free, made once and then updated. */
function legend(event: wire.Event, state: State): void {
  const box = $('legend');
  if (box.dataset.chart !== state.chart.sha) {
    box.dataset.chart = state.chart.sha;
    const priced = (amount?: number) => (amount === undefined ? '–' : money(amount, event));
    const prices = new Map(event.prices.map((p) => [p.category, p.allIn ?? p.amount]));
    box.replaceChildren(...state.chart.categories.map((c) => h('li', {}, swatch(c.color), h('span', {}, c.name),
      h('strong', {}, priced(prices.get(c.name))), h('small', {}))));
  }
  state.chart.categories.forEach((c, n) => {
    const places = state.chart.areas.filter((a) => a.category === c.name).reduce((sum, a) => sum + (state.areas.get(a.id) ?? 0), 0);
    box.children[n].lastElementChild!.textContent = remaining(state.freeByCategory[n] + places, state.heldByCategory[n], 'left');
  });
}

function choose(state: State, cart: Cart, i: number): void {
  const answer = cart.toggle(i);
  const place = state.chart.place(i);
  const says = {
    added: () => announce(`${place} chosen`),
    removed: () => announce(`${place} taken out`),
    full: () => note('That is as many as one order may hold. Take one out to choose another.', 'bad'),
    'not free': () => note(`${place} is not free.`),
    busy: () => { if (cart.stage !== 'picking') note(`You have ${cart.unheld ? 'an order' : 'seats on hold'} already: pay or give back to choose others.`); },
  };
  says[answer]();
}

/** told says what became of the order. */
function told(cart: Cart): void {
  cart.addEventListener('problem', (e) => note(sentence(e.detail), 'bad'));
  cart.addEventListener('told', (e) => {
    const says: Record<Told['what'], [text: string, kind: Kind]> = {
      held: cart.unheld ? [UNHELD, 'plain'] : ['Your seats are held. Pay before the clock runs out.', 'good'],
      extended: ['You have more time.', 'good'],
      sold: ['Paid. The seats are yours.', 'good'],
      asked: ['Your bank wants you to approve this payment.', 'plain'],
      declined: [`The card was declined. ${cart.unheld ? 'Try' : 'Your seats are still held: try'} another card.`, 'bad'],
    };
    note(...says[e.detail.what]);
  });
}

function tooltip(lines: string[] | null, px: number, py: number): void {
  const tip = $('tip');
  tip.hidden = !lines;
  if (!lines) return;
  tip.replaceChildren(...lines.map((l, n) => h(n ? 'div' : 'strong', {}, l)));
  const width = $('map').clientWidth;
  tip.style.left = `${Math.min(Math.max(8, px + 14), Math.max(8, width - tip.offsetWidth - 8))}px`;
  tip.style.top = `${py > tip.offsetHeight + 24 ? py - tip.offsetHeight - 14 : py + 20}px`;
}

/** here names the part of the house in the middle of the map. */
function here(text: string | null): void {
  const el = $('here');
  if (el.textContent === (text ?? '')) return;
  el.textContent = text ?? '';
  el.hidden = !text;
}

function views(which: 'map' | 'list', list: SeatList): void {
  for (const name of ['map', 'list']) {
    $(`${name}-view`).hidden = name !== which;
    $(`show-${name}`).setAttribute('aria-pressed', String(name === which));
  }
  $('list').hidden = which !== 'list';
  if (which === 'list') list.update();
}

function controls(map: SeatMap, list: SeatList): void {
  $('zoom-in').onclick = () => map.zoom(1.7);
  $('zoom-out').onclick = () => map.zoom(1 / 1.7);
  $('zoom-fit').onclick = () => map.fit();
  $('show-map').onclick = () => views('map', list);
  $('show-list').onclick = () => views('list', list);
}

/** opening counts down to the sale and asks again when its time has come. */
function opening(event: wire.Event, panel: Panel): void {
  if (event.open) return;
  const banner = $('banner');
  banner.hidden = false;
  if (event.state === 'cancelled') {
    banner.textContent = CANCELLED;
    $('legend').hidden = $('stage').hidden = true; // nothing is for sale, and nothing sold out
    return;
  }
  const ask = async (pause: number): Promise<void> => {
    const fresh = await details().catch(() => event);
    Object.assign(event, { open: fresh.open, opensAt: fresh.opensAt });
    if (!event.open) {
      setTimeout(ask, pause * (1 + Math.random()), pause);
      return;
    }
    banner.hidden = true;
    note('The sale is open.', 'good');
    panel.draw();
  };
  if (Date.parse(event.opensAt) <= clock.now()) { // whoever sells it opens it by hand, or never
    banner.textContent = 'This event is not on sale.';
    ask(15000);
    return;
  }
  new Countdown(clock, (left) => {
    banner.textContent = left > 3600000 ? `On sale ${when(event.opensAt, event.zone)}` : `The sale opens in ${mmss(left)}`;
    if (left === 0) ask(2000);
  }).until(Date.parse(event.opensAt));
}

main();
