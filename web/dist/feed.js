import { Followed } from './followed.js';
import { Ladder } from './ladder.js';
import { Reader } from './reader.js';
import { Share } from './share.js';

const TAB = {
  rest: 6e4,
  // hidden for so long, a tab lets go
  ask: 1e4,
  // after a silence of this the one that leads is asked whether it is there
  answer: 5e3
  // and is replaced when it does not say so within that
};
class Feed {
  #path;
  #api;
  #clock;
  #sink;
  #waits;
  #chart;
  #reader = new Reader();
  #ladder;
  #share;
  #push = false;
  #awake = false;
  #mode = "connecting";
  #followed = null;
  // while another tab leads
  #theirs = null;
  // how that one is doing
  #turn = 0;
  // of charts: an answer of an earlier turn comes too late
  #coming = null;
  // a chart that is being fetched
  #resting = 0;
  #life = new AbortController();
  constructor({ event, chart, guarded = false, api, clock, sink, waits }) {
    this.#path = `/v1/events/${encodeURIComponent(event)}`;
    this.#chart = chart;
    this.#api = api;
    this.#clock = clock;
    this.#sink = sink;
    this.#waits = { ...TAB, ...waits };
    const reader = this.#reader;
    this.#ladder = new Ladder({
      event,
      api,
      waits,
      taker: {
        get mine() {
          return reader.mine;
        },
        take: (frame, id, age) => {
          this.#share.say({ is: "frame", frame, id, age });
          this.#take(frame, id, age);
        },
        mode: (mode) => this.#be(mode),
        guarded: () => this.#alone()
      }
    });
    this.#ladder.guarded = guarded;
    this.#share = new Share(`seatcast.live.2 ${new URL(api.url(this.#path), location.href)}`, {
      lead: () => this.#lead(),
      follow: () => this.#follow(),
      heard: (said) => this.#heard(said)
    });
  }
  /** start begins with a stream, or with polling. */
  start(stream) {
    this.#push = stream;
    this.#sink.mode("connecting");
    this.#wake();
    const { signal } = this.#life;
    const pulse = setInterval(() => this.#pulse(), 1e3);
    signal.addEventListener("abort", () => clearInterval(pulse));
    addEventListener("online", () => {
      if (this.#leads) this.#ladder.online();
    }, { signal });
    addEventListener("offline", () => {
      if (this.#leads) this.#be("waiting");
    }, { signal });
    document.addEventListener("visibilitychange", () => this.#seen(), { signal });
    addEventListener("pagehide", () => this.#rest(), { signal });
    addEventListener("pageshow", () => this.#seen(), { signal });
    document.addEventListener("freeze", () => this.#rest(), { signal });
    document.addEventListener("resume", () => this.#seen(), { signal });
    this.#seen();
  }
  /** stop ends the stream and the polling for good. */
  stop() {
    this.#life.abort();
    clearTimeout(this.#resting);
    this.#let();
  }
  get #leads() {
    return this.#awake && !this.#followed;
  }
  /** seen lets a tab that nobody looks at go, after a while. */
  #seen() {
    clearTimeout(this.#resting);
    if (document.hidden) {
      this.#resting = setTimeout(() => this.#rest(), this.#waits.rest);
      return;
    }
    this.#wake();
    this.#ladder.watch(300);
  }
  #wake() {
    if (this.#awake || this.#life.signal.aborted) return;
    this.#awake = true;
    if (this.#ladder.guarded) this.#ladder.start(this.#push);
    else this.#share.join();
  }
  /** rest waits to be woken, and goes on then from what is shown. */
  #rest() {
    if (!this.#awake) return;
    this.#let();
    this.#wait();
  }
  #let() {
    this.#awake = false;
    this.#turn++;
    this.#share.leave();
    this.#ladder.stop();
    this.#followed?.stop();
    this.#followed = null;
  }
  /** alone is what a tab is at a map that turns out to be guarded. */
  #alone() {
    this.#rest();
    this.#ladder.guarded = true;
    this.#wake();
  }
  #lead() {
    this.#followed?.stop();
    this.#followed = null;
    this.#turn++;
    this.#ladder.start(this.#push);
  }
  #follow() {
    this.#turn++;
    this.#ladder.stop();
    this.#theirs = null;
    this.#wait();
    const followed = this.#followed = new Followed({
      api: this.#api,
      path: this.#path,
      reader: this.#reader,
      take: async ({ said: data, age }) => {
        if (this.#coming || data.chart !== this.#chart) {
          await (this.#coming?.known ?? this.#newChart(data.chart));
          return false;
        }
        this.#reader.resumed();
        this.#take({ name: "map" in data ? "snapshot" : "delta", data }, data.n, age);
        this.#reader.resumed();
        return true;
      },
      caught: (up) => {
        if (up && !("stale" in up.said && up.said.stale)) this.#sink.heard(this.#clock.now() - up.age);
        const mode = up ? this.#theirs : "waiting";
        if (mode && mode !== this.#mode) this.#be(mode);
      }
    }, this.#waits.ask);
    this.#share.say({ is: "who" });
    followed.missed(0);
  }
  #be(mode) {
    this.#mode = mode;
    this.#sink.mode(mode);
    if (this.#share.leads) this.#tell();
  }
  /** wait says that what is shown may not be all, once something is. */
  #wait() {
    if (this.#mode !== "connecting" && this.#mode !== "waiting") this.#be("waiting");
  }
  #tell() {
    this.#share.say({ is: "how", mode: this.#mode, n: this.#reader.mine });
  }
  /** heard takes the word of another tab. */
  #heard(said) {
    if (!this.#followed) {
      if (said.is === "who" && this.#share.leads) this.#tell();
      return;
    }
    switch (said.is) {
      case "frame":
        this.#followed.heard();
        this.#take(said.frame, said.id, said.age);
        break;
      case "how":
        this.#followed.heard();
        this.#theirs = said.mode;
        if (said.n > this.#reader.mine) this.#missed(said.n);
        else if (said.n < this.#reader.mine) this.#followed.missed(said.n);
        if (!this.#followed.asking && this.#mode !== said.mode) this.#be(said.mode);
    }
  }
  /** pulse replaces a tab that leads and says nothing. */
  #pulse() {
    const followed = this.#followed;
    if (!followed || followed.silence <= this.#waits.ask) return;
    if (followed.silence <= this.#waits.ask + this.#waits.answer * (1 + Math.random())) {
      this.#share.say({ is: "who" });
      return;
    }
    followed.heard();
    this.#share.seize();
  }
  #take(frame, id, age) {
    if (this.#current(frame, id, age ?? 0) && age !== null && !this.#followed?.asking) this.#sink.heard(this.#clock.now() - age);
  }
  /** current shows what is new in a frame, and says whether that is now all that the frame knows of. */
  #current({ name, data }, id, age) {
    if (name === "hello" || name === "beat") this.#clock.heard(data.at);
    switch (name) {
      case "hello":
        this.#reader.hello();
        if (!data.chart || data.chart === this.#chart) return data.n === this.#reader.mine;
        this.#newChart(data.chart);
        return false;
      case "snapshot":
        if (data.chart && data.chart !== this.#chart) {
          this.#newChart(data.chart);
          return false;
        }
        if (!this.#reader.snapshot(data, age)) return false;
        this.#sink.snapshot(data);
        return true;
      case "delta": {
        if (this.#coming) return false;
        const verdict = this.#reader.delta(data);
        if (verdict === "apply") this.#sink.delta(data);
        if (verdict === "gap") this.#missed(data.n);
        return verdict !== "gap";
      }
      case "reset":
        this.#reader.reset(data.n);
        return false;
      case "beat":
        if (!this.#reader.mine) return false;
        if (id > this.#reader.mine) this.#missed(id);
        return id <= this.#reader.mine;
      default:
        return false;
    }
  }
  /** missed makes up for frames that did not come. */
  #missed(upTo) {
    if (this.#followed) {
      this.#wait();
      this.#followed.missed(upTo);
      return;
    }
    this.#be("waiting");
    this.#ladder.again(500);
  }
  async #newChart(sha) {
    const turn = ++this.#turn;
    this.#ladder.pause();
    this.#be("waiting");
    const coming = this.#coming?.sha === sha ? this.#coming : { sha, known: this.#sink.chart(sha).then(() => true, () => false) };
    this.#coming = coming;
    const known = await coming.known;
    if (this.#coming === coming) this.#coming = null;
    if (known) {
      this.#chart = sha;
      this.#reader.forget();
    }
    if (turn !== this.#turn) return;
    if (this.#followed) this.#followed.missed(0);
    else this.#ladder.again(500);
  }
}

export { Feed };
