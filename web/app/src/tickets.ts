// My tickets: what the account that is signed in has booked, the newest first, and what
// became of it. Orders of which no payment has begun the server lists for nobody: those
// of this browser are known by what their event's page keeps.

import { Api, problem, type Problem } from './api';
import { Clock, Countdown, mmss } from './clock';
import { $, h, tell, unbroken } from './dom';
import { t } from './lang';
import { translate } from './page';
import { qr } from './qr';
import { Session } from './session';
import type * as wire from './wire';
import { byPlace, money, sentence, there, ticketWords, when } from './words';

const KEPT = 'seatcast.booking.'; // and the event: which order its page shows
const GRACE = 2000; // ms after the end of a hold, or between questions of it
const SOON = 3000; // ms until something under way is asked about again, and then
const LATE = 20000; // longer and longer, up to this

/** Entry is an order as it is shown. */
interface Entry {
  order: wire.Order;
  event: wire.Event;
  at: number; // when it was booked, Unix milliseconds; Infinity: nothing of it is paid yet
  said: string; // all that is shown of it
  el: HTMLElement;
  countdown?: Countdown;
}

const clock = new Clock();
const api = new Api(clock, new Session());
const entries = new Map<string, Entry>();
const events = new Map<string, Promise<wire.Event>>();
let next: string | undefined; // what is older
let paged = false;
let wait = SOON;
let timer = 0;
let loading: Promise<void> | null = null;

/** eventOf is read once. */
function eventOf(id: string): Promise<wire.Event> {
  const known = events.get(id) ?? api.get<wire.Event>(`/v1/events/${encodeURIComponent(id)}`);
  events.set(id, known);
  known.catch(() => events.delete(id));
  return known;
}

/** kept are the bookings that pages of this tab show, or of this browser. */
function kept(): string[] {
  return [sessionStorage, localStorage].flatMap((where) => Object.keys(where).filter((key) => key.startsWith(KEPT)).map((key) => where.getItem(key)!));
}

/** unpaid reads an order that is only held. One that is over, or of another account, is none. */
async function unpaid(id: string): Promise<void> {
  try {
    const order = await api.call<wire.Order>('GET', `/v1/bookings/${id}`, { quiet: true });
    put(order, await eventOf(id.split('.')[0]), entries.get(id)?.at ?? Infinity);
  } catch (err) {
    const p = problem(err);
    if (p.status !== 403 && p.status !== 404) throw p;
    entries.get(id)?.countdown?.until(null);
    entries.get(id)?.el.remove();
    entries.delete(id);
  }
}

async function page(before: string, quiet: boolean): Promise<string[]> {
  const mine = await api.call<wire.Mine>('GET', `/v1/me/bookings?${new URLSearchParams(before ? { before } : {})}`, { quiet });
  const of = await Promise.all(mine.bookings.map((b) => eventOf(b.event.id)));
  mine.bookings.forEach((b, n) => put(b, of[n], Date.parse(b.bookedAt)));
  if (before || !paged) next = mine.next;
  paged ||= before !== '';
  return mine.bookings.map((b) => b.bookingId);
}

/** load reads what is newest, and what is held in this browser; one reading at a time. */
function load(quiet = true): Promise<void> {
  loading ??= (async () => {
    clearTimeout(timer);
    try {
      const listed = await page('', quiet);
      const others = new Set([...kept(), ...[...entries.values()].filter((e) => e.at === Infinity || underWay(e.order)).map((e) => e.order.bookingId)]);
      for (const id of listed) others.delete(id);
      await Promise.all([...others].map(unpaid));
      trouble(null);
    } catch (err) {
      trouble(problem(err));
    }
    said();
    follow();
  })().finally(() => { loading = null; });
  return loading;
}

/** underWay says that an order will be another by itself. */
const underWay = ({ state, expiresAt = '', tickets = [] }: wire.Order): boolean => state === 'paying' || state === 'held' && Date.parse(expiresAt) <= clock.now()
  || tickets.some((one) => one.status === 'pending' || one.status === 'refunding');

/** follow asks again while something is under way and somebody looks. */
function follow(): void {
  if (document.hidden) return;
  const busy = [...entries.values()].some((e) => underWay(e.order));
  if (busy || !$('trouble').hidden) timer = setTimeout(load, wait);
  wait = busy ? Math.min(LATE, wait * 1.5) : SOON;
}

function said(): void {
  const troubled = !$('trouble').hidden || !$('sign-in').hidden;
  if (entries.size || troubled) tell('says', '');
  else tell('says', t.tickets.none);
  $('more').hidden = troubled || next === undefined;
  $('print').hidden = ![...entries.values()].some((e) => e.order.tickets?.some((one) => one.status === 'valid'));
}

function trouble(p: Problem | null): void {
  const nobody = p?.code === 'token_missing' || p?.status === 401;
  $('sign-in').hidden = !nobody;
  $('trouble').hidden = p === null;
  $('again').hidden = nobody;
  $('trouble-text').textContent = p && (nobody ? t.tickets.signIn : sentence(p));
  if (nobody) { // whose these were, nobody knows any more
    for (const e of entries.values()) e.countdown?.until(null);
    entries.clear();
    $('orders').replaceChildren();
  }
}

/** put shows an order where it belongs; one that is as it was stays untouched. */
function put(order: wire.Order, event: wire.Event, at: number): void {
  const old = entries.get(order.bookingId);
  const text = JSON.stringify([order, at]);
  if (old?.said === text) return;
  old?.countdown?.until(null);
  const entry: Entry = { order, event, at, said: text, el: draw(order, event) };
  entries.set(order.bookingId, entry);
  if (old) old.el.replaceWith(entry.el);
  else {
    const after = [...entries.values()].filter((e) => e.at < at).sort((a, b) => b.at - a.at)[0];
    $('orders').insertBefore(entry.el, after?.el ?? null);
  }
  const clocks = entry.el.querySelector('.clock');
  if (!clocks || !order.expiresAt) return;
  entry.countdown = new Countdown(clock, (left) => {
    clocks.textContent = mmss(left);
    clocks.classList.toggle('hurry', left < 60000);
    if (left === 0) setTimeout(load, GRACE);
  });
  entry.countdown.until(Date.parse(order.expiresAt));
}

function draw(order: wire.Order, event: wire.Event): HTMLElement {
  const { state } = order;
  const title = `order-${order.bookingId}`;
  return h('article', { class: `order ${state}`, 'data-booking': order.bookingId, 'aria-labelledby': title },
    h('header', {},
      h('div', {}, h('h2', { id: title, dir: 'auto' }, event.name), h('p', { class: 'soft', dir: 'auto' }, `${event.venue} · ${when(event.startsAt, event.zone)}`)),
      h('span', { class: `badge ${state}` }, t.tickets.states[state])),
    event.state === 'cancelled' ? h('p', { class: 'hint' }, t.event.cancelled) : null,
    ...(state === 'held' || state === 'paying' ? open(order, event) : closed(order, event)));
}

/** open is an order that waits for its payment. */
function open(order: wire.Order, event: wire.Event): HTMLElement[] {
  const { state, bookingId, total, holds } = order;
  const link = h('a', { class: 'go', href: `/events/${encodeURIComponent(event.id)}`, onclick: () => sessionStorage.setItem(KEPT + event.id, bookingId) },
    state === 'held' ? t.tickets.pay(money(total.amount, event)) : t.tickets.look);
  return [
    lines(order, event),
    h('p', { class: 'due' }, h('span', {}, state === 'paying' ? t.tickets.payingLeft : t.tickets.left), ' ', h('strong', { class: 'clock', role: 'timer' }, '')),
    h('p', { class: 'soft' }, state === 'paying' ? t.tickets.paying : holds === false ? t.event.unheld : t.tickets.leftThen),
    h('div', { class: 'actions' }, link),
  ];
}

/** closed is an order that is sold, or over. */
function closed(order: wire.Order, event: wire.Event): HTMLElement[] {
  const { state, tickets = [], reason = '', total } = order;
  if (tickets.length) {
    const back = tickets.filter((one) => one.status === 'refunded').reduce((sum, one) => sum + one.allIn, 0);
    return [
      h('div', { class: 'stubs' }, ...tickets.toSorted(byPlace).map((one) => stub(one, event))),
      h('p', { class: 'soft paid' }, t.tickets.paid(money(total.amount, event)), back > 0 && ` ${t.tickets.back(money(back, event))}`),
      h('p', { class: 'soft paid' }, t.tickets.order, ' ', h('code', {}, order.bookingId)),
    ];
  }
  const why = reason === 'event_cancelled' ? sentence({ code: reason }) : state === 'lost' ? sentence({ code: 'seats_lost', reason }) : t.tickets.over[state === 'released' ? 'released' : 'expired'];
  return [lines(order, event), h('p', { class: 'soft' }, why)];
}

/** lines are what an order is of. */
function lines({ seats, areas }: wire.Order, event: wire.Event): HTMLElement {
  return h('ul', { class: 'lines' },
    ...seats.toSorted(byPlace).map((s) => h('li', {}, ...unbroken(t.seat.place(s.section, s.row, s.label)))),
    ...areas.map((a) => h('li', {}, t.tickets.places(a.quantity, areaOf(event, a.area)))));
}

const areaOf = (event: wire.Event, area: string) => event.areas.find((a) => a.area === area)?.name ?? area;

/** stub is a ticket; only one that lets somebody in has a code. */
function stub(one: wire.Ticket, event: wire.Event): HTMLElement {
  return h('div', { class: `stub ${one.status}`, role: 'group', 'aria-label': one.area ? areaOf(event, one.area) : t.seat.place(one.section ?? '', one.row ?? '', one.label ?? '') },
    one.qr ? qr(one.qr, t.ticket.code) : null,
    h('div', { class: 'about' },
      h('strong', { class: 'what', dir: 'auto' }, event.name),
      h('span', { class: 'when', dir: 'auto' }, `${event.venue} · ${there(event.startsAt, event.zone)}`),
      one.area
        ? h('dl', {}, ...pair(t.ticket.area, areaOf(event, one.area)))
        : h('dl', {}, ...pair(t.ticket.section, one.section), ...pair(t.ticket.row, one.row), ...pair(t.ticket.seat, one.label)),
      h('footer', {}, h('span', { class: 'state' }, ticketWords(one.status)), h('span', {}, money(one.allIn, event)), h('code', {}, one.id))));
}

const pair = (name: string, value = '') => [h('div', {}, h('dt', {}, name), h('dd', { dir: 'auto' }, value))];

async function older(): Promise<void> {
  try {
    await page(next ?? '', true);
    trouble(null);
  } catch (err) {
    trouble(problem(err));
  }
  said();
}

function main(): void {
  translate();
  document.title = `${t.tickets.title} · Seatcast`;
  $('again').onclick = () => load();
  $('more').onclick = older;
  $('print').onclick = () => print();
  $('sign-in').onclick = () => load(false);
  document.addEventListener('visibilitychange', () => { if (!document.hidden) load(); });
  addEventListener('pageshow', (e) => { if (e.persisted) load(); });
  load();
}

main();
