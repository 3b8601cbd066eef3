class Tabs {
  #cart;
  #account;
  #last;
  // where the order is kept that is open, for a tab that comes later
  #channel;
  #told = "";
  #booking = null;
  // the last there was
  #hearing = false;
  /** account is whose session the tab has, or null while it has none. */
  constructor(event, cart, account) {
    this.#cart = cart;
    this.#account = account;
    this.#last = `seatcast.booking.${event}`;
    this.#channel = new BroadcastChannel(`seatcast.order.${event}`);
    this.#channel.onmessage = (e) => this.#hear(e.data);
    cart.addEventListener("change", () => this.#tell());
    addEventListener("pageshow", (e) => {
      if (e.persisted) cart.refresh();
    });
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) cart.refresh();
    });
  }
  /** last is the order that was open last in a tab of this browser, be that whoever's; null: none, or nobody is signed in who could have it. */
  get last() {
    return this.#account() === null ? null : localStorage.getItem(this.#last);
  }
  /** forget drops an order that is over, unless another was open since. */
  forget(id) {
    if (localStorage.getItem(this.#last) === id) localStorage.removeItem(this.#last);
  }
  /** ask has the other tabs say what they have, when this one has nothing. */
  ask() {
    if (this.#cart.stage === "picking") this.#say({});
  }
  #say(word) {
    const account = this.#account();
    if (account !== null) this.#channel.postMessage({ account, ...word });
  }
  /** tell says that the order is another than it was told last, unless it was heard. */
  #tell() {
    const { booking, busy } = this.#cart;
    if (busy) return;
    const now = booking ? `${booking.bookingId} ${booking.state} ${booking.expiresAt}` : "";
    if (now === this.#told) return;
    this.#told = now;
    const about = booking?.bookingId ?? this.#booking;
    this.#booking = booking?.bookingId ?? null;
    if (booking?.state === "held" || booking?.state === "paying") localStorage.setItem(this.#last, booking.bookingId);
    else this.forget(about);
    if (about && !this.#hearing) this.#say({ booking: about });
  }
  async #hear({ account, booking }) {
    const cart = this.#cart;
    if (account !== this.#account()) return;
    if (!booking) {
      if (cart.booking) this.#say({ booking: cart.booking.bookingId });
      return;
    }
    this.#hearing = true;
    try {
      if (cart.booking?.bookingId === booking) await cart.refresh();
      else if (cart.stage === "picking") await cart.adopt(booking);
    } finally {
      this.#hearing = false;
    }
  }
}

export { Tabs };
