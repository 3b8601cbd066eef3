import { kept } from './kept.js';
import { t } from './lang.js';

const PLACE = "seatcast.place.";
const PASS = "seatcast.pass.";
const RECEIPT = "seatcast.receipt.";
const TICKET = "seatcast.ticket.";
const WHY = "seatcast.why.";
const CHOICE = "seatcast.choice.";
const BACK = 1800;
function cookie(event, pass, seconds) {
  const secure = location.protocol === "https:" ? "; Secure" : "";
  document.cookie = `seatcast-pass=${pass}; Path=/events/${encodeURIComponent(event)}; Max-Age=${seconds}; SameSite=Lax${secure}`;
}
const ticketOf = (event) => sessionStorage.getItem(TICKET + event) ?? localStorage.getItem(TICKET + event) ?? "";
const passKey = (event) => `${PASS + event}.${ticketOf(event)}`;
function roomOf(token) {
  try {
    return JSON.parse(atob(token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/"))).room;
  } catch {
    return void 0;
  }
}
class Keep {
  #event;
  room;
  // the one there is, once it is known: the place of another is as good as none
  constructor(event) {
    this.#event = event;
  }
  /** is says whose ticket this tab's account has, and returns whether that is news. */
  is(ticket) {
    const other = ticketOf(this.#event) !== ticket;
    sessionStorage.setItem(TICKET + this.#event, ticket);
    localStorage.setItem(TICKET + this.#event, ticket);
    return other;
  }
  /** own says that this tab knows whose line it is in. */
  get own() {
    return sessionStorage.getItem(TICKET + this.#event) !== null;
  }
  /** place is what the server gave last. */
  get place() {
    const p = kept(localStorage, this.#key(PLACE));
    const room = p?.place ? roomOf(p.place) : p?.room;
    return room && this.room && room !== this.room ? null : p;
  }
  set place(p) {
    if (p) localStorage.setItem(this.#key(PLACE), JSON.stringify(p));
    else localStorage.removeItem(this.#key(PLACE));
  }
  /** waits is the place that was given, or null when there is none, or it has led inside. */
  get waits() {
    const p = this.place;
    return p?.place && !p.until ? p : null;
  }
  /** receipt is the one of a draw. */
  get receipt() {
    return kept(localStorage, this.#key(RECEIPT));
  }
  /** why is the code by which this tab was led to the line, until it has joined. */
  get why() {
    return sessionStorage.getItem(WHY + this.#event);
  }
  /** joined forgets it. */
  joined() {
    sessionStorage.removeItem(WHY + this.#event);
  }
  /** chosen says that seats are chosen in this tab, for when the line has led inside. */
  get chosen() {
    const choice = kept(sessionStorage, CHOICE + this.#event);
    return Array.isArray(choice) && choice.some((some) => Array.isArray(some) && some.length > 0);
  }
  /**
   * give keeps a receipt. It proves that its ticket was on a list, so nothing that comes
   * later takes its place but the receipt of another announcement. Of those before, the
   * first of the same room is kept.
   */
  give(ticket, place, announcement) {
    const had = this.receipt;
    if (had?.announcement === announcement) return;
    const here = (token) => token && roomOf(token) === roomOf(place) && token;
    localStorage.setItem(this.#key(RECEIPT), JSON.stringify({ ticket, place, announcement, before: here(had?.before) || here(had?.place) || had?.place }));
  }
  /**
   * enter keeps a pass until a time, now being the server's. A proxy that checks passes sees
   * it when the page of the event is asked for. The place has led inside: nobody joins with
   * it unasked.
   */
  enter(pass, until, now) {
    this.place = { ...this.place, until, room: this.room };
    localStorage.setItem(passKey(this.#event), pass);
    cookie(this.#event, pass, Math.ceil((Date.parse(until) - now) / 1e3) + BACK);
  }
  #key(what) {
    return `${what + this.#event}.${ticketOf(this.#event)}`;
  }
}
function bookedEvent(path) {
  const [, v1, bookings, name] = path.split("/");
  return v1 === "v1" && bookings === "bookings" && name ? name.split(".")[0] ?? null : null;
}
const watchedEvent = (path) => /^\/v1\/events\/([^/]+)\/(seatmap|live-ticket)$/.exec(path)?.[1] ?? null;
function passFor(path) {
  const event = bookedEvent(path) ?? watchedEvent(path);
  return event && localStorage.getItem(passKey(event));
}
function toLine(event, code = "pass_required") {
  sessionStorage.setItem(WHY + event, code);
  if (sessionStorage.getItem(TICKET + event) !== null) localStorage.removeItem(passKey(event));
  cookie(event, "", 0);
  location.assign(`/queue/${event}`);
}
function backToLine(method, path, code) {
  const event = bookedEvent(path);
  if (method === "POST" && event && code.startsWith("pass_")) toLine(event, code);
}
function range(called, eta) {
  if (!eta || eta.fast <= 0) return null;
  return { from: Math.max(1, Math.floor(called / eta.fast)), to: eta.slow > 0 ? Math.max(1, Math.ceil(called / eta.slow)) : null };
}
function slower(why) {
  if (!why) return "";
  if (why === "seats") return t.queue.slowedSeats;
  return t.queue.slowed;
}

export { Keep, backToLine, passFor, range, roomOf, slower, toLine };
