// What is worked out from the frame of a line, and what a browser keeps of one.

const PLACE = 'seatcast.place.';
const PASS = 'seatcast.pass.';

/** Keep is what this browser keeps of one event: a second tab finds it too. */
export class Keep {
  #event;

  /** @param {string} event */
  constructor(event) { this.#event = event; }

  /** place is what the server gave last: {place, number, from}, or null. */
  get place() {
    try { return JSON.parse(localStorage.getItem(PLACE + this.#event)); } catch { return null; }
  }

  set place(p) {
    if (p) localStorage.setItem(PLACE + this.#event, JSON.stringify(p));
    else localStorage.removeItem(PLACE + this.#event);
  }

  set pass(pass) { localStorage.setItem(PASS + this.#event, pass); }
}

/** bookedEvent is the event a call about bookings is of, or null. */
function bookedEvent(path) {
  const [, v1, bookings, name] = path.split('/');
  return v1 === 'v1' && bookings === 'bookings' && name ? name.split('.')[0] : null;
}

/** passFor is the pass to show with a call about bookings, or null. */
export function passFor(path) {
  const event = bookedEvent(path);
  return event && localStorage.getItem(PASS + event);
}

/**
 * backToLine leads a shopper who wants to book and is not let in to the line.
 * @param {string} method
 * @param {string} path
 * @param {string} code
 */
export function backToLine(method, path, code) {
  const event = bookedEvent(path);
  if (method !== 'POST' || !event || !code.startsWith('pass_')) return;
  localStorage.removeItem(PASS + event);
  location.assign(`/queue/${event}`);
}

/**
 * range is how many minutes the wait lasts, from and to; to is null when nobody knows.
 * @param {number} ahead how many are before
 * @param {{slow: number, fast: number}|null} eta
 */
export function range(ahead, eta) {
  if (!eta || eta.fast <= 0) return null;
  return { from: Math.max(1, Math.floor(ahead / eta.fast)), to: eta.slow > 0 ? Math.max(1, Math.ceil(ahead / eta.slow)) : null };
}

/** shardOf is the shard of a draw in which a ticket is, among so many tickets. */
export function shardOf(ticket, tickets) {
  const bits = tickets <= 256 ? 0 : 32 - Math.clz32(Math.floor((tickets - 1) / 256));
  const raw = atob(ticket.replaceAll('-', '+').replaceAll('_', '/'));
  let first = 0;
  for (let k = 0; k < 4; k++) first = first * 256 + raw.charCodeAt(k);
  return Math.floor(first / 2 ** (32 - bits));
}
