import { problem, Problem, newKey } from './api.js';
import { Asked } from './asked.js';
import { Choice } from './choice.js';
import { kept } from './kept.js';
import { SOLD, HELD, AVAILABLE } from './state.js';

const SETTLE = 500;
const SHOWN = { held: HELD, paying: HELD, sold: SOLD };
const STEADY = { held: "held", paying: "paying", sold: "sold", refunded: "sold" };
class Cart extends Choice {
  stage = "picking";
  booking = null;
  // the server's answer
  busy = false;
  seeking = false;
  // whether there is an order is not known yet; busy with that
  action = null;
  // what the payment waits for
  stepping = false;
  // the shopper is at it
  trying = false;
  // a payment is being sent; busy with that
  declined = null;
  // why the last payment came to nothing, until another is tried or another means chosen
  #api;
  #kept;
  #stopped = false;
  #payment = null;
  #payTurn = 0;
  #acts = 0;
  // an answer that was asked for before the last of them comes too late
  #reads = 0;
  // asked for, of the order
  #read = 0;
  // the last of them that was answered; those before it come too late
  #asking = 0;
  // timer
  #asked;
  constructor(api, event, where) {
    super(event);
    this.#api = api;
    this.#kept = where;
    this.#asked = new Asked(api, event.id, where);
  }
  /** stop asks the server nothing more by itself. */
  stop() {
    this.#stopped = true;
    clearTimeout(this.#asking);
  }
  /** seen follows changes of the map: what is free, what was chosen and is gone, and what has become of the order's seats. */
  seen(seats) {
    const picking = this.stage === "picking";
    const first = !this.known;
    const lost = this.heard(seats);
    if (lost.length) this.#tell({ what: "lost", seats: lost });
    if (first || seats.some((i) => this.concerns(i))) this.changed();
    if (this.#asked.lost && !this.#asked.fresh && !this.#missing) this.#giveUp();
    const mine = picking ? null : new Set(this.mine);
    if (mine && !this.busy && seats.some((i) => mine.has(i) && this.state.status[i] !== SHOWN[this.stage])) this.#soon(Math.random() * SETTLE);
    this.#look();
  }
  /** unsure are the seats of a hold without an answer: they may be this shopper's. */
  get unsure() {
    return new Set(this.at(this.#asked.lost?.ticketIds ?? []));
  }
  /** missing says that such a hold is to be asked for again: somebody has its seats, of which some are still chosen, or the map cannot show who has them. */
  get #missing() {
    const { lost, wanted } = this.#asked;
    if (!lost?.ticketIds) return wanted;
    const seats = [...this.unsure];
    return this.known && seats.some((i) => this.picked.has(i)) && seats.some((i) => this.state.status[i] !== AVAILABLE);
  }
  /** look asks for it, in a moment. */
  #look() {
    if (this.stage === "picking" && !this.busy && this.#missing) this.#soon(this.#asked.wait);
  }
  /** soon asks, in so many ms, for what the map says there is news of. */
  #soon(wait) {
    if (this.#asking || this.#stopped) return;
    this.#asking = setTimeout(() => {
      this.#asking = 0;
      if (this.stage !== "picking") this.refresh();
      else if (this.#missing) this.#repeat();
    }, wait);
  }
  /** giveUp has the seats of a hold without an answer be those of whoever the map says has them. */
  #giveUp() {
    for (const i of this.unsure) this.ours.delete(i);
    this.#asked.forget();
  }
  /** mine are the seats of the booking. */
  get mine() {
    return this.at((this.booking?.seats ?? []).map((s) => s.ticketId));
  }
  /** order is the booking of any stage but picking. */
  get order() {
    return this.booking;
  }
  /** unheld says that there is an order whose seats others may still buy. */
  get unheld() {
    return this.booking?.holds === false;
  }
  /** costs is what is held, or would be now: all in, and what of it is which fee. */
  get costs() {
    return this.stage === "picking" ? super.costs : { total: this.order.total.amount, fees: this.order.fees ?? [] };
  }
  /** hold asks for everything that is chosen and free: all of it, or nothing. */
  hold() {
    return this.#busily(async () => {
      const body = {};
      const seats = this.wanted;
      if (seats.length) body.ticketIds = seats.map((i) => this.chart.ticketId[i]);
      if (this.places.size) body.areas = this.areas;
      for (const i of seats) this.ours.add(i);
      try {
        await this.#ask(body);
      } catch (err) {
        throw this.#refused(problem(err));
      }
    });
  }
  /**
   * ask asks for a hold. One that has no answer is asked for first: if it is there it
   * is the order, with the seats that are asked for now if it can have them.
   */
  async #ask(body) {
    const { lost } = this.#asked;
    const same = JSON.stringify(lost) === JSON.stringify(body);
    const there = lost && await this.#asked.again(false).catch((err) => {
      const p = problem(err);
      if (this.#asked.lost || same && p.code !== "hold_expired") throw p;
      return null;
    });
    this.#take(there ?? await this.#asked.send(body));
    if (there && !same && this.stage === "held") await this.#exchange(body.ticketIds ?? []);
  }
  /** exchange gives the order other seats. */
  async #exchange(ticketIds) {
    const has = new Set((this.order.seats ?? []).map((s) => s.ticketId));
    if (!ticketIds.length || ticketIds.length === has.size && ticketIds.every((id) => has.has(id))) return;
    try {
      this.#take(await this.#api.call("PUT", `/v1/bookings/${this.order.bookingId}/seats`, { body: { ticketIds } }));
    } catch (err) {
      const p = problem(err);
      if (p.code !== "seats_taken") throw p;
      this.#tell({ what: "lost", seats: this.at(p.seats ?? []) });
    }
  }
  /** repeat asks again for a hold that had no answer. Nobody has told it to, so it says only what has become of seats that are chosen. */
  #repeat() {
    const unsure = this.unsure;
    return this.#busily(async () => {
      try {
        this.#take(await this.#asked.again(true));
      } catch (err) {
        this.#refused(problem(err));
        const lost = this.lost.filter((i) => unsure.has(i));
        if (lost.length) this.#tell({ what: "lost", seats: lost });
      }
    });
  }
  /** refused follows what a problem says of the seats that were asked for, and returns it. */
  #refused(p) {
    if (!p.passing && !this.#asked.lost) this.ours.clear();
    for (const i of this.at(p.seats ?? [])) this.gone.add(i);
    return p;
  }
  /** instead holds what is offered in place of what is chosen. */
  async instead() {
    const { offer } = this;
    if (!offer || this.busy) return;
    this.picked = new Set(offer.seats);
    this.changed(true);
    await this.hold();
  }
  /** best has the house choose seats, and holds them with the places chosen. */
  best() {
    return this.#busily(async () => {
      const body = { bestAvailable: { quantity: Math.min(this.party, this.mostParty), ...this.wish } };
      if (this.places.size) body.areas = this.areas;
      try {
        await this.#ask(body);
      } catch (err) {
        const p = problem(err);
        throw p.code === "seats_taken" ? new Problem({ ...p, code: "best_taken" }) : p;
      }
    });
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
  async pay(name) {
    if (this.busy) return;
    this.trying = true;
    this.declined = null;
    await this.#busily(async () => {
      try {
        const action = await this.#try(await name());
        this.stage = "paying";
        this.#verdict();
        this.#wait(action, true);
      } finally {
        this.trying = false;
      }
    });
  }
  /** try sends a payment, or finds one under way, and returns what it waits for. */
  async #try(method) {
    const payment = this.#payment?.method === method ? this.#payment : { booking: this.order.bookingId, key: newKey(), method };
    try {
      const r = await this.#post(payment);
      Object.assign(this.order, { state: "paying", expiresAt: r.expiresAt ?? this.order.expiresAt });
      return r.action;
    } catch (err) {
      const p = problem(err);
      if (!p.passing) this.#remember(null);
      if (p.code !== "payment_in_progress") throw p;
      return void 0;
    }
  }
  /** other says that something else is chosen to pay with. */
  other() {
    if (this.declined === null) return;
    this.declined = null;
    this.changed();
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
    this.changed();
    try {
      await take();
      if (this.stage === "paying") await this.#confirm();
    } catch (err) {
      this.#problem(problem(err));
    } finally {
      this.stepping = false;
      this.changed();
    }
  }
  /** refresh reads the booking from the server. */
  async refresh() {
    if (!this.booking) return;
    const acts = this.#acts;
    const read = ++this.#reads;
    const inTime = () => acts === this.#acts && read > this.#read && !this.#stopped;
    try {
      const answer = await this.#api.call("GET", `/v1/bookings/${this.booking.bookingId}`);
      if (!inTime()) return;
      this.#read = read;
      this.#take(answer);
    } catch (err) {
      if (problem(err).status === 404 && inTime()) this.#over({ code: "hold_expired" });
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
  /** elsewhere says that the payment under way was begun in another tab, which may be closed by now. */
  get elsewhere() {
    return this.stage === "paying" && !this.#payment;
  }
  /**
   * resume finds the order that is kept, of before a reload, or asks again for a hold that had
   * no answer, until it is known how that stands, and then, where there is none, the last one
   * of another tab. It returns whether that last one is known to be over.
   */
  async resume(last = null) {
    const id = this.#kept.getItem(this.#storage);
    if (!id && !last && !this.#asked.wanted) return false;
    let over = false;
    this.seeking = true;
    await this.#busily(async () => {
      if (id) over = await this.#seek(id, true) && id === last;
      else if (this.#asked.wanted) await this.#seekAsked();
      if (last && last !== id && !this.booking) over = await this.#seek(last, false);
      this.seeking = false;
    });
    this.#recall();
    return over;
  }
  /** seek reads an order until it can be, and returns whether it is over, which is told of this tab's own alone. */
  async #seek(id, own) {
    const payment = kept(this.#kept, this.#paymentStorage);
    if (payment?.booking === id) this.#payment = payment;
    try {
      const answer = await this.#insist(() => !this.booking, () => this.#api.call("GET", `/v1/bookings/${id}`, { quiet: !own }));
      if (!answer || this.booking) return false;
      const over = !STEADY[answer.state];
      if (own || !over) this.#take(answer, true);
      return over;
    } catch (err) {
      const { status } = problem(err);
      this.#payment = null;
      if (own && (status === 403 || status === 404)) this.#kept.removeItem(this.#storage);
      return status === 404;
    }
  }
  async #seekAsked() {
    try {
      const answer = await this.#insist(() => !this.booking && this.#asked.wanted, () => this.#asked.again(true));
      if (answer) this.#take(answer);
    } catch (err) {
      this.#refused(problem(err));
    }
  }
  /** recall asks what the payment of a page that is gone waits for. */
  async #recall() {
    try {
      const receipt = await this.#insist(() => this.stage === "paying" && this.#payment !== null, () => this.#post(this.#payment));
      this.#wait(receipt?.action, false);
    } catch (err) {
      problem(err);
    }
  }
  /** insist makes a call, again while it fails in passing and is wanted, and returns its answer; null: it was not wanted any more. */
  async #insist(wanted, call) {
    for (let wait = 1e3; wanted() && !this.#stopped; wait = Math.min(1e4, wait * 2)) {
      let pause = wait * (0.5 + Math.random());
      try {
        return await call();
      } catch (err) {
        const p = problem(err);
        if (!p.passing) throw p;
        pause = Math.max(pause, p.retryAfter);
      }
      await new Promise((done) => {
        setTimeout(done, pause);
      });
    }
    return null;
  }
  /** again begins a new order after a finished one. */
  again() {
    this.#acts++;
    this.booking = null;
    this.stage = "picking";
    this.#kept.removeItem(this.#storage);
    this.clear();
  }
  get #storage() {
    return `seatcast.booking.${this.event.id}`;
  }
  get #paymentStorage() {
    return `seatcast.payment.${this.event.id}`;
  }
  #remember(payment) {
    this.#payment = payment;
    if (payment) this.#kept.setItem(this.#paymentStorage, JSON.stringify(payment));
    else this.#kept.removeItem(this.#paymentStorage);
  }
  /** take follows what the server says of the booking. Resumed: it is one of before a reload, of which only what is new since is told. */
  #take(answer, resumed = false) {
    const declined = answer.state === "held" ? this.#declined(answer.attempts ?? []) : void 0;
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
    const news = entered && !(resumed && (stage === "held" || !this.#payment));
    this.stage = stage;
    if (declined || stage !== "held") this.declined = declined ? declined.reason ?? "" : null;
    this.gone.clear();
    this.#kept.setItem(this.#storage, answer.bookingId);
    if (stage !== "paying") this.action = null;
    if (declined || stage === "sold") this.#remember(null);
    if (declined) this.#tell({ what: "declined" });
    if (news && (answer.state === "sold" || stage === "held" && !declined)) this.#tell({ what: answer.state === "sold" ? "sold" : "held" });
    if (entered && stage === "paying") this.#verdict();
    if (entered && stage === "sold") this.#ripen();
    this.changed();
  }
  /** declined is the try that failed since we last knew, in this page or before it was reloaded. */
  #declined(attempts) {
    return this.stage === "paying" ? attempts.at(-1) : attempts.find((a) => a.id === this.#payment?.attempt);
  }
  /** over ends the order, for a reason or none. */
  #over(why) {
    this.#pickAgain();
    for (const i of this.at(why?.lost ?? [])) this.gone.add(i);
    this.changed();
    if (why) this.#problem(new Problem(why));
  }
  /** pickAgain goes back to picking with the seats of the booking chosen, unless whoever asked in between was told of its end before. */
  #pickAgain() {
    if (!this.booking) return;
    this.#payTurn++;
    this.#acts++;
    this.picked = new Set(this.mine);
    for (const i of this.picked) if (this.state.status[i] === HELD) this.ours.add(i);
    this.places = new Map((this.booking?.areas ?? []).map((a) => [a.area, a.quantity]));
    this.booking = null;
    this.stage = "picking";
    this.action = null;
    this.declined = null;
    this.#remember(null);
    this.#kept.removeItem(this.#storage);
    this.changed();
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
    this.changed();
    try {
      await f();
    } catch (err) {
      await this.#failed(problem(err));
    } finally {
      this.busy = false;
      this.#acts++;
      this.changed();
      this.#look();
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
  changed(chosen = false) {
    if (chosen) this.#asked.chosen();
    super.changed();
    if (chosen) this.#look();
  }
  #problem(p) {
    this.dispatchEvent(new CustomEvent("problem", { detail: p }));
  }
  #tell(told) {
    this.dispatchEvent(new CustomEvent("told", { detail: told }));
  }
}

export { Cart };
