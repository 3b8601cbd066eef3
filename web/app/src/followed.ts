// What a tab does that hears from another: it keeps an eye on that one, and asks the
// server itself for what it has missed.

import type { Answer, Api } from './api';
import type { Reader } from './reader';
import type * as wire from './wire';

const TRIES = 8; // then the next frame is waited for

interface Options {
  api: Api;
  path: string; // of the event
  reader: Reader;
  take(answer: Answer<wire.Polled | wire.Since>): Promise<boolean>; // false: it is of a chart that was not there
  caught(up: Answer<wire.Polled | wire.Since> | null): void; // with this answer we know all; null: there was none
}

/** Followed is the tab that leads, as one that follows sees it. */
export class Followed {
  asking = false; // something is missing
  #options: Options;
  #last: number;
  #wanted = 0;
  #over = false;

  /** Of one that was not heard yet it is known for so long that it is silent. */
  constructor(options: Options, silent: number) {
    this.#options = options;
    this.#last = Date.now() - silent;
  }

  stop(): void {
    this.#over = true;
  }

  heard(): void {
    this.#last = Date.now();
  }

  /** silence is for how long nothing was heard, in ms. */
  get silence(): number {
    return Date.now() - this.#last;
  }

  /** missed asks for what there is up to a number. */
  missed(upTo: number): void {
    this.#wanted = Math.max(this.#wanted, upTo);
    if (!this.asking) this.#ask();
  }

  async #ask(): Promise<void> {
    this.asking = true;
    for (let n = 0; n < TRIES && !await this.#once(); n++) {
      await new Promise((done) => setTimeout(done, 500 * 2 ** Math.min(n, 4) * (0.75 + Math.random() / 2)));
    }
    this.asking = false;
    this.#wanted = 0;
  }

  /** once asks, and says whether that was all, or is no more of interest. */
  async #once(): Promise<boolean> {
    const { api, path, reader, take, caught } = this.#options;
    const mine = reader.mine;
    const answer = await api.ask<wire.Polled | wire.Since>(`${path}/seatmap${mine ? `?since=${mine}` : ''}`).catch(() => null);
    if (this.#over) return true;
    if (!answer) {
      caught(null);
      return false;
    }
    const taken = await take(answer);
    if (this.#over) return true;
    if (reader.mine < mine) this.#wanted = 0; // what we had was lost, and the number with it
    // A server below what we had when we asked is behind, or has lost it.
    const all = taken && reader.mine >= this.#wanted && answer.said.n >= Math.min(mine, reader.mine);
    if (all) caught(answer);
    return all;
  }
}
