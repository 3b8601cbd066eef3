// The live feed of an event's map. It comes down one ladder: a stream of
// numbered frames, and polling where the server says so or no stream holds.

import { Problem, type Api } from './api';
import type { Clock } from './clock';
import { judge } from './state';
import type * as wire from './wire';

const SILENCE = 40000; // a stream says something at least every 25 s
const FRAMES: (keyof wire.Frames)[] = ['hello', 'snapshot', 'delta', 'reset', 'beat', 'degraded'];

/** Mode is how the feed is doing. */
export type Mode =
  | 'connecting' | 'live' | 'polling' | 'waiting'
  | 'late' // what is shown may be behind
  | 'unheld' // only what is sold is shown
  | 'guarded' // nothing is shown without a session
  | 'outside'; // nor to who is not let in

/** Sink is told what the feed learns. */
export interface Sink {
  snapshot(frame: wire.Snapshot): void;
  delta(frame: wire.Delta): void;
  chart(sha: string): Promise<void>; // another chart is in force: fetch it, and forget the map of the old one
  mode(mode: Mode): void;
  heard(): void; // something arrived: what is shown is as of now
}

/** Frame is one of a stream, by its name. */
type Frame = { [K in keyof wire.Frames]: { name: K; data: wire.Frames[K] } }[keyof wire.Frames];

interface Options {
  event: string;
  chart: string;
  guarded?: boolean;
  api: Api;
  clock: Clock;
  sink: Sink;
}

/** Feed keeps a Sink at the truth, from start until stop. */
export class Feed {
  #path: string;
  #api: Api;
  #clock: Clock;
  #sink: Sink;
  #guarded: boolean;
  #declined = false; // whoever would not sign in is asked no more
  #chart: string;
  #mine = 0; // the number the sink is at
  #floor = 0; // no snapshot below it is accepted; only a reset lowers it
  #resuming = false;
  #source: EventSource | null = null;
  #timers = { poll: 0, open: 0 };
  #failures = 0;
  #turn = 0; // an answer of an earlier turn comes too late
  #last = 0; // when something was heard, by the device's clock
  #life = new AbortController();

  constructor({ event, chart, guarded = false, api, clock, sink }: Options) {
    this.#path = `/v1/events/${encodeURIComponent(event)}`;
    this.#chart = chart;
    this.#guarded = guarded;
    this.#api = api;
    this.#clock = clock;
    this.#sink = sink;
  }

  /** start begins with a stream, or with polling. */
  start(stream: boolean): void {
    this.#sink.mode('connecting');
    if (stream) this.#open();
    else this.#poll();
    const { signal } = this.#life;
    const watching = setInterval(() => this.#watch(), 5000);
    signal.addEventListener('abort', () => clearInterval(watching));
    addEventListener('online', () => (this.#source ? this.#again(0) : this.#descend()), { signal });
    document.addEventListener('visibilitychange', () => { if (!document.hidden) this.#watch(); }, { signal });
  }

  /** stop ends the stream and the polling for good. */
  stop(): void {
    this.#life.abort();
    this.#close();
  }

  #close(): void {
    this.#turn++;
    this.#source?.close();
    this.#source = null;
    clearTimeout(this.#timers.poll);
    clearTimeout(this.#timers.open);
  }

  async #open(): Promise<void> {
    this.#close();
    const query = new URLSearchParams();
    if (this.#mine) query.set('since', String(this.#mine));
    if (this.#guarded) {
      const turn = this.#turn;
      const issued = await this.#call<wire.LiveTicket>('POST', 'live-ticket').catch(() => null);
      if (turn !== this.#turn) return;
      if (!issued) {
        this.#descend();
        return;
      }
      query.set('ticket', issued.ticket);
    }
    this.#stream(new EventSource(this.#api.url(`${this.#path}/live?${query}`)));
  }

  #stream(source: EventSource): void {
    this.#source = source;
    this.#last = Date.now();
    for (const name of FRAMES) {
      source.addEventListener(name, (e: MessageEvent<string>) => {
        if (source === this.#source) this.#take({ name, data: JSON.parse(e.data || '{}') } as Frame, Number(e.lastEventId));
      });
    }
    source.onerror = (e) => {
      if (source !== this.#source || 'data' in e) return; // the server's own word "error" comes here too; a cut follows it
      // The browser comes back by itself after a cut; after any answer that
      // is not a stream (204: poll; 503: overload) it gives up for good.
      if (source.readyState === EventSource.CLOSED) this.#descend();
      else if (this.#guarded) this.#again(3000); // its ticket is used up: it comes back with another
      else this.#sink.mode('waiting');
    };
  }

  #take({ name, data }: Frame, id: number): void {
    this.#heard();
    if ('at' in data && data.at) this.#clock.heard(data.at);
    switch (name) {
      case 'hello':
        this.#resuming = true;
        this.#sink.mode('live');
        if (data.chart && data.chart !== this.#chart) this.#newChart(data.chart);
        break;
      case 'snapshot':
        this.#snapshot(data);
        break;
      case 'delta':
        this.#delta(data);
        break;
      case 'reset':
        this.#floor = data.n; // also when it is below ours: then what we have was lost
        this.#mine = 0;
        break;
      case 'beat':
        // Its id is the number we hold as the server knows it: if it is above ours, frames were lost.
        if (id > this.#mine && this.#mine) this.#again(500);
        break;
      case 'degraded':
        clearTimeout(this.#timers.poll);
        this.#sink.mode(data.reason === '' ? 'live' : data.reason === 'no_holds' ? 'unheld' : 'late');
        if (data.reason) this.#beside();
        break;
    }
  }

  #snapshot(frame: wire.Snapshot): void {
    if (frame.chart && frame.chart !== this.#chart) {
      this.#newChart(frame.chart);
      return;
    }
    if (frame.n < Math.max(this.#mine, this.#floor)) return; // never back in time
    this.#mine = frame.n;
    this.#floor = frame.n;
    this.#failures = 0;
    this.#resuming = true; // what follows in a stream may begin before it
    this.#sink.snapshot(frame);
  }

  #delta(frame: wire.Delta): void {
    const verdict = judge(this.#mine, frame, this.#resuming);
    if (verdict === 'old') return;
    if (verdict === 'gap') {
      this.#again(500);
      return;
    }
    if (frame.prev === this.#mine) this.#resuming = false;
    this.#mine = frame.n;
    this.#floor = frame.n;
    this.#failures = 0;
    this.#sink.delta(frame);
  }

  async #newChart(sha: string): Promise<void> {
    this.#close();
    const turn = this.#turn;
    this.#sink.mode('waiting');
    try {
      await this.#sink.chart(sha);
      this.#chart = sha;
      this.#mine = 0;
    } catch {
      this.#failures++; // the next hello or snapshot names it again
    }
    if (turn === this.#turn) this.#again(500);
  }

  /** again opens the stream anew, from the number we have, a random moment later. */
  #again(within: number): void {
    this.#close();
    this.#sink.mode('waiting');
    const wait = within + (this.#failures ? 1000 * 2 ** Math.min(this.#failures, 5) : 0);
    this.#failures++;
    this.#timers.open = setTimeout(() => this.#open(), Math.random() * wait);
  }

  /** beside polls while the stream is open but late. */
  async #beside(): Promise<void> {
    const turn = this.#turn;
    const frame = await this.#get().catch(() => null);
    if (turn !== this.#turn) return;
    if (frame) this.#snapshot(frame);
    if (turn === this.#turn) this.#timers.poll = setTimeout(() => this.#beside(), interval(frame));
  }

  #get(): Promise<wire.Polled> {
    return this.#guarded ? this.#call('GET', 'seatmap') : this.#api.get(`${this.#path}/seatmap`);
  }

  /** call asks for what is guarded, as the shopper. */
  async #call<T>(method: string, what: string): Promise<T> {
    try {
      return await this.#api.call<T>(method, `${this.#path}/${what}`, { quiet: this.#declined });
    } catch (err) {
      this.#declined ||= codeOf(err) === 'token_missing';
      throw err;
    }
  }

  /** descend polls, and looks again for a stream when the server has one. */
  #descend(): void {
    this.#close();
    this.#failures++;
    const wait = 1000 * 2 ** Math.min(this.#failures, 6);
    this.#poll(Date.now() + wait * (0.75 + Math.random() / 2));
  }

  async #poll(streamAt = Infinity): Promise<void> {
    const turn = this.#turn;
    let frame: wire.Polled | null = null;
    try {
      frame = await this.#get();
      if (turn !== this.#turn) return;
      this.#heard();
      this.#sink.mode(frame.stale ? 'late' : 'polling');
      if (!frame.live) streamAt = Infinity;
      else if (streamAt === Infinity) streamAt = 0;
      this.#snapshot(frame);
    } catch (err) {
      const code = codeOf(err);
      if (turn === this.#turn && code === 'ticket_missing' && !this.#guarded) { // it is guarded since this page was opened
        this.#guarded = true;
        this.#open();
        return;
      }
      if (turn === this.#turn) this.#sink.mode(code === 'token_missing' ? 'guarded' : code.startsWith('pass_') ? 'outside' : 'waiting');
    }
    if (turn !== this.#turn) return; // another chart, or something else took over
    if (Date.now() >= streamAt) this.#open();
    else this.#timers.poll = setTimeout(() => this.#poll(streamAt), interval(frame));
  }

  #heard(): void {
    this.#last = Date.now();
    this.#sink.heard();
  }

  #watch(): void {
    if (this.#source && Date.now() - this.#last > SILENCE) this.#again(3000);
  }
}

/** codeOf is the code of a Problem. */
const codeOf = (err: unknown): string => (err instanceof Problem ? err.code : '');

/** interval is how long to wait after a poll: as the server said, never all at once. */
function interval(frame: wire.Polled | null): number {
  const said = Math.min(60000, Math.max(500, frame?.poll_after_ms ?? 5000));
  return said * (document.hidden ? 4 : 1) * (0.9 + Math.random() / 5);
}
