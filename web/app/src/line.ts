// What is worked out from the frame of a line, and what a browser keeps of one.

import { kept } from './kept';
import { t } from './lang';
import type { Eta } from './wire';

/** KeptPlace is a place as it is kept. */
export interface KeptPlace {
  place?: string; // signed
  number?: number;
  from?: number; // how many were before it at first
  until?: string; // its time inside ends, or ended
  room?: number; // where there is no place that names it
}

/** KeptReceipt is the signed place of who takes part in a draw. */
export interface KeptReceipt {
  ticket: string;
  place: string;
  announcement?: string; // SHA-256
  before?: string; // that of another announcement, or of an earlier room
}

const PLACE = 'seatcast.place.';
const PASS = 'seatcast.pass.';
const RECEIPT = 'seatcast.receipt.';
const TICKET = 'seatcast.ticket.';
const WHY = 'seatcast.why.';
const CHOICE = 'seatcast.choice.';

const BACK = 1800; // seconds after the time inside, for who comes back to pay

function cookie(event: string, pass: string, seconds: number): void {
  const secure = location.protocol === 'https:' ? '; Secure' : '';
  document.cookie = `seatcast-pass=${pass}; Path=/events/${encodeURIComponent(event)}; Max-Age=${seconds}; SameSite=Lax${secure}`;
}

/**
 * ticketOf is whose line this tab is in: the ticket its account has in an event. A tab
 * that does not know yet takes the one that this browser had last.
 */
const ticketOf = (event: string) => sessionStorage.getItem(TICKET + event) ?? localStorage.getItem(TICKET + event) ?? '';

const passKey = (event: string) => `${PASS + event}.${ticketOf(event)}`;

/** roomOf is the room that a signed place or a receipt names, or undefined: an event may have one after the other. */
export function roomOf(token: string): number | undefined {
  try { return JSON.parse(atob(token.split('.')[1].replaceAll('-', '+').replaceAll('_', '/'))).room; } catch { return undefined; }
}

/** Keep is what this browser keeps of one event, for each account: a second tab finds it too. */
export class Keep {
  #event: string;
  room: number | undefined; // the one there is, once it is known: the place of another is as good as none

  constructor(event: string) { this.#event = event; }

  /** is says whose ticket this tab's account has, and returns whether that is news. */
  is(ticket: string): boolean {
    const other = ticketOf(this.#event) !== ticket;
    sessionStorage.setItem(TICKET + this.#event, ticket);
    localStorage.setItem(TICKET + this.#event, ticket);
    return other;
  }

  /** own says that this tab knows whose line it is in. */
  get own(): boolean { return sessionStorage.getItem(TICKET + this.#event) !== null; }

  /** place is what the server gave last. */
  get place(): KeptPlace | null {
    const p = kept<KeptPlace>(localStorage, this.#key(PLACE));
    const room = p?.place ? roomOf(p.place) : p?.room;
    return room && this.room && room !== this.room ? null : p;
  }

  set place(p: KeptPlace | null) {
    if (p) localStorage.setItem(this.#key(PLACE), JSON.stringify(p));
    else localStorage.removeItem(this.#key(PLACE));
  }

  /** waits is the place that was given, or null when there is none, or it has led inside. */
  get waits(): KeptPlace | null {
    const p = this.place;
    return p?.place && !p.until ? p : null;
  }

  /** receipt is the one of a draw. */
  get receipt(): KeptReceipt | null { return kept(localStorage, this.#key(RECEIPT)); }

  /** why is the code by which this tab was led to the line, until it has joined. */
  get why(): string | null { return sessionStorage.getItem(WHY + this.#event); }

  /** joined forgets it. */
  joined(): void { sessionStorage.removeItem(WHY + this.#event); }

  /** chosen says that seats are chosen in this tab, for when the line has led inside. */
  get chosen(): boolean {
    const choice = kept<unknown[]>(sessionStorage, CHOICE + this.#event);
    return Array.isArray(choice) && choice.some((some) => Array.isArray(some) && some.length > 0);
  }

  /**
   * give keeps a receipt. It proves that its ticket was on a list, so nothing that comes
   * later takes its place but the receipt of another announcement. Of those before, the
   * first of the same room is kept.
   */
  give(ticket: string, place: string, announcement?: string): void {
    const had = this.receipt;
    if (had?.announcement === announcement) return;
    const here = (token?: string) => token && roomOf(token) === roomOf(place) && token;
    localStorage.setItem(this.#key(RECEIPT), JSON.stringify({ ticket, place, announcement, before: here(had?.before) || here(had?.place) || had?.place }));
  }

  /**
   * enter keeps a pass until a time, now being the server's. A proxy that checks passes sees
   * it when the page of the event is asked for. The place has led inside: nobody joins with
   * it unasked.
   */
  enter(pass: string, until: string, now: number): void {
    this.place = { ...this.place, until, room: this.room };
    localStorage.setItem(passKey(this.#event), pass);
    cookie(this.#event, pass, Math.ceil((Date.parse(until) - now) / 1000) + BACK);
  }

  #key(what: string): string { return `${what + this.#event}.${ticketOf(this.#event)}`; }
}

/** bookedEvent is the event a call about bookings is of, or null. */
function bookedEvent(path: string): string | null {
  const [, v1, bookings, name] = path.split('/');
  return v1 === 'v1' && bookings === 'bookings' && name ? name.split('.')[0] ?? null : null;
}

/** watchedEvent is the event whose map a call is about, or null. */
const watchedEvent = (path: string) => /^\/v1\/events\/([^/]+)\/(seatmap|live-ticket)$/.exec(path)?.[1] ?? null;

/** passFor is the pass to show with a call about bookings or a map, or null. */
export function passFor(path: string): string | null {
  const event = bookedEvent(path) ?? watchedEvent(path);
  return event && localStorage.getItem(passKey(event));
}

/**
 * toLine leads a shopper who is not inside any more, or never was, to the line, which says
 * why. A pass that may be another tab's stays.
 */
export function toLine(event: string, code = 'pass_required'): void {
  sessionStorage.setItem(WHY + event, code);
  if (sessionStorage.getItem(TICKET + event) !== null) localStorage.removeItem(passKey(event));
  cookie(event, '', 0);
  location.assign(`/queue/${event}`);
}

/** backToLine leads a shopper who wants to book and is not let in to the line. */
export function backToLine(method: string, path: string, code: string): void {
  const event = bookedEvent(path);
  if (method === 'POST' && event && code.startsWith('pass_')) toLine(event, code);
}

/** range is how many minutes it takes until so many are called, from and to; to is null when nobody knows. */
export function range(called: number, eta: Eta | null): { from: number; to: number | null } | null {
  if (!eta || eta.fast <= 0) return null;
  return { from: Math.max(1, Math.floor(called / eta.fast)), to: eta.slow > 0 ? Math.max(1, Math.ceil(called / eta.slow)) : null };
}

/** slower says why the line moves more slowly, or nothing. */
export function slower(why: string | null | undefined): string {
  if (!why) return '';
  if (why === 'seats') return t.queue.slowedSeats;
  return t.queue.slowed;
}
