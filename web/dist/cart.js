import { newKey, problem, Problem } from './api.js';
import { near } from './near.js';
import { allIn } from './price.js';
import { SOLD, HELD, AVAILABLE } from './state.js';

const FRESH = 6e4;
const SETTLE = 500;
const SHOWN = { held: HELD, paying: HELD, sold: SOLD };
const STEADY = { held: "held", paying: "paying", sold: "sold", refunded: "sold" };
class Cart extends EventTarget {
  stage = "picking";
  picked = /* @__PURE__ */ new Set();
  // seats by i, in the order they were chosen
  places = /* @__PURE__ */ new Map();
  // area → quantity
  gone = /* @__PURE__ */ new Set();
  // seats the server said are taken; until the map says otherwise
  booking = null;
  // the server's answer
  prices = /* @__PURE__ */ new Map();
  // category → minor units, on the chart in force, without fees
  alones = /* @__PURE__ */ new Map();
  // the same for one ticket alone, with all fees
  party = 2;
  // seats to ask for when the house chooses
  wish = {};
  // what else is asked of it
  max = Infinity;
  // seats and places the page allows, whatever the event does
  busy = false;
  action = null;
  // what the payment waits for
  stepping = false;
  // the shopper is at it
  #api;
  #event;
  #kept;
  #stopped = false;
  #chart;
  // since the first was followed
  #state;
  #key = newKey();
  #bestKey = newKey();
  #payment = null;
  #payTurn = 0;
  #known = false;
  // the map says what is free
  #ours = /* @__PURE__ */ new Set();
  // seats that were asked for or given back: whose they are the map may not show yet
  #offer = null;
  #acts = 0;
  // an answer that was asked for before the last of them comes too late
  #asking = 0;
  // timer
  #unanswered = null;
  // it may have been carried out
  constructor(api, event, kept) {
    super();
    this.#api = api;
    this.#event = event;
    this.#kept = kept;
  }
  /** stop asks the server nothing more by itself. */
  stop() {
    this.#stopped = true;
    clearTimeout(this.#asking);
  }
  /**
   * on follows a chart and its state, and the event as it is sold on it. Seats
   * chosen on another chart are found again by ticketId.
   */
  on(state) {
    const old = this.#chart;
    this.prices = new Map(this.#event.prices.map((p) => [p.category, p.amount]));
    this.alones = new Map(this.#event.prices.map((p) => [p.category, p.allIn ?? p.amount]));
    this.#chart = state.chart;
    this.#state = state;
    this.#known = false;
    this.#ours.clear();
    if (!old) return;
    const kept = [...this.picked].map((i) => this.#chart.byTicketId.get(old.ticketId[i])).filter((i) => i !== void 0);
    const areas = new Set(this.#event.areas.map((a) => a.area));
    const left = [...this.places].filter(([area]) => areas.has(area));
    const lost = kept.length < this.picked.size || left.length < this.places.size;
    this.picked = new Set(kept);
    this.places = new Map(left);
    this.gone.clear();
    this.#changed(lost);
  }
  /** seen follows changes of the map: what is free, what was chosen and is gone, and what has become of the order's seats. */
  seen(seats) {
    const { status } = this.#state;
    const picking = this.stage === "picking";
    let any = !this.#known;
    const lost = [];
    const unsure = new Set((this.#unanswered?.body.ticketIds ?? []).map((id) => this.#chart.byTicketId.get(id)));
    for (const i of seats) {
      any ||= this.picked.has(i) || this.#offer !== null && this.#offer.seats.includes(i);
      if (unsure.has(i)) this.#ours.add(i);
      else if (!this.busy) this.#ours.delete(i);
      if (status[i] === AVAILABLE) this.gone.delete(i);
      else if (this.#known && picking && !this.busy && this.picked.has(i) && !unsure.has(i) && !this.gone.has(i)) lost.push(i);
    }
    this.#known = true;
    if (lost.length) this.#tell({ what: "lost", seats: lost });
    if (any) this.#changed();
    if (this.busy || this.#asking || this.#stopped) return;
    const mine = picking ? unsure : new Set(this.mine);
    if (seats.some((i) => mine.has(i) && status[i] !== (SHOWN[this.stage] ?? AVAILABLE))) {
      this.#asking = setTimeout(() => {
        this.#asking = 0;
        if (this.#unanswered) this.#repeat(this.#unanswered);
        else this.refresh();
      }, Math.random() * SETTLE);
    }
  }
  /** free says whether a chosen seat can still be held. */
  free(i) {
    return (this.#state.status[i] === AVAILABLE || this.#ours.has(i)) && !this.gone.has(i);
  }
  /** lost are the chosen seats that somebody else has got. */
  get lost() {
    return this.#known ? [...this.picked].filter((i) => !this.free(i)) : [];
  }
  /** offer is what may be taken in place of all that is chosen, some of which is lost. It stays the same while it is free. */
  get offer() {
    const { lost } = this;
    if (this.stage !== "picking" || !lost.length) return this.#offer = null;
    const of = `${[...this.picked].join()} ${lost.join()}`;
    const free = (i) => this.free(i);
    if (this.#offer?.of !== of || !this.#offer.seats.every(free)) {
      const found = near(this.#chart, [...this.picked], free, this.#event.orphans);
      this.#offer = found && { ...found, of };
    }
    return this.#offer;
  }
  /** mine are the seats of the booking. */
  get mine() {
    return (this.booking?.seats ?? []).map((s) => this.#chart.byTicketId.get(s.ticketId)).filter((i) => i !== void 0);
  }
  /** order is the booking of any stage but picking. */
  get order() {
    return this.booking;
  }
  /** unheld says that there is an order whose seats others may still buy. */
  get unheld() {
    return this.booking?.holds === false;
  }
  /** wanted are the chosen seats that can be held now. */
  get wanted() {
    return [...this.picked].filter((i) => this.free(i));
  }
  /** size counts what is chosen. */
  get size() {
    return this.picked.size + [...this.places.values()].reduce((sum, n) => sum + n, 0);
  }
  /** price of one seat without fees, in minor units. */
  price(i) {
    return this.prices.get(this.#category(i)) ?? 0;
  }
  /** alone is what one seat costs, bought alone, with all fees. */
  alone(i) {
    return this.alones.get(this.#category(i)) ?? 0;
  }
  #category(i) {
    return this.#chart.categories[this.#chart.category[i]].name;
  }
  /** costs is what is held, or would be now: all in, and what of it is which fee. */
  get costs() {
    if (this.stage !== "picking") return { total: this.order.total.amount, fees: this.order.fees ?? [] };
    const prices = this.wanted.map((i) => this.price(i));
    for (const a of this.#event.areas) prices.push(...new Array(this.places.get(a.area) ?? 0).fill(this.prices.get(a.category) ?? 0));
    return allIn(prices, this.#event.fees);
  }
  /** toggle chooses a seat or takes it out again. */
  toggle(i) {
    if (this.stage !== "picking" || this.busy) return "busy";
    if (this.picked.has(i)) {
      this.picked.delete(i);
      this.gone.delete(i);
      this.#changed(true);
      return "removed";
    }
    if (!this.free(i)) return "not free";
    if (this.size >= this.most) return "full";
    this.picked.add(i);
    this.#changed(true);
    return "added";
  }
  /** most is how many seats and places may be chosen. */
  get most() {
    return Math.min(this.max, this.#event.seatsPerBooking ?? Infinity);
  }
  /**
   * only chooses seats by ticketId in place of those that were, as many as may be, and
   * returns those of them that are not free.
   */
  only(ids) {
    const at = (id) => this.#chart.byTicketId.get(id) ?? -1;
    const free = [...new Set(ids)].filter((id) => at(id) >= 0 && this.free(at(id)));
    this.picked = new Set(free.slice(0, Math.max(0, this.most - (this.size - this.picked.size))).map(at));
    this.#changed(true);
    return ids.filter((id) => !free.includes(id));
  }
  /** restore chooses what was chosen before a reload, also what is gone since. */
  restore(ids, places) {
    this.picked = new Set(ids.map((id) => this.#chart.byTicketId.get(id)).filter((i) => i !== void 0).slice(0, this.most));
    for (const [area, n] of places) if (this.#event.areas.some((a) => a.area === area)) this.setPlaces(area, n);
    this.#changed(true);
  }
  /** chosen are the chosen seats by ticketId. */
  get chosen() {
    return [...this.picked].map((i) => this.#chart.ticketId[i]);
  }
  /** setPlaces wants so many places of an area. */
  setPlaces(area, n) {
    const most = this.most - this.size + (this.places.get(area) ?? 0);
    const q = Math.max(0, Math.min(n, most));
    if (q) this.places.set(area, q);
    else this.places.delete(area);
    this.#changed(true);
  }
  /** mostParty is how many seats the house can be asked for beside the places chosen. */
  get mostParty() {
    return Math.min(this.max, this.#event.seatsPerBooking ?? 100) - (this.size - this.picked.size);
  }
  /** setParty says how many seats the house is to choose. */
  setParty(n) {
    this.party = Math.max(1, Math.min(n, this.mostParty));
    this.#changed(true);
  }
  /** setWish says which seats the house is to choose among. */
  setWish(wish) {
    this.wish = wish;
    this.#bestKey = newKey();
    this.#changed();
  }
  /** clear takes everything out. */
  clear() {
    this.picked.clear();
    this.places.clear();
    this.gone.clear();
    this.#changed(true);
  }
  /** hold asks for everything that is chosen and free: all of it, or nothing. */
  hold() {
    return this.#busily(async () => {
      const body = {};
      const seats = this.wanted;
      if (seats.length) body.ticketIds = seats.map((i) => this.#chart.ticketId[i]);
      if (this.places.size) body.areas = this.#areas;
      for (const i of seats) this.#ours.add(i);
      await this.#askFor({ key: this.#key, body, at: Date.now() });
    });
  }
  /** repeat asks again for a hold that had no answer, as the map shows that somebody has its seats. */
  #repeat(asked) {
    return this.#busily(async () => {
      try {
        await this.#askFor(asked);
      } catch (err) {
        if (!problem(err).passing) throw err;
      }
    });
  }
  async #askFor(asked) {
    try {
      await this.#ask(asked);
    } catch (err) {
      const p = problem(err);
      if (!p.passing) {
        this.#key = newKey();
        this.#ours.clear();
      }
      this.#lose(p.seats ?? []);
      throw p;
    }
  }
  /** instead holds what is offered in place of what is chosen. */
  async instead() {
    const { offer } = this;
    if (!offer || this.busy) return;
    this.picked = new Set(offer.seats);
    this.#changed(true);
    await this.hold();
  }
  /** best has the house choose seats, and holds them with the places chosen. */
  best() {
    return this.#busily(async () => {
      const body = { bestAvailable: { quantity: Math.min(this.party, this.mostParty), ...this.wish } };
      if (this.places.size) body.areas = this.#areas;
      try {
        await this.#ask({ key: this.#bestKey, body, at: Date.now() });
      } catch (err) {
        const p = problem(err);
        if (!p.passing) this.#bestKey = newKey();
        throw p.code === "seats_taken" ? new Problem({ ...p, code: "best_taken" }) : p;
      }
    });
  }
  /** ask sends a hold, and keeps it until it is answered. Sent again it is the same one. */
  async #ask(asked) {
    const { key, body } = asked;
    this.#kept.setItem(this.#askedStorage, JSON.stringify(asked));
    try {
      this.#take(await this.#api.call("POST", `/v1/bookings/${this.#event.id}`, { body, key }));
    } catch (err) {
      const p = problem(err);
      if (p.passing) {
        if (p.status !== 429) this.#unanswered = asked;
        throw p;
      }
      this.#unanswered = null;
      this.#kept.removeItem(this.#askedStorage);
      throw p;
    }
    this.#kept.removeItem(this.#askedStorage);
  }
  get #areas() {
    return [...this.places].map(([area, quantity]) => ({ area, quantity }));
  }
  /** lose marks seats that are gone, by ticketId. */
  #lose(gone) {
    for (const id of gone) {
      const i = this.#chart.byTicketId.get(id);
      if (i !== void 0) this.gone.add(i);
    }
  }
  /** extend asks for more time, within the cap. */
  extend() {
    return this.#busily(async () => {
      const a = await this.#api.call("POST", `/v1/bookings/${this.order.bookingId}/extend`);
      Object.assign(this.order, { holds: a.holds ?? true, expiresAt: a.expiresAt, cap: a.cap ?? this.order.cap });
      this.#tell({ what: "extended" });
    });
  }
  /** giveBack ends the hold, and a payment under way; the seats stay chosen. */
  giveBack() {
    return this.#busily(async () => {
      const { stage } = this;
      await this.#api.call("DELETE", `/v1/bookings/${this.order.bookingId}`);
      this.#pickAgain();
      if (stage === "paying") this.#tell({ what: "cancelled" });
    });
  }
  /** pay tries what the shopper pays with, by the name the house gives it, and waits for the verdict. */
  pay(name) {
    return this.#busily(async () => {
      const method = await name();
      const payment = this.#payment?.method === method ? this.#payment : { booking: this.order.bookingId, key: newKey(), method };
      let action;
      try {
        const r = await this.#post(payment);
        Object.assign(this.order, { state: "paying", expiresAt: r.expiresAt ?? this.order.expiresAt });
        action = r.action;
      } catch (err) {
        const p = problem(err);
        if (!p.passing) this.#remember(null);
        if (p.code !== "payment_in_progress") throw p;
      }
      this.stage = "paying";
      this.#verdict();
      this.#wait(action, true);
    });
  }
  /** post sends the payment. Sent again it is the same one, and tells what it waits for now. */
  async #post(payment) {
    const { booking, key, method } = payment;
    this.#remember(payment);
    const r = await this.#api.call("POST", `/v1/bookings/${booking}/payment`, { body: { paymentMethod: method }, key });
    if (this.#payment === payment) this.#remember({ ...payment, attempt: r.attempt.id });
    return r;
  }
  /** wait follows what a payment waits for; go says that the shopper has just asked for it. */
  #wait(action, go) {
    if (!action || this.stage !== "paying") return;
    this.action = action;
    this.#tell({ what: "asked", go });
  }
  /** step has the shopper take the step the payment waits for, and asks what came of it. */
  async step(take) {
    if (this.stepping) return;
    this.stepping = true;
    this.#changed();
    try {
      await take();
      if (this.stage === "paying") await this.#confirm();
    } catch (err) {
      this.#problem(problem(err));
    } finally {
      this.stepping = false;
      this.#changed();
    }
  }
  /** refresh reads the booking from the server. */
  async refresh() {
    if (!this.booking) return;
    const acts = this.#acts;
    try {
      const answer = await this.#api.call("GET", `/v1/bookings/${this.booking.bookingId}`);
      if (acts === this.#acts && !this.#stopped) this.#take(answer);
    } catch (err) {
      if (problem(err).status === 404 && acts === this.#acts) this.#over({ code: "hold_expired" });
    }
  }
  /** adopt follows a booking of this account's that was made elsewhere, if it is one and still open. */
  async adopt(id) {
    const acts = this.#acts;
    try {
      const answer = await this.#api.call("GET", `/v1/bookings/${id}`, { quiet: true });
      if (acts === this.#acts && this.stage === "picking" && (answer.state === "held" || answer.state === "paying")) this.#take(answer);
    } catch (err) {
      problem(err);
    }
  }
  /** declined is why the last payment came to nothing, while another can be tried. */
  get declined() {
    const last = this.stage === "held" ? this.order.attempts?.at(-1) : void 0;
    return last?.state === "failed" ? last.reason ?? "" : null;
  }
  /** elsewhere says that the payment under way was begun in another tab. */
  get elsewhere() {
    return this.stage === "paying" && !this.#payment;
  }
  /** resume finds the booking that is kept, of before a reload, or asks once more for one that had no answer. */
  async resume() {
    const id = this.#kept.getItem(this.#storage);
    if (!id) return this.#askAgain();
    const kept = JSON.parse(this.#kept.getItem(this.#paymentStorage) ?? "null");
    if (kept?.booking === id) this.#payment = kept;
    try {
      this.#take(await this.#api.call("GET", `/v1/bookings/${id}`));
    } catch (err) {
      if (!problem(err).passing) this.#kept.removeItem(this.#storage);
    }
    this.#recall();
  }
  async #askAgain() {
    const asked = JSON.parse(this.#kept.getItem(this.#askedStorage) ?? "null");
    if (!asked || Date.now() - asked.at > FRESH) return;
    try {
      await this.#ask(asked);
    } catch (err) {
      problem(err);
    }
  }
  /** recall asks what the payment of a page that is gone waits for. */
  async #recall() {
    for (let wait = 1e3; this.stage === "paying" && this.#payment && !this.#stopped; wait = Math.min(1e4, wait * 2)) {
      try {
        const { action } = await this.#post(this.#payment);
        return this.#wait(action, false);
      } catch (err) {
        if (!problem(err).passing) return;
      }
      await new Promise((done) => {
        setTimeout(done, wait);
      });
    }
  }
  /** again begins a new order after a finished one. */
  again() {
    this.booking = null;
    this.stage = "picking";
    this.#kept.removeItem(this.#storage);
    this.clear();
  }
  get #storage() {
    return `seatcast.booking.${this.#event.id}`;
  }
  get #askedStorage() {
    return `seatcast.hold.${this.#event.id}`;
  }
  get #paymentStorage() {
    return `seatcast.payment.${this.#event.id}`;
  }
  #remember(payment) {
    this.#payment = payment;
    if (payment) this.#kept.setItem(this.#paymentStorage, JSON.stringify(payment));
    else this.#kept.removeItem(this.#paymentStorage);
  }
  /** take follows what the server says of the booking. */
  #take(answer) {
    this.#unanswered = null;
    const declined = answer.state === "held" && this.#declined(answer.attempts ?? []);
    this.booking = { ...this.booking, holds: true, ...answer };
    const stage = STEADY[answer.state];
    if (!stage) {
      const { lost, reason } = answer;
      if (answer.state === "lost") this.#over({ code: "seats_lost", lost, reason });
      else if (answer.state === "expired") this.#over({ code: reason ?? (answer.attempts ? "payment_ended" : "hold_expired"), lost, reason });
      else this.#over(null);
      return;
    }
    const entered = stage !== this.stage;
    this.stage = stage;
    this.gone.clear();
    this.#kept.setItem(this.#storage, answer.bookingId);
    if (stage !== "paying") this.action = null;
    if (declined || stage === "sold") this.#remember(null);
    if (declined) this.#tell({ what: "declined" });
    if (entered && (answer.state === "sold" || stage === "held" && !declined)) this.#tell({ what: answer.state === "sold" ? "sold" : "held" });
    if (entered && stage === "paying") this.#verdict();
    if (entered && stage === "sold") this.#ripen();
    this.#changed();
  }
  /** declined is the try that failed since we last knew, in this page or before it was reloaded. */
  #declined(attempts) {
    return this.stage === "paying" ? attempts.at(-1) : attempts.find((a) => a.id === this.#payment?.attempt);
  }
  /** over ends the order, for a reason or none. */
  #over(why) {
    this.#pickAgain();
    this.#lose(why?.lost ?? []);
    this.#changed();
    if (why) this.#problem(new Problem(why));
  }
  /** pickAgain goes back to picking with the seats of the booking chosen. */
  #pickAgain() {
    this.#payTurn++;
    this.picked = new Set(this.mine);
    for (const i of this.picked) if (this.#state.status[i] === HELD) this.#ours.add(i);
    this.places = new Map((this.booking?.areas ?? []).map((a) => [a.area, a.quantity]));
    this.booking = null;
    this.stage = "picking";
    this.#key = newKey();
    this.#bestKey = newKey();
    this.action = null;
    this.#remember(null);
    this.#kept.removeItem(this.#storage);
    this.#changed();
  }
  /** verdict asks until the payment has one; while it is unknown nothing is released. */
  async #verdict() {
    const turn = ++this.#payTurn;
    for (let wait = 400; this.stage === "paying" && turn === this.#payTurn && !this.#stopped; wait = Math.min(5e3, wait * 1.5)) {
      await new Promise((done) => {
        setTimeout(done, wait);
      });
      if (turn !== this.#payTurn) return;
      try {
        await this.#confirm();
      } catch (err) {
        return this.#problem(problem(err));
      }
    }
  }
  /** confirm has the house ask who takes the money, now. */
  async #confirm() {
    const turn = this.#payTurn;
    try {
      await this.#api.call("PUT", `/v1/bookings/${this.order.bookingId}/confirm`);
    } catch (err) {
      const p = problem(err);
      if (p.status !== 409 && !p.passing) throw p;
    }
    if (turn === this.#payTurn) await this.refresh();
  }
  /** ripen asks until every ticket is good: that is when the money has arrived. */
  async #ripen() {
    for (let wait = 500; this.stage === "sold" && this.order.tickets?.some((t) => t.status === "pending") && !this.#stopped; wait = Math.min(1e4, wait * 1.6)) {
      await new Promise((done) => {
        setTimeout(done, wait);
      });
      await this.refresh();
    }
  }
  async #busily(f) {
    if (this.busy) return;
    this.busy = true;
    this.#acts++;
    this.#changed();
    try {
      await f();
    } catch (err) {
      await this.#failed(problem(err));
    } finally {
      this.busy = false;
      this.#acts++;
      this.#changed();
    }
  }
  /** failed follows what a problem says of the booking. */
  async #failed(p) {
    const id = this.booking?.bookingId;
    if (!id) return this.#problem(p);
    switch (p.code) {
      case "hold_expired":
      case "unknown_booking":
        return this.#over({ code: p.code });
      case "seats_lost":
        this.#over({ code: p.code, lost: p.seats, reason: p.reason });
        return this.#api.call("DELETE", `/v1/bookings/${id}`).catch(() => {
        });
      // it ends by itself too
      case "booking_final":
        return this.refresh();
      case "event_cancelled":
        await this.refresh();
        if (this.stage !== "picking") this.#problem(p);
        return;
      case "booking_changed":
        await this.refresh();
        return this.#problem(p);
      default:
        return this.#problem(p);
    }
  }
  /** changed tells; another choice is another request. */
  #changed(chosen = false) {
    if (chosen) [this.#key, this.#bestKey] = [newKey(), newKey()];
    this.dispatchEvent(new Event("change"));
  }
  #problem(p) {
    this.dispatchEvent(new CustomEvent("problem", { detail: p }));
  }
  #tell(told) {
    this.dispatchEvent(new CustomEvent("told", { detail: told }));
  }
}

export { Cart };
