import { Problem } from './api.js';
import { judge } from './state.js';

const SILENCE = 4e4;
const FRAMES = ["hello", "snapshot", "delta", "reset", "beat", "degraded"];
class Feed {
  #path;
  #api;
  #clock;
  #sink;
  #guarded;
  #declined = false;
  // whoever would not sign in is asked no more
  #chart;
  #mine = 0;
  // the number the sink is at
  #floor = 0;
  // no snapshot below it is accepted; only a reset lowers it
  #resuming = false;
  #source = null;
  #timers = { poll: 0, open: 0 };
  #failures = 0;
  #turn = 0;
  // an answer of an earlier turn comes too late
  #last = 0;
  // when something was heard, by the device's clock
  #life = new AbortController();
  constructor({ event, chart, guarded = false, api, clock, sink }) {
    this.#path = `/v1/events/${encodeURIComponent(event)}`;
    this.#chart = chart;
    this.#guarded = guarded;
    this.#api = api;
    this.#clock = clock;
    this.#sink = sink;
  }
  /** start begins with a stream, or with polling. */
  start(stream) {
    this.#sink.mode("connecting");
    if (stream) this.#open();
    else this.#poll();
    const { signal } = this.#life;
    const watching = setInterval(() => this.#watch(), 5e3);
    signal.addEventListener("abort", () => clearInterval(watching));
    addEventListener("online", () => this.#source ? this.#again(0) : this.#descend(), { signal });
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.#watch();
    }, { signal });
  }
  /** stop ends the stream and the polling for good. */
  stop() {
    this.#life.abort();
    this.#close();
  }
  #close() {
    this.#turn++;
    this.#source?.close();
    this.#source = null;
    clearTimeout(this.#timers.poll);
    clearTimeout(this.#timers.open);
  }
  async #open() {
    this.#close();
    const query = new URLSearchParams();
    if (this.#mine) query.set("since", String(this.#mine));
    if (this.#guarded) {
      const turn = this.#turn;
      const issued = await this.#call("POST", "live-ticket").catch(() => null);
      if (turn !== this.#turn) return;
      if (!issued) {
        this.#descend();
        return;
      }
      query.set("ticket", issued.ticket);
    }
    this.#stream(new EventSource(this.#api.url(`${this.#path}/live?${query}`)));
  }
  #stream(source) {
    this.#source = source;
    this.#last = Date.now();
    for (const name of FRAMES) {
      source.addEventListener(name, (e) => {
        if (source === this.#source) this.#take({ name, data: JSON.parse(e.data || "{}") }, Number(e.lastEventId));
      });
    }
    source.onerror = (e) => {
      if (source !== this.#source || "data" in e) return;
      if (source.readyState === EventSource.CLOSED) this.#descend();
      else if (this.#guarded) this.#again(3e3);
      else this.#sink.mode("waiting");
    };
  }
  #take({ name, data }, id) {
    this.#heard();
    if ("at" in data && data.at) this.#clock.heard(data.at);
    switch (name) {
      case "hello":
        this.#resuming = true;
        this.#sink.mode("live");
        if (data.chart && data.chart !== this.#chart) this.#newChart(data.chart);
        break;
      case "snapshot":
        this.#snapshot(data);
        break;
      case "delta":
        this.#delta(data);
        break;
      case "reset":
        this.#floor = data.n;
        this.#mine = 0;
        break;
      case "beat":
        if (id > this.#mine && this.#mine) this.#again(500);
        break;
      case "degraded":
        clearTimeout(this.#timers.poll);
        this.#sink.mode(data.reason === "" ? "live" : data.reason === "no_holds" ? "unheld" : "late");
        if (data.reason) this.#beside();
        break;
    }
  }
  #snapshot(frame) {
    if (frame.chart && frame.chart !== this.#chart) {
      this.#newChart(frame.chart);
      return;
    }
    if (frame.n < Math.max(this.#mine, this.#floor)) return;
    this.#mine = frame.n;
    this.#floor = frame.n;
    this.#failures = 0;
    this.#resuming = true;
    this.#sink.snapshot(frame);
  }
  #delta(frame) {
    const verdict = judge(this.#mine, frame, this.#resuming);
    if (verdict === "old") return;
    if (verdict === "gap") {
      this.#again(500);
      return;
    }
    if (frame.prev === this.#mine) this.#resuming = false;
    this.#mine = frame.n;
    this.#floor = frame.n;
    this.#failures = 0;
    this.#sink.delta(frame);
  }
  async #newChart(sha) {
    this.#close();
    const turn = this.#turn;
    this.#sink.mode("waiting");
    try {
      await this.#sink.chart(sha);
      this.#chart = sha;
      this.#mine = 0;
    } catch {
      this.#failures++;
    }
    if (turn === this.#turn) this.#again(500);
  }
  /** again opens the stream anew, from the number we have, a random moment later. */
  #again(within) {
    this.#close();
    this.#sink.mode("waiting");
    const wait = within + (this.#failures ? 1e3 * 2 ** Math.min(this.#failures, 5) : 0);
    this.#failures++;
    this.#timers.open = setTimeout(() => this.#open(), Math.random() * wait);
  }
  /** beside polls while the stream is open but late. */
  async #beside() {
    const turn = this.#turn;
    const frame = await this.#get().catch(() => null);
    if (turn !== this.#turn) return;
    if (frame) this.#snapshot(frame);
    if (turn === this.#turn) this.#timers.poll = setTimeout(() => this.#beside(), interval(frame));
  }
  #get() {
    return this.#guarded ? this.#call("GET", "seatmap") : this.#api.get(`${this.#path}/seatmap`);
  }
  /** call asks for what is guarded, as the shopper. */
  async #call(method, what) {
    try {
      return await this.#api.call(method, `${this.#path}/${what}`, { quiet: this.#declined });
    } catch (err) {
      this.#declined ||= codeOf(err) === "token_missing";
      throw err;
    }
  }
  /** descend polls, and looks again for a stream when the server has one. */
  #descend() {
    this.#close();
    this.#failures++;
    const wait = 1e3 * 2 ** Math.min(this.#failures, 6);
    this.#poll(Date.now() + wait * (0.75 + Math.random() / 2));
  }
  async #poll(streamAt = Infinity) {
    const turn = this.#turn;
    let frame = null;
    try {
      frame = await this.#get();
      if (turn !== this.#turn) return;
      this.#heard();
      this.#sink.mode(frame.stale ? "late" : "polling");
      if (!frame.live) streamAt = Infinity;
      else if (streamAt === Infinity) streamAt = 0;
      this.#snapshot(frame);
    } catch (err) {
      const code = codeOf(err);
      if (turn === this.#turn && code === "ticket_missing" && !this.#guarded) {
        this.#guarded = true;
        this.#open();
        return;
      }
      if (turn === this.#turn) this.#sink.mode(code === "token_missing" ? "guarded" : code.startsWith("pass_") ? "outside" : "waiting");
    }
    if (turn !== this.#turn) return;
    if (Date.now() >= streamAt) this.#open();
    else this.#timers.poll = setTimeout(() => this.#poll(streamAt), interval(frame));
  }
  #heard() {
    this.#last = Date.now();
    this.#sink.heard();
  }
  #watch() {
    if (this.#source && Date.now() - this.#last > SILENCE) this.#again(3e3);
  }
}
const codeOf = (err) => err instanceof Problem ? err.code : "";
function interval(frame) {
  const said = Math.min(6e4, Math.max(500, frame?.poll_after_ms ?? 5e3));
  return said * (document.hidden ? 4 : 1) * (0.9 + Math.random() / 5);
}

export { Feed };
