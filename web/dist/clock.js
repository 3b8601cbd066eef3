const KEEP = 10;
const JUMP = 5e3;
const ROUGH_JUMP = 2e4;
const ASK = 2e3;
class Clock {
  #local;
  // the device's clock, Unix milliseconds
  #offsets = [];
  #rough = null;
  constructor(local = Date.now) {
    this.#local = local;
  }
  /**
   * heard takes the server's time, in Unix milliseconds, from a message that has
   * just arrived. The way here took a while, so of several samples the one furthest
   * ahead is the nearest to the truth.
   */
  heard(at) {
    const offset = at - this.#local();
    if (this.#offsets.length && Math.abs(offset - Math.max(...this.#offsets)) > JUMP) this.#offsets = [];
    this.#offsets.push(offset);
    if (this.#offsets.length > KEEP) this.#offsets.shift();
  }
  /**
   * heardDate takes a Date header: whole seconds, so only until something
   * finer is heard, and again when the device's clock was changed since.
   */
  heardDate(header) {
    const at = Date.parse(header ?? "");
    if (Number.isNaN(at)) return;
    this.#rough = at + 500 - this.#local();
    if (this.#offsets.length && Math.abs(this.#rough - Math.max(...this.#offsets)) > ROUGH_JUMP) this.#offsets = [];
  }
  /**
   * kept is for how long caches on its way have kept an answer, in ms, by its Date and its Age as
   * RFC 9111 has it. Where the Date is of the future, it is the device's clock that is behind.
   */
  kept(headers) {
    const date = headers.get("Date");
    const at = Date.parse(date ?? "");
    if (at > this.now()) this.heardDate(date);
    return Math.max(0, this.now() - at || 0, Number(headers.get("Age")) * 1e3 || 0);
  }
  /** now is the server's time in Unix milliseconds, as well as it is known. */
  now() {
    const offset = this.#offsets.length ? Math.max(...this.#offsets) : this.#rough ?? 0;
    return this.#local() + offset;
  }
}
function mmss(ms) {
  const s = Math.max(0, Math.ceil(ms / 1e3));
  return `${Math.floor(s / 60)}:${String(s % 60).padStart(2, "0")}`;
}
class Countdown {
  #clock;
  #tick;
  #until = null;
  #timer = 0;
  constructor(clock, tick) {
    this.#clock = clock;
    this.#tick = tick;
  }
  /** until starts counting down to a moment of the server's clock, in Unix milliseconds; null stops. */
  until(at) {
    this.#until = at;
    document.addEventListener("visibilitychange", this.#run);
    this.#run();
  }
  #run = () => {
    clearTimeout(this.#timer);
    if (this.#until === null) {
      document.removeEventListener("visibilitychange", this.#run);
      return;
    }
    const left = Math.max(0, this.#until - this.#clock.now());
    if (left === 0) this.#until = null;
    else this.#timer = setTimeout(() => this.#run(), left % 1e3 || 1e3);
    this.#tick(left);
  };
}
class Deadline {
  #countdown;
  #at = null;
  #timer = 0;
  constructor(clock, tick, ask) {
    this.#countdown = new Countdown(clock, (left) => {
      tick(left);
      if (left === 0) this.#over(ask);
    });
  }
  /** until is when it ends, in Unix milliseconds of the server's clock; null: nothing does. */
  until(at) {
    if (at === this.#at) return;
    this.#at = at;
    clearTimeout(this.#timer);
    this.#countdown.until(at);
  }
  async #over(ask) {
    const at = this.#at;
    await ask();
    if (at === this.#at) this.#timer = setTimeout(() => this.#countdown.until(at), ASK);
  }
}

export { Clock, Countdown, Deadline, mmss };
