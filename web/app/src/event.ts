// The page of one event: everything is put together here.

import { Api, Problem } from './api';
import { Cart, type Told } from './cart';
import { Clock, Countdown, mmss } from './clock';
import { $, h } from './dom';
import { details, House } from './house';
import { Inside } from './inside';
import { kept } from './kept';
import { t } from './lang';
import * as line from './line';
import { translate } from './page';
import { Panel } from './panel';
import { Speaker, type Kind } from './say';
import { Session } from './session';
import { Sheet } from './sheet';
import { Tabs } from './tabs';
import type { Aim } from './view';
import type * as wire from './wire';
import { declineWords, sentence, when } from './words';

translate(); // before anything is said

const clock = new Clock();
const session = new Session();
const api = new Api(clock, session, line);
const say = new Speaker();
const id = decodeURIComponent(location.pathname.split('/')[2] ?? '');

async function main(): Promise<void> {
  document.body.append(say.notes, say.announcer);
  try {
    await open(await details(api, id, true));
  } catch (err) {
    const p = err instanceof Problem ? err : { code: 'internal' };
    const says = p.code === 'unknown_event' ? [h('h1', {}, sentence(p))] : [h('h1', {}, t.page.broken), h('p', {}, sentence(p))];
    $('fatal').replaceChildren(...says, h('p', {}, h('a', { href: '/' }, t.page.allEvents), ' · ', h('a', { href: '' }, t.page.again)));
    for (const el of [$('name'), $('where'), $('stage'), $('side')]) el.hidden = true;
    $('fatal').hidden = false;
    if (!(err instanceof Problem)) throw err;
  }
}

/** open builds the house and the panel around one cart. */
async function open(event: wire.Event): Promise<void> {
  header(event);
  const cart = new Cart(api, event, sessionStorage);
  const tabs = new Tabs(event.id, cart, () => session.account);
  const choice = new KeptChoice(event.id, cart);
  const sheet = new Sheet(document.querySelector<HTMLElement>('.side')!, cart, () => {
    say.note(t.event.back);
    $('map').focus();
  });
  const panel = new Panel($('panel'), { api, cart, event, clock, say, ticking: sheet.clock, reveal: (i) => house.reveal(i) });
  let inside = true; // what the map says; whoever holds seats pays for them first
  let resumed = false;
  const leave = () => { if (!inside && resumed && cart.stage === 'picking') line.toLine(event.id); };
  cart.addEventListener('change', leave);
  const house = new House({
    event, cart, api, clock, say, stage: $('stage'), legend: $('legend'), live: $('live'),
    watcher: {
      area: (area) => { document.getElementById(`area-${area}`)?.scrollIntoView({ block: 'nearest' }); document.querySelector<HTMLElement>(`#area-${CSS.escape(area)} button:last-child`)?.focus(); },
      chart: (state) => panel.on(state),
      changed: () => {
        choice.known();
        if (event.areas.length && cart.stage === 'picking') panel.draw();
      },
      turned: () => panel.draw(),
      mode: (mode) => {
        inside = mode !== 'outside';
        leave();
      },
    },
  });
  told(cart, (seats) => house.state.chart.places(seats));
  opening(event, panel);
  await house.open();
  keepView(event.id, house);
  const { last } = tabs;
  if (await cart.resume(last)) tabs.forget(last);
  new Inside({ event, cart, api, clock, say });
  resumed = true;
  leave();
  choice.resumed();
  sheet.resumed();
  tabs.ask();
}

/** KeptChoice keeps what is chosen for a reload of this tab. */
class KeptChoice {
  #cart: Cart;
  #key: string;
  #known = false; // what is free
  #resumed = false; // what is held

  constructor(event: string, cart: Cart) {
    this.#cart = cart;
    this.#key = `seatcast.choice.${event}`;
    cart.addEventListener('change', () => this.#keep());
  }

  known(): void {
    if (this.#known) return;
    this.#known = true;
    this.#restore();
  }

  resumed(): void {
    this.#resumed = true;
    this.#restore();
  }

  #restore(): void {
    if (!this.#known || !this.#resumed || this.#cart.stage !== 'picking' || this.#cart.size) return;
    const chosen = kept<Parameters<Cart['restore']>>(sessionStorage, this.#key);
    if (Array.isArray(chosen) && chosen.every(Array.isArray)) this.#cart.restore(chosen[0] ?? [], chosen[1] ?? []);
  }

  #keep(): void {
    const cart = this.#cart;
    if (!this.#known || !this.#resumed || cart.stage !== 'picking') return;
    sessionStorage.setItem(this.#key, JSON.stringify([cart.chosen, [...cart.places]]));
  }
}

/** keepView shows the part of the map that was in view before a reload of this tab, and keeps which it is for the next. */
function keepView(event: string, house: House): void {
  const key = `seatcast.view.${event}`;
  const was = kept<Partial<Aim & { chart: string }>>(sessionStorage, key);
  const { x, y, k } = was ?? {};
  if (was?.chart === house.state.chart.sha && [x, y, k].every(Number.isFinite)) house.aim = { x, y, k } as Aim;
  addEventListener('pagehide', () => {
    if (house.aim) sessionStorage.setItem(key, JSON.stringify({ chart: house.state.chart.sha, ...house.aim }));
    else sessionStorage.removeItem(key);
  });
}

function header(event: wire.Event): void {
  document.title = `${event.name} · Seatcast`;
  $('name').textContent = event.name;
  $('where').textContent = `${event.venue} · ${when(event.startsAt, event.zone)}`;
}

/** told says what became of the order. */
function told(cart: Cart, places: (seats: number[]) => string): void {
  cart.addEventListener('problem', (e) => {
    if (e.detail.code === 'seats_taken') say.shown(sentence(e.detail)); // the panel shows which
    else say.note(sentence(e.detail), 'bad');
  });
  cart.addEventListener('told', (e) => {
    const says: Record<Told['what'], [text: string, kind: Kind]> = {
      asked: [t.event.asked, 'plain'],
      held: cart.unheld ? [t.event.unheld, 'plain'] : [t.event.held, 'good'],
      extended: [t.event.extended, 'good'],
      sold: [t.event.sold, 'good'],
      declined: [declineWords(cart.declined ?? '', cart.unheld), 'bad'],
      cancelled: [t.event.cancelledPayment, 'plain'],
      lost: [t.event.lost(e.detail.what === 'lost' ? places(e.detail.seats) : ''), 'bad'],
    };
    const [text, kind] = says[e.detail.what];
    if (['asked', 'declined'].includes(e.detail.what) && $('panel').getClientRects().length) say.shown(text); // and so does the panel
    else say.note(text, kind);
  });
}

/** opening counts down to the sale and asks again when its time has come. */
function opening(event: wire.Event, panel: Panel): void {
  if (event.open) return;
  const banner = $('banner');
  banner.hidden = false;
  if (event.state === 'cancelled') {
    banner.textContent = t.event.cancelled;
    $('legend').hidden = $('stage').hidden = true; // nothing is for sale, and nothing sold out
    return;
  }
  const ask = async (pause: number): Promise<void> => {
    const fresh = await details(api, event.id).catch(() => event);
    Object.assign(event, { open: fresh.open, opensAt: fresh.opensAt });
    if (!event.open) {
      setTimeout(ask, pause * (1 + Math.random()), pause);
      return;
    }
    banner.hidden = true;
    say.note(t.event.open, 'good');
    panel.draw();
  };
  if (Date.parse(event.opensAt) <= clock.now()) { // whoever sells it opens it by hand, or never
    banner.textContent = t.event.notOnSale;
    ask(15000);
    return;
  }
  new Countdown(clock, (left) => {
    banner.textContent = left > 3600000 ? t.event.opensAt(when(event.opensAt, event.zone)) : t.event.opensIn(mmss(left));
    if (left === 0) ask(2000);
  }).until(Date.parse(event.opensAt));
}

main();
