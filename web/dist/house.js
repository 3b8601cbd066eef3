import { Chart, ACCESSIBLE, COMPANION, RESTRICTED } from './chart.js';
import { h } from './dom.js';
import { Doubt } from './doubt.js';
import { Feed } from './feed.js';
import { t } from './lang.js';
import { Filter } from './filter.js';
import { SeatList, describe } from './list.js';
import { inManner } from './locale.js';
import { SeatMap } from './map.js';
import { Prices } from './prices.js';
import { State } from './state.js';
import { price, leftIn, remaining, dotted, money } from './words.js';

async function details(api, id, fresh = false) {
  const event = await api.get(`/v1/events/${encodeURIComponent(id)}`, fresh);
  return { ...event, holds: event.holds ?? true };
}
async function chart(api, sha) {
  return new Chart(sha, await api.get(`/v1/charts/${sha}.json`));
}
class House {
  event;
  state;
  // once it is open
  asOf = null;
  // when what is shown was last known to be so, by the server's clock
  #cart;
  #api;
  #clock;
  #say;
  #watcher;
  #holds;
  #parts;
  #doubt;
  #filter = new Filter();
  #prices;
  #map;
  #list;
  #feed = null;
  #readonly = false;
  #hovered = { what: null, px: 0, py: 0 };
  #life = new AbortController();
  constructor({ event, cart, api, clock, say, watcher, ...roots }) {
    this.event = event;
    this.#cart = cart;
    this.#api = api;
    this.#clock = clock;
    this.#say = say;
    this.#watcher = watcher;
    this.#holds = new Holds(api, event, () => watcher.turned());
    this.#doubt = new Doubt(() => this.asOf, this.#life.signal);
    this.#parts = furnish(roots, this.#doubt.element, {
      view: (which) => {
        this.view = which;
      },
      zoom: (factor) => this.#map.zoom(factor),
      fit: () => this.fit()
    });
    const pick = (i) => this.#choose(i);
    this.#map = new SeatMap(this.#parts, {
      filter: this.#filter,
      events: {
        seat: pick,
        area: (id) => watcher.area(id),
        hover: (what, px, py) => {
          this.#hovered = { what, px, py };
          this.#tooltip();
        },
        here: (section) => this.#here(section),
        shapes: (told) => {
          this.#parts.key.hidden = !told;
        }
      },
      sells: {
        sells: (section) => this.#sells(section),
        holds: (area) => {
          const left = this.state.areas.get(area.id) ?? 0;
          return { wanted: this.#filter.admits(area.category), left: leftIn(this.state, area.id, t.left.left), from: left ? price(cart.alones.get(area.category) ?? 0, event) : "" };
        }
      }
    });
    this.#list = new SeatList(this.#parts.list, { cart, event, filter: this.#filter, pick });
    this.#prices = new Prices(this.#parts.legend, this.#filter, () => this.#filtered());
    cart.addEventListener("change", () => {
      this.#map.looks(cart.wanted, cart.mine, cart.gone);
      this.#tooltip();
    });
  }
  /** open fetches the chart, and begins to follow the map. */
  async open() {
    const first = new State(await chart(this.#api, this.event.chart));
    if (this.#life.signal.aborted) return;
    this.#show(first);
    this.#feed = new Feed({
      event: this.event.id,
      chart: this.event.chart,
      guarded: this.event.guarded,
      api: this.#api,
      clock: this.#clock,
      sink: {
        snapshot: (frame) => this.#apply(this.state.snapshot(frame), false),
        delta: (frame) => this.#apply(this.state.delta(frame), true),
        chart: async (sha) => {
          const [next, now] = await Promise.all([chart(this.#api, sha), details(this.#api, this.event.id)]);
          if (this.#life.signal.aborted) throw new Error("nobody sees it");
          if (now.chart !== sha) throw new Error("the event is on another chart");
          Object.assign(this.event, now);
          this.#show(new State(next));
        },
        mode: (mode) => this.#mode(mode),
        heard: (at) => {
          if (this.asOf !== null && at < this.asOf && this.asOf <= this.#clock.now()) return;
          this.asOf = at;
          this.#parts.asOf.textContent = t.live.asOf(new Date(this.asOf).toLocaleTimeString(inManner()));
        }
      }
    });
    this.#feed.start(this.event.mode === "hot");
  }
  /** stop ends the stream and whatever else goes on by itself. */
  stop() {
    this.#life.abort();
    this.#feed?.stop();
    this.#map.stop();
  }
  /** readonly has nobody choose. */
  set readonly(on) {
    this.#readonly = on;
    this.#list.readonly = on;
  }
  /** view shows the map or the list. */
  set view(which) {
    const { views, list } = this.#parts;
    for (const [name, { box, button }] of Object.entries(views)) {
      box.hidden = name !== which;
      button.setAttribute("aria-pressed", String(name === which));
    }
    list.hidden = which !== "list";
    this.#parts.here.hidden = which !== "map" || !this.#parts.here.textContent;
    this.#list.update();
  }
  /** aim is the part of the map in view, of a house that is open; null: all of it. */
  get aim() {
    return this.#map.aim;
  }
  set aim(to) {
    this.#map.aim = to;
  }
  /** fit shows the whole map. */
  fit() {
    this.#map.fit();
  }
  /** reveal goes to a seat on the map. */
  reveal(i) {
    this.view = "map";
    this.#map.reveal(i);
  }
  /** enter goes to an area in the list. */
  enter(area) {
    this.view = "list";
    this.#list.enter(area);
  }
  /** recolor draws in the colours of the style sheets as they are now. */
  recolor() {
    this.#map.recolor();
  }
  #show(state) {
    this.state = state;
    this.#hovered.what = null;
    this.#filter.keep(state.chart);
    this.#cart.on(state);
    this.#map.show(state);
    this.#list.show(state);
    this.#prices.show(state.chart, this.event, this.#cart.alones);
    this.#prices.update(state);
    this.#cart.setWish(this.#filter.wish);
    for (const [flag, el] of this.#parts.marks) el.hidden = !state.chart.flags.some((f) => f & flag);
    this.#watcher.chart(state);
  }
  #apply(changed, flash) {
    this.#map.changed(changed, flash);
    this.#list.update();
    this.#cart.seen(changed);
    this.#tooltip();
    this.#prices.update(this.state);
    this.#watcher.changed();
  }
  #mode(mode) {
    this.#holds.heard(mode);
    const shown = mode === "late" && !this.event.holds ? "unheld" : mode;
    this.#parts.live.dataset.mode = shown;
    this.#parts.mode.textContent = t.live[shown];
    this.#doubt.be(shown);
    this.#watcher.mode(shown);
  }
  /** sells says what a section has of what is wanted. */
  #sells(section) {
    const o = this.#filter.offer(this.state, section, this.#cart.alones);
    return { wanted: o.seats > 0, left: o.seats > 0 ? remaining(this.state, o.free, o.held, t.left.free) : "", from: o.from === null ? "" : t.map.from(price(o.from, this.event)) };
  }
  /** filtered shows what is wanted now, and has the house choose among it. */
  #filtered() {
    this.#map.filtered();
    this.#list.filtered();
    this.#prices.update(this.state);
    this.#cart.setWish(this.#filter.wish);
    const free = this.state.chart.sections.reduce((sum, s) => sum + this.#filter.offer(this.state, s, this.#cart.alones).free, 0);
    this.#say.announce(this.#filter.on ? t.map.shown(free) : t.map.allShown);
  }
  #choose(i) {
    if (this.#readonly) return;
    const cart = this.#cart;
    const answer = cart.toggle(i);
    const place = this.state.chart.place(i);
    const says = {
      added: () => this.#say.announce(t.map.added(place)),
      removed: () => this.#say.announce(t.map.removed(place)),
      full: () => this.#say.note(t.map.full, "bad"),
      "not free": () => this.#say.note(this.state.known ? t.map.notFree(place) : t.doubt.unknown),
      busy: () => {
        if (cart.seeking) this.#say.note(t.panel.seeking);
        else if (cart.stage !== "picking") this.#say.note(cart.unheld ? t.map.busyUnheld : t.map.busyHeld);
      }
    };
    says[answer]();
  }
  /** tooltip says what is under the pointer, as it is now. */
  #tooltip() {
    const { tip, canvas } = this.#parts;
    const { what, px, py } = this.#hovered;
    tip.hidden = what === null;
    if (what === null) return;
    const lines = typeof what === "number" ? describe(this.state, what, this.#cart, this.event) : [what.name, dotted(money(this.#cart.alones.get(what.category) ?? 0, this.event), leftIn(this.state, what.id, t.left.places))];
    tip.replaceChildren(...lines.map((l, n) => h(n ? "div" : "strong", {}, l)));
    tip.style.left = `${Math.min(Math.max(8, px + 14), Math.max(8, canvas.clientWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${py > tip.offsetHeight + 24 ? py - tip.offsetHeight - 14 : py + 20}px`;
  }
  /** here names the part of the house in the middle of the map. */
  #here(section) {
    const { here } = this.#parts;
    const words = section && this.#sells(section);
    const text = section && words ? dotted(section.name, words.left, words.from) : "";
    if (here.textContent === text) return;
    here.textContent = text;
    here.hidden = !text;
  }
}
class Holds {
  #api;
  #event;
  // whose holds it keeps true
  #turned;
  // is called when that has changed
  #asking = false;
  constructor(api, event, turned) {
    this.#api = api;
    this.#event = event;
    this.#turned = turned;
  }
  /** heard judges what the feed says. All but the word of a stream is a reason to ask. */
  heard(mode) {
    if (mode === "unheld") this.#are(false);
    else if (mode === "late" && this.#event.holds || (mode === "live" || mode === "polling") && !this.#event.holds) this.#ask();
  }
  async #ask() {
    if (this.#asking) return;
    this.#asking = true;
    const now = await details(this.#api, this.#event.id).catch(() => this.#event);
    this.#asking = false;
    this.#are(now.holds);
  }
  #are(held) {
    if (held === this.#event.holds) return;
    this.#event.holds = held;
    this.#turned();
  }
}
function furnish({ stage, legend, live }, doubt, does) {
  const canvas = h("canvas", { id: "map", tabindex: 0, "aria-label": t.map.canvas });
  const above = h("canvas", { class: "above", "aria-hidden": "true" });
  const overview = h("canvas", { id: "overview", class: "overview", hidden: true, "aria-hidden": "true" });
  const here = h("p", { id: "here", class: "here", hidden: true });
  const tip = h("div", { id: "tip", class: "tip", hidden: true });
  const shape = (kind, text) => h("li", {}, h("i", { class: kind }), text);
  const marks = [[ACCESSIBLE, shape("wheelchair", t.map.wheelchair)], [COMPANION, shape("companion", t.map.companion)], [RESTRICTED, shape("restricted", t.map.restricted)]];
  const key = h(
    "ul",
    { class: "key", "aria-label": t.map.shapes },
    shape("free", t.map.free),
    shape("held", t.map.held),
    shape("sold", t.map.sold),
    shape("mine", t.map.yours),
    ...marks.map(([, el]) => el)
  );
  const kinds = h("ul", { class: "kinds", "aria-hidden": "true" }, shape("held", t.map.held), shape("sold", t.map.sold), shape("mine", t.map.yours));
  const list = h("div", { id: "list", class: "list", hidden: true });
  const views = {
    map: {
      button: h("button", { id: "show-map", "aria-pressed": "true", onclick: () => does.view("map") }, t.map.map),
      box: h(
        "div",
        { id: "map-view", class: "view" },
        canvas,
        above,
        overview,
        tip,
        h(
          "div",
          { class: "zoom", role: "group", "aria-label": t.map.zoom },
          h("button", { id: "zoom-in", "aria-label": t.map.zoomIn, onclick: () => does.zoom(1.7) }, "+"),
          h("button", { id: "zoom-out", "aria-label": t.map.zoomOut, onclick: () => does.zoom(1 / 1.7) }, "−"),
          h("button", { id: "zoom-fit", "aria-label": t.map.fit, onclick: () => does.fit() }, "⤢")
        ),
        key
      )
    },
    list: {
      button: h("button", { id: "show-list", "aria-pressed": "false", onclick: () => does.view("list") }, t.map.list),
      box: h("div", { id: "list-view", class: "view", hidden: true }, list, kinds)
    }
  };
  const tools = h("div", { class: "tools", role: "group", "aria-label": t.map.how }, views.map.button, views.list.button);
  stage.append(h("div", { class: "over" }, tools, here), doubt, views.map.box, views.list.box);
  const mode = h("span", { id: "live-text" }, t.live.connecting);
  const asOf = h("span", { id: "asof" });
  live.append(h("span", { class: "dot", "aria-hidden": "true" }), mode, asOf);
  return { canvas, above, overview, here, tip, key, marks, list, views, legend, live, mode, asOf };
}

export { House, details };
