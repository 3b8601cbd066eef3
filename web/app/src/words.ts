// How things are said: money, times, and every problem code as a sentence.

import { t } from './lang';
import { inManner } from './locale';
import type { State } from './state';
import type { Currency, Problem } from './wire';

/**
 * money writes an amount of minor units in the shopper's own manner. How many of
 * its digits stand after the point the server says: what a browser knows of a
 * currency is how people round it.
 */
export function money(amount: number, { currency, decimals }: Currency): string {
  const f = new Intl.NumberFormat(inManner(), { style: 'currency', currency, minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  return f.format(amount / 10 ** (f.resolvedOptions().maximumFractionDigits ?? 0));
}

const plain = new Map<string, Intl.NumberFormat>(); // making one takes longer than drawing a section: a map says seventy prices a frame

/** price writes an amount as money does, but whole ones without their zeros. */
export function price(amount: number, { currency, decimals }: Currency): string {
  const key = `${inManner()} ${currency} ${decimals}`;
  let f = plain.get(key);
  if (!f) {
    f = new Intl.NumberFormat(inManner(), { style: 'currency', currency, minimumFractionDigits: decimals, maximumFractionDigits: decimals, trailingZeroDisplay: 'stripIfInteger' });
    plain.set(key, f);
  }
  return f.format(amount / 10 ** (f.resolvedOptions().maximumFractionDigits ?? 0));
}

const HOUR = { hour: 'numeric', minute: '2-digit' } as const;
const DAY = { weekday: 'short', day: 'numeric', month: 'short' } as const;
const WHEN = { ...DAY, year: 'numeric', ...HOUR } as const;

/** when writes a moment in the venue's own time zone, which it names, and in brackets in the shopper's where clocks there say something else. */
export const when = (time: string, zone: string): string => moment(time, zone, WHEN);

/** hour writes a moment of today in both. */
export const hour = (time: string, zone: string): string => moment(time, zone, HOUR);

/** onDay writes a moment to somebody on a day of the venue's: one of the same day as hour does, any other as when does. */
export const onDay = (time: string, day: number, zone: string): string => (sameDay(time, day, zone) ? hour : when)(time, zone);

/** alone is a moment as onDay writes it, without the time zones: where another beside it has them. */
export const alone = (time: string, day: number, zone: string): string => written(time, sameDay(time, day, zone) ? HOUR : WHEN, zone);

/** there writes a moment in the venue's own time zone alone, for what others read too, such as a ticket. */
export const there = (time: string, zone: string): string => `${written(time, WHEN, zone)} (${zone})`;

function moment(time: string, zone: string, as: Intl.DateTimeFormatOptions): string {
  const day = written(time, DAY) === written(time, DAY, zone);
  const same = day && written(time, HOUR) === written(time, HOUR, zone);
  return `${written(time, as, zone)} (${same ? zone : `${zone}; ${t.page.yourTime(written(time, day ? HOUR : { ...DAY, ...HOUR }))}`})`;
}

/** written is a moment in a time zone, else the shopper's. Its hour is not torn from its half of the day at the end of a line. */
const written = (time: string, how: Intl.DateTimeFormatOptions, timeZone?: string): string =>
  new Intl.DateTimeFormat(inManner(), { ...how, timeZone }).format(new Date(time)).replace(/[ \u202f](?=[ap]m\b)/i, '\u00a0');

/** sameDay says whether two moments are of one day in the venue's own time zone. */
export function sameDay(a: string, b: string | number, zone: string): boolean {
  const day = new Intl.DateTimeFormat(inManner(), { dateStyle: 'short', timeZone: zone });
  return day.format(new Date(a)) === day.format(new Date(b));
}

/** dotted has what there is to say of one thing in a line. */
export const dotted = (...words: string[]): string => words.filter((w) => w).join(' · ');

/**
 * remaining says how many places are left, where some that are not may come back.
 * While that is not known it says nothing.
 */
export function remaining({ known }: State, free: number, held: number, says: (free: number) => string): string {
  if (!known) return '';
  if (free) return says(free);
  return held ? t.left.noneNow : t.left.soldOut;
}

/** leftIn says how many places of an area are left, or nothing while that is not known. */
export function leftIn(state: State, area: string, says: (left: number) => string): string {
  const left = state.areas.get(area) ?? 0;
  if (!state.known) return '';
  return left ? says(left) : t.left.full;
}

/** declineWords say why a payment came to nothing, and what can be done; unheld: others may still buy the seats. */
export const declineWords = (reason: string, unheld: boolean): string =>
  `${own(t.declines, reason) ?? t.declines.card_declined} ${unheld ? t.panel.tryAgainUnheld : t.panel.tryAgain}`;

/** Placed is what has a place in a house, or in none of its rows. */
interface Placed { section?: string; row?: string; label?: string }

const { compare } = new Intl.Collator('en', { numeric: true });

/** byPlace sorts by section, row and seat, as people count; what has no section comes last. */
export const byPlace = (a: Placed, b: Placed): number =>
  Number(!a.section) - Number(!b.section) || compare(a.section ?? '', b.section ?? '') || compare(a.row ?? '', b.row ?? '') || compare(a.label ?? '', b.label ?? '');

/** own is what an object says of a name that came from the server. */
const own = (says: Record<string, string>, name: string): string | undefined => (Object.hasOwn(says, name) ? says[name] : undefined);

/** ticketWords say what a ticket is good for. */
export const ticketWords = (status: string): string => own(t.ticket.status, status) ?? status;

/** sentence says a problem in plain words. */
export function sentence({ code = '', detail, reason = '' }: Partial<Problem>): string {
  return code === 'seats_lost' && own(t.losses, reason) || own(t.problems, code) || detail || t.problems.internal;
}
