import { judge } from './state.js';

const FORGOTTEN = 2e3;
class Reader {
  mine = 0;
  // 0: nothing is
  #floor = 0;
  // no snapshot below it is accepted; only a reset lowers it
  #resuming = false;
  // what follows may begin before our number
  #had = 0;
  // since when we have it, by the device's clock
  #below = 0;
  // since when polls have been below it
  /** hello begins a stream. */
  hello() {
    this.#resuming = true;
    this.#below = 0;
  }
  /** resumed is where an answer that was asked for beside the stream leaves us: in the middle of its frames. */
  resumed() {
    this.#resuming = true;
  }
  /** snapshot says whether this one, which caches have kept for so many ms, is to be shown. */
  snapshot(frame, age) {
    if (frame.n < Math.max(this.mine, this.#floor) && !this.#forgotten(frame, age)) return false;
    this.#be(frame.n);
    this.#resuming = true;
    return true;
  }
  /** delta says whether this one is to be applied; "gap": something is missing before it. */
  delta(frame) {
    const verdict = judge(this.mine, frame, this.#resuming);
    if (verdict !== "apply") return verdict;
    if (frame.prev === this.mine) this.#resuming = false;
    this.#be(frame.n);
    return verdict;
  }
  /** reset forgets what we have: numbers from this one on are true, also where it is below ours. */
  reset(n) {
    this.#be(0);
    this.#floor = n;
  }
  /** forget has the next snapshot be accepted from where we are. */
  forget() {
    this.mine = 0;
  }
  #be(n) {
    this.mine = this.#floor = n;
    this.#had = Date.now();
    this.#below = 0;
  }
  /**
   * forgotten says that a poll tells of a reset, which it has no word for: polls have been below our
   * number for longer than any server is behind another. One that was kept since before we had it is of then.
   */
  #forgotten(frame, age) {
    if (!("poll_after_ms" in frame) || frame.stale || Date.now() - age < this.#had) return false;
    this.#below ||= Date.now();
    return Date.now() - this.#below > FORGOTTEN;
  }
}

export { Reader };
