// The front page: which events there are, what is on sale first, and a search for others.

import { Api } from './api';
import { Clock, Countdown, mmss } from './clock';
import { $, h, tell } from './dom';
import { Finder } from './finder';
import { t } from './lang';
import { inManner } from './locale';
import { translate } from './page';
import { Session } from './session';
import type { Summary } from './wire';
import { when } from './words';

const NEAR = 3600000; // ms before it opens from which a sale is counted down to
const HURRY = 5000; // ms within which those who have counted down ask

const clock = new Clock();
const api = new Api(clock, new Session());
const countdowns: Countdown[] = [];

/** opens is when a sale opens by itself, in Unix milliseconds; null: it is open, or somebody has to open it. */
const opens = ({ state, open, opensAt }: Summary): number | null => (!open && state === 'open' ? Date.parse(opensAt) : null);

function state(event: Summary): string {
  if (event.state === 'cancelled') return t.home.cancelled;
  if (event.open) return event.queue ? t.home.queue : t.home.onSale;
  return opens(event) === null ? t.home.notOnSale : t.home.onSaleFrom(when(event.opensAt, event.zone));
}

/** day is the leaf of a calendar; what it says is said again in words. */
function day(event: Summary): HTMLElement {
  const part = (how: Intl.DateTimeFormatOptions) => new Intl.DateTimeFormat(inManner(), { ...how, timeZone: event.zone }).format(new Date(event.startsAt));
  return h('span', { class: 'day', 'aria-hidden': 'true' }, h('span', {}, part({ month: 'short' })), h('strong', {}, part({ day: 'numeric' })), h('span', {}, part({ weekday: 'short' })));
}

function card(event: Summary, first: boolean): HTMLElement {
  const badge = h('span', { class: `badge ${event.state}${event.open ? ' on' : ''}` }, state(event));
  const el = h('li', { class: `event${first && event.open ? ' first' : ''}` },
    h('a', { href: `/${event.queue && event.open ? 'queue' : 'events'}/${encodeURIComponent(event.id)}` },
      day(event),
      h('span', { class: 'about' },
        badge,
        h('h2', { dir: 'auto' }, event.name),
        h('span', { dir: 'auto' }, event.venue),
        h('span', { class: 'soft' }, when(event.startsAt, event.zone)),
        event.open ? h('span', { class: 'go' }, event.queue ? t.home.join : t.home.choose) : null)));
  const at = opens(event);
  if (at !== null) count(event, at, badge, () => el.replaceWith(card(event, first)));
  return el;
}

/** count counts down to the opening of a sale, and asks then until it is open. */
function count(event: Summary, at: number, badge: HTMLElement, opened: () => void): void {
  const ask = async (): Promise<void> => {
    if (!badge.isConnected) return; // something else is looked for
    Object.assign(event, await api.get<Summary>(`/v1/events/${event.id}`).catch(() => event));
    if (event.open || event.state !== 'open') opened();
    else setTimeout(ask, HURRY * (1 + Math.random()));
  };
  const countdown = new Countdown(clock, (left) => {
    if (left <= NEAR) badge.textContent = t.home.opensIn(mmss(left));
    if (left === 0) setTimeout(ask, HURRY * Math.random()); // not everybody at once
  });
  countdowns.push(countdown);
  countdown.until(at);
}

/** show lists events, behind those of earlier pages if there are any. */
function show(events: Summary[], page: number): void {
  if (page === 1) for (const one of countdowns.splice(0)) one.until(null);
  const sorted = events.toSorted((a, b) => Number(b.open) - Number(a.open)); // a stable sort: the server's order otherwise
  const cards = sorted.map((e, n) => card(e, page === 1 && n === 0));
  if (page === 1) $('events').replaceChildren(...cards);
  else $('events').append(...cards);
  if (page > 1) cards[0]?.querySelector('a')?.focus();
}

/** arrows lead from the search into the list, and through it. */
function arrows(e: KeyboardEvent): void {
  const field = $('words');
  if (e.key === '/' && document.activeElement !== field) {
    e.preventDefault();
    field.focus();
  }
  const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
  const stops = [field, ...document.querySelectorAll<HTMLElement>('.event a')];
  const at = stops.indexOf(document.activeElement as HTMLElement);
  if (!step || at < 0) return;
  e.preventDefault();
  stops[Math.min(stops.length - 1, Math.max(0, at + step))].focus();
}

function main(): void {
  translate();
  document.title = `${t.home.title} · Seatcast`;
  document.addEventListener('keydown', arrows);
  new Finder(api, (found, words, page) => {
    show(found.events, page);
    const n = document.querySelectorAll('.event').length;
    if (n) tell('found', found.next ? t.home.first(n) : words ? t.home.found(n) : '');
    else tell('found', words ? t.home.none(words) : t.home.empty);
  }, () => {
    $('events').replaceChildren();
    tell('found', '');
  });
}

main();
