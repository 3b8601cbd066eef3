// Tabs of one browser that show the same order agree: what becomes of it in one is asked
// for in the others, and one that has none yet shows that of its account, also when the tab
// that made it is closed, where the browser keeps who is signed in. Nothing is believed: the
// server says how an order stands, and whose it is.

import type { Cart } from './cart';

/** Word is what one tab tells the others: that there is news of an order, or, without one, that it would know of one. */
interface Word { account: string; booking?: string }

/** Tabs keeps a cart in step with those of the same event in other tabs. */
export class Tabs {
  #cart: Cart;
  #account: () => string | null;
  #last: string; // where the order is kept that is open, for a tab that comes later
  #channel: BroadcastChannel;
  #told = '';
  #booking: string | null = null; // the last there was
  #hearing = false;

  /** account is whose session the tab has, or null while it has none. */
  constructor(event: string, cart: Cart, account: () => string | null) {
    this.#cart = cart;
    this.#account = account;
    this.#last = `seatcast.booking.${event}`;
    this.#channel = new BroadcastChannel(`seatcast.order.${event}`);
    this.#channel.onmessage = (e: MessageEvent<Word>) => this.#hear(e.data);
    cart.addEventListener('change', () => this.#tell());
    addEventListener('pageshow', (e) => { if (e.persisted) cart.refresh(); });
    document.addEventListener('visibilitychange', () => { if (!document.hidden) cart.refresh(); });
  }

  /** last is the order that was open last in a tab of this browser, be that whoever's; null: none, or nobody is signed in who could have it. */
  get last(): string | null {
    return this.#account() === null ? null : localStorage.getItem(this.#last);
  }

  /** forget drops an order that is over, unless another was open since. */
  forget(id: string | null): void {
    if (localStorage.getItem(this.#last) === id) localStorage.removeItem(this.#last);
  }

  /** ask has the other tabs say what they have, when this one has nothing. */
  ask(): void {
    if (this.#cart.stage === 'picking') this.#say({});
  }

  #say(word: { booking?: string }): void {
    const account = this.#account();
    if (account !== null) this.#channel.postMessage({ account, ...word });
  }

  /** tell says that the order is another than it was told last, unless it was heard. */
  #tell(): void {
    const { booking, busy } = this.#cart;
    if (busy) return;
    const now = booking ? `${booking.bookingId} ${booking.state} ${booking.expiresAt}` : '';
    if (now === this.#told) return;
    this.#told = now;
    const about = booking?.bookingId ?? this.#booking;
    this.#booking = booking?.bookingId ?? null;
    if (booking?.state === 'held' || booking?.state === 'paying') localStorage.setItem(this.#last, booking.bookingId);
    else this.forget(about);
    if (about && !this.#hearing) this.#say({ booking: about });
  }

  async #hear({ account, booking }: Word): Promise<void> {
    const cart = this.#cart;
    if (account !== this.#account()) return;
    if (!booking) {
      if (cart.booking) this.#say({ booking: cart.booking.bookingId });
      return;
    }
    this.#hearing = true;
    try {
      if (cart.booking?.bookingId === booking) await cart.refresh();
      else if (cart.stage === 'picking') await cart.adopt(booking);
    } finally {
      this.#hearing = false;
    }
  }
}
