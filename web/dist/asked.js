import { newKey, problem } from './api.js';
import { kept } from './kept.js';

const FRESH = 6e4;
const AGAIN = { first: 500, most: 1e4 };
class Asked {
  #api;
  #event;
  #kept;
  #lost;
  #wait = AGAIN.first;
  constructor(api, event, where) {
    this.#api = api;
    this.#event = event;
    this.#kept = where;
    this.#lost = kept(where, this.#storage);
  }
  /** lost is what was asked for, and has no answer. */
  get lost() {
    return this.#lost && this.#lost.body;
  }
  /** fresh says that what is lost was asked for a moment ago. */
  get fresh() {
    return this.#lost !== null && Date.now() - this.#lost.at < FRESH;
  }
  /** wanted says that it is also still what is chosen. */
  get wanted() {
    return this.fresh && !this.#lost.other;
  }
  /** wait is how long to wait before it is sent again, in ms: many may be about to. */
  get wait() {
    return this.#wait * (0.5 + Math.random());
  }
  /** chosen says that something else is chosen now. */
  chosen() {
    if (!this.#lost || this.#lost.other) return;
    this.#lost.other = true;
    this.#keep(this.#lost);
  }
  /** send asks for a hold, when nothing is lost. */
  send(body) {
    return this.#send({ key: newKey(), body, at: Date.now() }, false);
  }
  /** again sends once more what is lost. Quiet: nobody has asked for that, so nobody is asked to sign in or led away. */
  again(quiet) {
    return this.#send(this.#lost, quiet);
  }
  /** forget gives up what is lost. */
  forget() {
    this.#lost = null;
    this.#wait = AGAIN.first;
    this.#kept.removeItem(this.#storage);
  }
  async #send(ask, quiet) {
    this.#keep(ask);
    try {
      const answer = await this.#api.call("POST", `/v1/bookings/${this.#event}`, { body: ask.body, key: ask.key, quiet });
      this.forget();
      return answer;
    } catch (err) {
      const p = problem(err);
      if (p.passing && p.status !== 429) this.#lost = ask;
      const heard = p.passing || p.status === 401 || p.code === "token_missing" ? "nothing" : "no";
      if (!this.#lost || heard === "no") this.forget();
      else this.#wait = Math.min(AGAIN.most, Math.max(this.#wait * 2, p.retryAfter));
      throw p;
    }
  }
  #keep(ask) {
    this.#kept.setItem(this.#storage, JSON.stringify(ask));
  }
  get #storage() {
    return `seatcast.hold.${this.#event}`;
  }
}

export { Asked };
