// The ladder by which a map comes: Server-Sent Events, a WebSocket where the way lets
// no such stream through, and polling where it lets neither, or where the server says so.
// Below the top it looks again after a while. What comes is in whatever order it came.

import { Problem, problem, type Answer, type Api } from './api';
import type { Mode } from './feed';
import { events, socket, type End, type Frame, type Hearer, type Stream } from './stream';
import type * as wire from './wire';

/** WAITS are how long things take before something is done, in ms. */
export const WAITS = {
  hello: 8000, // a stream that has not begun by then is held up on its way
  silence: 40000, // a stream says something at least every 25 s
  climb: 600000, // until a stream of events is tried again in place of a socket
};

const CUTS = 3; // in a row, and it is not the server that cuts

/** SAYS is what the server's word for a stream means to who looks at the map. */
const SAYS: Record<string, Mode> = { '': 'live', redis_unreachable: 'late', no_holds: 'unheld' };

/** Taker is told what comes. */
export interface Taker {
  readonly mine: number; // to go on from
  take(frame: Frame, id: number, age: number | null): void; // ms since the map was known to be so; null: it is not
  mode(mode: Mode): void;
  guarded(): void; // it is, against what was known
}

interface Options {
  event: string;
  api: Api;
  taker: Taker;
  waits?: Partial<typeof WAITS>;
}

/** Ladder brings the frames of one event, from start until stop, and may be started again. */
export class Ladder {
  guarded = false;
  #event: string;
  #path: string;
  #api: Api;
  #taker: Taker;
  #waits: typeof WAITS;
  #declined = false; // whoever would not sign in is asked no more
  #rung: 'events' | 'socket' = 'events';
  #climbAt = 0; // when the rung is events again
  #stream: Stream | null = null;
  #coming = false; // a stream is there, or will be
  #turn = 0; // of streams: what comes of an earlier one comes too late
  #round = 0; // of polls: the same
  #polling = false;
  #began = false; // the server was heard on this stream
  #asked = 0; // ms, which the server wants us to stay away once this stream is cut
  #word: Mode | null = null; // what the stream says of the map. Without a word, polls say it
  #cuts = 0;
  #mute = false; // the last stream fell silent
  #failures = 0;
  #streamAt = 0; // when a stream is looked for again; Infinity: when the server has one
  #down = false; // no poll was answered of late
  #last = 0; // when something was heard, by the device's clock
  #timers = { poll: 0, open: 0, hello: 0 };
  #watching = 0;

  constructor({ event, api, taker, waits }: Options) {
    this.#event = event;
    this.#path = `/v1/events/${encodeURIComponent(event)}`;
    this.#api = api;
    this.#taker = taker;
    this.#waits = { ...WAITS, ...waits };
  }

  /** start begins with a stream, or with polling. */
  start(stream: boolean): void {
    this.#streamAt = stream ? 0 : Infinity;
    this.#climb();
    this.#failures = this.#cuts = 0;
    this.#down = this.#mute = false;
    this.again(0);
    this.#watching = setInterval(() => this.watch(), 5000);
  }

  stop(): void {
    clearInterval(this.#watching);
    this.pause();
  }

  /** pause brings nothing, until again. */
  pause(): void {
    this.#close();
    this.#rest();
  }

  /** again goes on from the number we have, a random moment later, or so long after a wait that was asked for. */
  again(within: number, asked = 0): void {
    this.#close();
    const most = within + (this.#failures ? 1000 * 2 ** Math.min(this.#failures, 5) : 0);
    const wait = asked + Math.random() * most;
    this.#failures++;
    if (this.#streamAt === Infinity) {
      this.#rest();
      this.#polling = true;
      this.#timers.poll = setTimeout(() => this.#poll(), wait);
      return;
    }
    this.#coming = true;
    if (!most) this.#open();
    else this.#timers.open = setTimeout(() => this.#open(), wait);
  }

  /** online tries everything anew: the device has another network. */
  online(): void {
    this.#climb();
    this.#failures = 0;
    if (this.#streamAt !== Infinity) this.#streamAt = 0;
    this.again(500);
  }

  /** watch ends a stream that says nothing. A second one in a row is held up on its way. */
  watch(within = 3000): void {
    if (!this.#began || Date.now() - this.#last <= this.#waits.silence) return;
    if (this.#mute) {
      this.#fall();
      return;
    }
    this.#mute = true;
    this.#lost(within);
  }

  /** climb has events be tried again. They may be held up, so until they have begun it is polled. */
  #climb(): void {
    if (this.#rung === 'socket' && this.#streamAt !== Infinity && !this.#polling) this.#poll();
    this.#rung = 'events';
  }

  #close(): void {
    this.#turn++;
    this.#stream?.close();
    this.#stream = this.#word = null;
    this.#coming = this.#began = false;
    clearTimeout(this.#timers.open);
    clearTimeout(this.#timers.hello);
  }

  async #open(): Promise<void> {
    this.#close();
    const turn = this.#turn;
    const asks: { since?: number; ticket?: string } = {};
    if (this.#taker.mine) asks.since = this.#taker.mine;
    this.#coming = true;
    if (Date.now() >= this.#climbAt) this.#climb();
    if (this.guarded) {
      const issued = await this.#call<wire.LiveTicket>('POST', 'live-ticket').catch(problem);
      if (turn !== this.#turn) return;
      if (issued instanceof Problem) {
        this.#descend(this.#later() + issued.retryAfter);
        return;
      }
      asks.ticket = issued.ticket;
    }
    this.#last = Date.now();
    this.#asked = 0;
    this.#timers.hello = setTimeout(() => this.#fall(), this.#waits.hello);
    const mine = (what: () => void) => { if (turn === this.#turn) what(); };
    const hearer: Hearer = {
      frame: (frame, id) => mine(() => this.#frame(frame, id)),
      cut: () => mine(() => this.#cut()),
      end: (end) => mine(() => this.#ended(end)),
    };
    if (this.#rung === 'events') {
      const query = new URLSearchParams(Object.entries(asks).map(([k, v]) => [k, String(v)]));
      this.#stream = events(this.#api.url(`${this.#path}/live?${query}`), hearer);
    } else {
      const url = new URL(this.#api.url('/v1/ws'), location.href);
      url.protocol = url.protocol.replace('http', 'ws');
      this.#stream = socket(url.href, { sub: `seatmap/${this.#event}`, ...asks }, hearer);
    }
  }

  #frame(frame: Frame, id: number): void {
    this.#last = Date.now();
    this.#cuts = 0;
    switch (frame.name) {
      case 'hello':
        this.#begin('live');
        break;
      case 'degraded':
        this.#asked = frame.data.retry_ms ?? 0;
        this.#begin(SAYS[frame.data.reason] ?? null); // any other word is about this stream, not about the map
        break;
      case 'beat':
        this.#mute = false;
    }
    const turn = this.#turn;
    this.#taker.take(frame, id, this.#word === 'live' ? 0 : null);
    if (turn === this.#turn && (frame.name === 'snapshot' || frame.name === 'delta' || frame.name === 'beat')) this.#failures = 0;
  }

  /** begin heeds what the server says of the stream: beside one that is late, or is none, it is polled. */
  #begin(word: Mode | null): void {
    this.#began = true;
    clearTimeout(this.#timers.hello);
    this.#word = word;
    if (word) this.#taker.mode(word);
    if (word === 'live') this.#rest();
    else if (!this.#polling) this.#poll();
  }

  #cut(): void {
    if (!this.#began || ++this.#cuts >= CUTS) this.#fall();
    else if (this.guarded) this.#lost(3000, this.#asked); // its ticket is used up: it comes back with another
    else this.#waiting();
  }

  #ended({ code = '', wait = 0 }: End): void {
    if (code === 'ticket_missing' && !this.guarded) {
      this.#taker.guarded();
      return;
    }
    if (code === 'not_pushed' || code === 'ended') this.#descend(Infinity);
    else if (wait) this.#lost(500, wait);
    else if (code.startsWith('ticket_') || code === 'unavailable') this.#lost(3000);
    else if (!this.#began) this.#fall();
    else if (this.#rung === 'socket') this.#lost(3000);
    else this.#descend(this.#later()); // what refuses a stream says why to who polls
  }

  /** lost opens the stream anew. */
  #lost(within: number, asked = 0): void {
    this.#waiting();
    this.again(within, asked);
  }

  #waiting(): void {
    this.#word = null;
    if (!this.#polling) this.#taker.mode('waiting');
  }

  /** fall takes the next rung. The polls of the way there say whether the server has a stream at all. */
  #fall(): void {
    if (this.#rung === 'events') {
      this.#rung = 'socket';
      this.#climbAt = Date.now() + this.#waits.climb * around();
      this.#descend(0);
    } else {
      this.#rung = 'events';
      this.#descend(this.#later());
    }
  }

  /** later is when to look for a stream again. */
  #later(): number {
    this.#failures++;
    return Date.now() + 1000 * 2 ** Math.min(this.#failures, 6) * around();
  }

  /** descend polls, until a stream that is looked for from then on has begun. */
  #descend(streamAt: number): void {
    if (this.#began) this.#waiting();
    this.#close();
    this.#streamAt = streamAt;
    if (!this.#polling) this.#poll();
  }

  #rest(): void {
    this.#round++;
    this.#polling = false;
    clearTimeout(this.#timers.poll);
  }

  async #poll(): Promise<void> {
    this.#rest();
    this.#polling = true;
    const round = this.#round;
    let frame: wire.Polled | null = null;
    let wait = 0;
    try {
      const answer = await this.#seatmap();
      if (round !== this.#round) return;
      frame = answer.said;
      this.#polled(answer);
    } catch (err) {
      if (round !== this.#round) return;
      const p = err instanceof Problem ? err : new Problem({ code: '' });
      if (p.code === 'ticket_missing' && !this.guarded) {
        this.#taker.guarded();
        return;
      }
      this.#down ||= p.passing;
      wait = p.retryAfter;
      if (this.#word !== 'late') this.#taker.mode(p.code === 'token_missing' ? 'guarded' : p.code.startsWith('pass_') ? 'outside' : 'waiting');
    }
    if (round !== this.#round) return; // another chart, or something else took over
    if (frame && this.#streamAt === Infinity) this.#failures = 0;
    if (frame && !this.#coming && Date.now() >= this.#streamAt) this.#open();
    this.#timers.poll = setTimeout(() => this.#poll(), Math.max(wait, interval(frame)));
  }

  async #seatmap(): Promise<Answer<wire.Polled>> {
    if (this.guarded) return { said: await this.#call<wire.Polled>('GET', 'seatmap'), age: 0 };
    return this.#api.ask<wire.Polled>(`${this.#path}/seatmap`);
  }

  #polled({ said: frame, age }: Answer<wire.Polled>): void {
    if (!frame.live) {
      this.#streamAt = Infinity;
    } else if (this.#streamAt === Infinity) {
      this.#streamAt = 0;
    } else if (this.#down) { // it is back, and everybody has noticed
      this.#rung = 'events';
      this.#streamAt = Date.now() + Math.random() * 2000;
    }
    this.#down = false;
    const round = this.#round;
    this.#taker.take({ name: 'snapshot', data: frame }, frame.n, frame.stale && this.#word !== 'unheld' ? null : age);
    if (round === this.#round) this.#taker.mode(this.#word ?? (frame.stale ? 'late' : 'polling')); // else it is of another chart
  }

  /** call asks for what is guarded, as the shopper. */
  async #call<T>(method: string, what: string): Promise<T> {
    try {
      return await this.#api.call<T>(method, `${this.#path}/${what}`, { quiet: this.#declined });
    } catch (err) {
      this.#declined ||= err instanceof Problem && err.code === 'token_missing';
      throw err;
    }
  }
}

/** around is a factor near one, which keeps those who do the same apart. */
const around = () => 0.75 + Math.random() / 2;

/** interval is how long to wait after a poll: as the server said, never all at once. */
function interval(frame: wire.Polled | null): number {
  const said = Math.min(60000, Math.max(500, frame?.poll_after_ms ?? 5000));
  return said * (document.hidden ? 4 : 1) * (0.9 + Math.random() / 5);
}
