import { problem } from './api.js';
import { Countdown, mmss } from './clock.js';
import { $, tell } from './dom.js';
import { details } from './house.js';
import { t } from './lang.js';
import { Keep } from './line.js';
import { sentence } from './words.js';

const NEAR = 36e5;
const WARN = 6e4;
const STALE = 2e4;
class Inside {
  #page;
  #keep;
  #until = NaN;
  // ms: when the time inside ends, or has ended
  #kept;
  // the same, as this browser kept it when it was asked for
  #lets = false;
  // people are let in, or may take a place
  #turn = 0;
  // of asking: what was asked before the last of them comes too late
  #countdown;
  #joins;
  // to when places may be taken
  #warned = false;
  #asked = performance.now();
  // when the event was asked for last
  #chosen = false;
  constructor(page) {
    const { event, cart, clock } = this.#page = page;
    this.#keep = new Keep(event.id);
    this.#countdown = new Countdown(clock, (left) => this.#tick(left));
    this.#joins = new Countdown(clock, (left) => {
      if (left > 0) return;
      this.#lets = true;
      this.#show();
    });
    $("line-to").href = `/queue/${encodeURIComponent(event.id)}`;
    tell("line-to", t.home.join);
    tell("inside-says", t.queue.until.inside);
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.#look();
    });
    addEventListener("storage", () => {
      if (this.#keep.place?.until !== this.#kept) this.ask();
    });
    cart.addEventListener("change", () => {
      if (cart.size > 0 && !this.#chosen) this.#look();
      this.#chosen = cart.size > 0;
      this.#show();
    });
    cart.addEventListener("told", (e) => {
      if (e.detail.what === "sold") this.ask();
    });
    this.ask();
  }
  /** ask asks whether there is a line to take a place in, and how long there is, where this browser was let in. */
  async ask() {
    const turn = ++this.#turn;
    const { event, clock } = this.#page;
    this.#kept = this.#keep.place?.until;
    const [room, until] = event.queue ? await Promise.all([this.#room(), this.#time()]) : [null, NaN];
    if (turn !== this.#turn) return;
    if (room !== void 0) {
      const on = room !== null && room.state !== "over";
      const joins = on ? Date.parse(room.joinsAt) : NaN;
      const early = joins > clock.now();
      this.#lets = on && !early;
      this.#joins.until(early ? joins : null);
    }
    const lasts = until > clock.now();
    if (until !== this.#until) {
      this.#until = lasts ? until : NaN;
      this.#warned = false;
    }
    this.#countdown.until(lasts ? until : null);
    this.#show();
  }
  /** room is how the line stands; null: there is none any more, undefined: that is not known. */
  async #room() {
    const { event, api } = this.#page;
    return api.get(`/v1/queue/${encodeURIComponent(event.id)}`).catch((err) => problem(err).status === 404 ? null : void 0);
  }
  /** time is when the time inside ends, in Unix milliseconds. */
  async #time() {
    const { event, api, clock } = this.#page;
    const until = Date.parse(this.#keep.place?.until ?? "");
    if (!(until > clock.now())) return until;
    try {
      return Date.parse((await api.call("GET", `/v1/queue/${encodeURIComponent(event.id)}/me`, { quiet: true })).insideUntil ?? "");
    } catch (err) {
      return problem(err).status === 404 ? NaN : until;
    }
  }
  /** look asks anew: a room may have come, or be over. */
  async #look() {
    const { event, api } = this.#page;
    if (performance.now() - this.#asked < STALE) return;
    this.#asked = performance.now();
    event.queue = (await details(api, event.id).catch(() => event)).queue;
    this.ask();
  }
  #tick(left) {
    $("inside-left").textContent = mmss(left);
    this.#show();
    if (left > WARN || left === 0 || this.#warned || $("inside").hidden) return;
    this.#warned = true;
    if (left > WARN - 5e3) this.#page.say.announce(t.event.minute);
  }
  #show() {
    const { event, cart, clock } = this.#page;
    const left = this.#until - clock.now();
    const picks = event.state !== "cancelled" && cart.stage === "picking" && !cart.seeking;
    $("inside").hidden = !picks || !(left > 0 && left <= NEAR);
    const line = picks && this.#lets && !(left > 0);
    if (line) tell("line-says", sentence({ code: left <= 0 ? "pass_expired" : "pass_required" }));
    $("line").hidden = !line;
  }
}

export { Inside };
