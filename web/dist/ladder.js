import { problem, Problem } from './api.js';
import { events, socket } from './stream.js';

const WAITS = {
  hello: 8e3,
  // a stream that has not begun by then is held up on its way
  silence: 4e4,
  // a stream says something at least every 25 s
  climb: 6e5
  // until a stream of events is tried again in place of a socket
};
const CUTS = 3;
const SAYS = { "": "live", redis_unreachable: "late", no_holds: "unheld" };
class Ladder {
  guarded = false;
  #event;
  #path;
  #api;
  #taker;
  #waits;
  #declined = false;
  // whoever would not sign in is asked no more
  #rung = "events";
  #climbAt = 0;
  // when the rung is events again
  #stream = null;
  #coming = false;
  // a stream is there, or will be
  #turn = 0;
  // of streams: what comes of an earlier one comes too late
  #round = 0;
  // of polls: the same
  #polling = false;
  #began = false;
  // the server was heard on this stream
  #asked = 0;
  // ms, which the server wants us to stay away once this stream is cut
  #word = null;
  // what the stream says of the map. Without a word, polls say it
  #cuts = 0;
  #mute = false;
  // the last stream fell silent
  #failures = 0;
  #streamAt = 0;
  // when a stream is looked for again; Infinity: when the server has one
  #down = false;
  // no poll was answered of late
  #last = 0;
  // when something was heard, by the device's clock
  #timers = { poll: 0, open: 0, hello: 0 };
  #watching = 0;
  constructor({ event, api, taker, waits }) {
    this.#event = event;
    this.#path = `/v1/events/${encodeURIComponent(event)}`;
    this.#api = api;
    this.#taker = taker;
    this.#waits = { ...WAITS, ...waits };
  }
  /** start begins with a stream, or with polling. */
  start(stream) {
    this.#streamAt = stream ? 0 : Infinity;
    this.#climb();
    this.#failures = this.#cuts = 0;
    this.#down = this.#mute = false;
    this.again(0);
    this.#watching = setInterval(() => this.watch(), 5e3);
  }
  stop() {
    clearInterval(this.#watching);
    this.pause();
  }
  /** pause brings nothing, until again. */
  pause() {
    this.#close();
    this.#rest();
  }
  /** again goes on from the number we have, a random moment later, or so long after a wait that was asked for. */
  again(within, asked = 0) {
    this.#close();
    const most = within + (this.#failures ? 1e3 * 2 ** Math.min(this.#failures, 5) : 0);
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
  online() {
    this.#climb();
    this.#failures = 0;
    if (this.#streamAt !== Infinity) this.#streamAt = 0;
    this.again(500);
  }
  /** watch ends a stream that says nothing. A second one in a row is held up on its way. */
  watch(within = 3e3) {
    if (!this.#began || Date.now() - this.#last <= this.#waits.silence) return;
    if (this.#mute) {
      this.#fall();
      return;
    }
    this.#mute = true;
    this.#lost(within);
  }
  /** climb has events be tried again. They may be held up, so until they have begun it is polled. */
  #climb() {
    if (this.#rung === "socket" && this.#streamAt !== Infinity && !this.#polling) this.#poll();
    this.#rung = "events";
  }
  #close() {
    this.#turn++;
    this.#stream?.close();
    this.#stream = this.#word = null;
    this.#coming = this.#began = false;
    clearTimeout(this.#timers.open);
    clearTimeout(this.#timers.hello);
  }
  async #open() {
    this.#close();
    const turn = this.#turn;
    const asks = {};
    if (this.#taker.mine) asks.since = this.#taker.mine;
    this.#coming = true;
    if (Date.now() >= this.#climbAt) this.#climb();
    if (this.guarded) {
      const issued = await this.#call("POST", "live-ticket").catch(problem);
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
    const mine = (what) => {
      if (turn === this.#turn) what();
    };
    const hearer = {
      frame: (frame, id) => mine(() => this.#frame(frame, id)),
      cut: () => mine(() => this.#cut()),
      end: (end) => mine(() => this.#ended(end))
    };
    if (this.#rung === "events") {
      const query = new URLSearchParams(Object.entries(asks).map(([k, v]) => [k, String(v)]));
      this.#stream = events(this.#api.url(`${this.#path}/live?${query}`), hearer);
    } else {
      const url = new URL(this.#api.url("/v1/ws"), location.href);
      url.protocol = url.protocol.replace("http", "ws");
      this.#stream = socket(url.href, { sub: `seatmap/${this.#event}`, ...asks }, hearer);
    }
  }
  #frame(frame, id) {
    this.#last = Date.now();
    this.#cuts = 0;
    switch (frame.name) {
      case "hello":
        this.#begin("live");
        break;
      case "degraded":
        this.#asked = frame.data.retry_ms ?? 0;
        this.#begin(SAYS[frame.data.reason] ?? null);
        break;
      case "beat":
        this.#mute = false;
    }
    const turn = this.#turn;
    this.#taker.take(frame, id, this.#word === "live" ? 0 : null);
    if (turn === this.#turn && (frame.name === "snapshot" || frame.name === "delta" || frame.name === "beat")) this.#failures = 0;
  }
  /** begin heeds what the server says of the stream: beside one that is late, or is none, it is polled. */
  #begin(word) {
    this.#began = true;
    clearTimeout(this.#timers.hello);
    this.#word = word;
    if (word) this.#taker.mode(word);
    if (word === "live") this.#rest();
    else if (!this.#polling) this.#poll();
  }
  #cut() {
    if (!this.#began || ++this.#cuts >= CUTS) this.#fall();
    else if (this.guarded) this.#lost(3e3, this.#asked);
    else this.#waiting();
  }
  #ended({ code = "", wait = 0 }) {
    if (code === "ticket_missing" && !this.guarded) {
      this.#taker.guarded();
      return;
    }
    if (code === "not_pushed" || code === "ended") this.#descend(Infinity);
    else if (wait) this.#lost(500, wait);
    else if (code.startsWith("ticket_") || code === "unavailable") this.#lost(3e3);
    else if (!this.#began) this.#fall();
    else if (this.#rung === "socket") this.#lost(3e3);
    else this.#descend(this.#later());
  }
  /** lost opens the stream anew. */
  #lost(within, asked = 0) {
    this.#waiting();
    this.again(within, asked);
  }
  #waiting() {
    this.#word = null;
    if (!this.#polling) this.#taker.mode("waiting");
  }
  /** fall takes the next rung. The polls of the way there say whether the server has a stream at all. */
  #fall() {
    if (this.#rung === "events") {
      this.#rung = "socket";
      this.#climbAt = Date.now() + this.#waits.climb * around();
      this.#descend(0);
    } else {
      this.#rung = "events";
      this.#descend(this.#later());
    }
  }
  /** later is when to look for a stream again. */
  #later() {
    this.#failures++;
    return Date.now() + 1e3 * 2 ** Math.min(this.#failures, 6) * around();
  }
  /** descend polls, until a stream that is looked for from then on has begun. */
  #descend(streamAt) {
    if (this.#began) this.#waiting();
    this.#close();
    this.#streamAt = streamAt;
    if (!this.#polling) this.#poll();
  }
  #rest() {
    this.#round++;
    this.#polling = false;
    clearTimeout(this.#timers.poll);
  }
  async #poll() {
    this.#rest();
    this.#polling = true;
    const round = this.#round;
    let frame = null;
    let wait = 0;
    try {
      const answer = await this.#seatmap();
      if (round !== this.#round) return;
      frame = answer.said;
      this.#polled(answer);
    } catch (err) {
      if (round !== this.#round) return;
      const p = err instanceof Problem ? err : new Problem({ code: "" });
      if (p.code === "ticket_missing" && !this.guarded) {
        this.#taker.guarded();
        return;
      }
      this.#down ||= p.passing;
      wait = p.retryAfter;
      if (this.#word !== "late") this.#taker.mode(p.code === "token_missing" ? "guarded" : p.code.startsWith("pass_") ? "outside" : "waiting");
    }
    if (round !== this.#round) return;
    if (frame && this.#streamAt === Infinity) this.#failures = 0;
    if (frame && !this.#coming && Date.now() >= this.#streamAt) this.#open();
    this.#timers.poll = setTimeout(() => this.#poll(), Math.max(wait, interval(frame)));
  }
  async #seatmap() {
    if (this.guarded) return { said: await this.#call("GET", "seatmap"), age: 0 };
    return this.#api.ask(`${this.#path}/seatmap`);
  }
  #polled({ said: frame, age }) {
    if (!frame.live) {
      this.#streamAt = Infinity;
    } else if (this.#streamAt === Infinity) {
      this.#streamAt = 0;
    } else if (this.#down) {
      this.#rung = "events";
      this.#streamAt = Date.now() + Math.random() * 2e3;
    }
    this.#down = false;
    const round = this.#round;
    this.#taker.take({ name: "snapshot", data: frame }, frame.n, frame.stale && this.#word !== "unheld" ? null : age);
    if (round === this.#round) this.#taker.mode(this.#word ?? (frame.stale ? "late" : "polling"));
  }
  /** call asks for what is guarded, as the shopper. */
  async #call(method, what) {
    try {
      return await this.#api.call(method, `${this.#path}/${what}`, { quiet: this.#declined });
    } catch (err) {
      this.#declined ||= err instanceof Problem && err.code === "token_missing";
      throw err;
    }
  }
}
const around = () => 0.75 + Math.random() / 2;
function interval(frame) {
  const said = Math.min(6e4, Math.max(500, frame?.poll_after_ms ?? 5e3));
  return said * (document.hidden ? 4 : 1) * (0.9 + Math.random() / 5);
}

export { Ladder, WAITS };
