// The server's time. Countdowns are measured by it, never by the clock of the
// shopper's device, and never by counting ticks: a throttled tab ticks late.

const KEEP = 10; // samples
const JUMP = 5000; // ms by which the device's clock was certainly changed
const ROUGH_JUMP = 20000; // the same by a Date header, which may have been long on its way
const ASK = 2000; // ms between questions what has become of something that should be over

/** Clock estimates the server's time from what the server says. */
export class Clock {
  #local: () => number; // the device's clock, Unix milliseconds
  #offsets: number[] = [];
  #rough: number | null = null;

  constructor(local = Date.now) {
    this.#local = local;
  }

  /**
   * heard takes the server's time, in Unix milliseconds, from a message that has
   * just arrived. The way here took a while, so of several samples the one furthest
   * ahead is the nearest to the truth.
   */
  heard(at: number): void {
    const offset = at - this.#local();
    if (this.#offsets.length && Math.abs(offset - Math.max(...this.#offsets)) > JUMP) this.#offsets = [];
    this.#offsets.push(offset);
    if (this.#offsets.length > KEEP) this.#offsets.shift();
  }

  /**
   * heardDate takes a Date header: whole seconds, so only until something
   * finer is heard, and again when the device's clock was changed since.
   */
  heardDate(header: string | null): void {
    const at = Date.parse(header ?? '');
    if (Number.isNaN(at)) return;
    this.#rough = at + 500 - this.#local();
    if (this.#offsets.length && Math.abs(this.#rough - Math.max(...this.#offsets)) > ROUGH_JUMP) this.#offsets = [];
  }

  /**
   * kept is for how long caches on its way have kept an answer, in ms, by its Date and its Age as
   * RFC 9111 has it. Where the Date is of the future, it is the device's clock that is behind.
   */
  kept(headers: Headers): number {
    const date = headers.get('Date');
    const at = Date.parse(date ?? '');
    if (at > this.now()) this.heardDate(date);
    return Math.max(0, this.now() - at || 0, Number(headers.get('Age')) * 1000 || 0);
  }

  /** now is the server's time in Unix milliseconds, as well as it is known. */
  now(): number {
    const offset = this.#offsets.length ? Math.max(...this.#offsets) : (this.#rough ?? 0);
    return this.#local() + offset;
  }
}

/** mmss writes a duration as 4:05, rounding up so that 0:00 means over. */
export function mmss(ms: number): string {
  const s = Math.max(0, Math.ceil(ms / 1000));
  return `${Math.floor(s / 60)}:${String(s % 60).padStart(2, '0')}`;
}

/** Countdown calls back each second with the milliseconds left, last with 0. */
export class Countdown {
  #clock: Clock;
  #tick: (left: number) => void;
  #until: number | null = null;
  #timer = 0;

  constructor(clock: Clock, tick: (left: number) => void) {
    this.#clock = clock;
    this.#tick = tick;
  }

  /** until starts counting down to a moment of the server's clock, in Unix milliseconds; null stops. */
  until(at: number | null): void {
    this.#until = at;
    document.addEventListener('visibilitychange', this.#run);
    this.#run();
  }

  #run = (): void => {
    clearTimeout(this.#timer);
    if (this.#until === null) {
      document.removeEventListener('visibilitychange', this.#run);
      return;
    }
    const left = Math.max(0, this.#until - this.#clock.now());
    if (left === 0) this.#until = null;
    else this.#timer = setTimeout(() => this.#run(), left % 1000 || 1000);
    this.#tick(left);
  };
}

/**
 * Deadline counts down to the end of something, and then asks what has become of it,
 * again and again while it is not told of another: the server may give it longer than it
 * says, and the device's clock may have been changed.
 */
export class Deadline {
  #countdown: Countdown;
  #at: number | null = null;
  #timer = 0;

  constructor(clock: Clock, tick: (left: number) => void, ask: () => Promise<void>) {
    this.#countdown = new Countdown(clock, (left) => {
      tick(left);
      if (left === 0) this.#over(ask);
    });
  }

  /** until is when it ends, in Unix milliseconds of the server's clock; null: nothing does. */
  until(at: number | null): void {
    if (at === this.#at) return;
    this.#at = at;
    clearTimeout(this.#timer);
    this.#countdown.until(at);
  }

  async #over(ask: () => Promise<void>): Promise<void> {
    const at = this.#at;
    await ask();
    if (at === this.#at) this.#timer = setTimeout(() => this.#countdown.until(at), ASK);
  }
}
