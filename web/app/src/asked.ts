// Asking for a hold. A request without an answer may have been carried out, and then
// the seats are on hold for the shopper, who does not know. So it is kept, also for
// after a reload, until it is known what became of it, and is sent again as it was,
// which the server does not carry out twice. No other is sent before.

import { newKey, problem, type Api } from './api';
import { kept, type Kept } from './kept';
import type * as wire from './wire';

/** Ask is a request for a hold. */
interface Ask {
  key: string;
  body: wire.Take;
  at: number; // Unix milliseconds of the device's clock
  other?: boolean; // than what is chosen now
}

const FRESH = 60000; // ms after which a hold that was never answered is not wanted any more
const AGAIN = { first: 500, most: 10000 }; // ms between repeats

/** Asked asks for the holds of one event, one after the other. */
export class Asked {
  #api: Api;
  #event: string;
  #kept: Kept;
  #lost: Ask | null;
  #wait = AGAIN.first;

  constructor(api: Api, event: string, where: Kept) {
    this.#api = api;
    this.#event = event;
    this.#kept = where;
    this.#lost = kept<Ask>(where, this.#storage); // of before a reload
  }

  /** lost is what was asked for, and has no answer. */
  get lost(): wire.Take | null {
    return this.#lost && this.#lost.body;
  }

  /** fresh says that what is lost was asked for a moment ago. */
  get fresh(): boolean {
    return this.#lost !== null && Date.now() - this.#lost.at < FRESH;
  }

  /** wanted says that it is also still what is chosen. */
  get wanted(): boolean {
    return this.fresh && !this.#lost!.other;
  }

  /** wait is how long to wait before it is sent again, in ms: many may be about to. */
  get wait(): number {
    return this.#wait * (0.5 + Math.random());
  }

  /** chosen says that something else is chosen now. */
  chosen(): void {
    if (!this.#lost || this.#lost.other) return;
    this.#lost.other = true;
    this.#keep(this.#lost);
  }

  /** send asks for a hold, when nothing is lost. */
  send(body: wire.Take): Promise<wire.Order> {
    return this.#send({ key: newKey(), body, at: Date.now() }, false);
  }

  /** again sends once more what is lost. Quiet: nobody has asked for that, so nobody is asked to sign in or led away. */
  again(quiet: boolean): Promise<wire.Order> {
    return this.#send(this.#lost!, quiet);
  }

  /** forget gives up what is lost. */
  forget(): void {
    this.#lost = null;
    this.#wait = AGAIN.first;
    this.#kept.removeItem(this.#storage);
  }

  async #send(ask: Ask, quiet: boolean): Promise<wire.Order> {
    this.#keep(ask);
    try {
      const answer = await this.#api.call<wire.Order>('POST', `/v1/bookings/${this.#event}`, { body: ask.body, key: ask.key, quiet });
      this.forget();
      return answer;
    } catch (err) {
      const p = problem(err);
      if (p.passing && p.status !== 429) this.#lost = ask;
      const heard = p.passing || p.status === 401 || p.code === 'token_missing' ? 'nothing' : 'no'; // of this ask
      if (!this.#lost || heard === 'no') this.forget();
      else this.#wait = Math.min(AGAIN.most, Math.max(this.#wait * 2, p.retryAfter));
      throw p;
    }
  }

  #keep(ask: Ask): void {
    this.#kept.setItem(this.#storage, JSON.stringify(ask));
  }

  get #storage(): string {
    return `seatcast.hold.${this.#event}`;
  }
}
