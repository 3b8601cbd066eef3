const TRIES = 8;
class Followed {
  asking = false;
  // something is missing
  #options;
  #last;
  #wanted = 0;
  #over = false;
  /** Of one that was not heard yet it is known for so long that it is silent. */
  constructor(options, silent) {
    this.#options = options;
    this.#last = Date.now() - silent;
  }
  stop() {
    this.#over = true;
  }
  heard() {
    this.#last = Date.now();
  }
  /** silence is for how long nothing was heard, in ms. */
  get silence() {
    return Date.now() - this.#last;
  }
  /** missed asks for what there is up to a number. */
  missed(upTo) {
    this.#wanted = Math.max(this.#wanted, upTo);
    if (!this.asking) this.#ask();
  }
  async #ask() {
    this.asking = true;
    for (let n = 0; n < TRIES && !await this.#once(); n++) {
      await new Promise((done) => setTimeout(done, 500 * 2 ** Math.min(n, 4) * (0.75 + Math.random() / 2)));
    }
    this.asking = false;
    this.#wanted = 0;
  }
  /** once asks, and says whether that was all, or is no more of interest. */
  async #once() {
    const { api, path, reader, take, caught } = this.#options;
    const mine = reader.mine;
    const answer = await api.ask(`${path}/seatmap${mine ? `?since=${mine}` : ""}`).catch(() => null);
    if (this.#over) return true;
    if (!answer) {
      caught(null);
      return false;
    }
    const taken = await take(answer);
    if (this.#over) return true;
    if (reader.mine < mine) this.#wanted = 0;
    const all = taken && reader.mine >= this.#wanted && answer.said.n >= Math.min(mine, reader.mine);
    if (all) caught(answer);
    return all;
  }
}

export { Followed };
