import { Api, Problem } from './api.js';
import { Cart } from './cart.js';
import { Chart, ACCESSIBLE } from './chart.js';
import { Clock, Countdown, mmss } from './clock.js';
import { h, $, swatch } from './dom.js';
import { Feed } from './feed.js';
import { toLine } from './line.js';
import { describe, areaWords, SeatList } from './list.js';
import { SeatMap } from './map.js';
import { Panel } from './panel.js';
import { note, announce } from './say.js';
import { Session } from './session.js';
import { State } from './state.js';
import { sentence, remaining, when, money, UNHELD, CANCELLED } from './words.js';

const MODES = {
  connecting: "Connecting…",
  live: "Live",
  polling: "Updated now and then",
  waiting: "Reconnecting…",
  late: "Updates may be late",
  unheld: "Only sold seats are shown: yours are confirmed at checkout",
  guarded: "Sign in to see which seats are free",
  outside: "Which seats are free is shown to who is let in"
};
const clock = new Clock();
const api = new Api(clock, new Session());
const id = decodeURIComponent(location.pathname.split("/")[2] ?? "");
async function main() {
  try {
    const event = await details();
    const cart = new Cart(api, event);
    header(event);
    await house(event, cart, new State(await chart(event.chart)));
  } catch (err) {
    const p = err instanceof Problem ? err : { code: "internal" };
    const says = p.code === "unknown_event" ? [h("h1", {}, sentence(p))] : [h("h1", {}, "This page could not be loaded"), h("p", {}, sentence(p))];
    $("fatal").replaceChildren(...says, h("p", {}, h("a", { href: "/" }, "All events"), " · ", h("a", { href: "" }, "Try again")));
    $("fatal").hidden = false;
    if (!(err instanceof Problem)) throw err;
  }
}
class Holds {
  #event;
  // whose holds it keeps true
  #turned;
  // is called when that has changed
  #asking = false;
  constructor(event, turned) {
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
    const now = await details().catch(() => this.#event);
    this.#asking = false;
    this.#are(now.holds);
  }
  #are(held) {
    if (held === this.#event.holds) return;
    this.#event.holds = held;
    this.#turned();
  }
}
async function details() {
  const event = await api.get(`/v1/events/${encodeURIComponent(id)}`);
  return { ...event, holds: event.holds ?? true };
}
async function chart(sha) {
  return new Chart(sha, await api.get(`/v1/charts/${sha}.json`));
}
async function house(event, cart, first) {
  let state = first;
  const pick = (i) => choose(state, cart, i);
  const map = new SeatMap($("map"), {
    seat: pick,
    area: (area) => {
      document.getElementById(`area-${area}`)?.scrollIntoView({ block: "nearest" });
      document.querySelector(`#area-${CSS.escape(area)} button:last-child`)?.focus();
    },
    hover: (what, px, py) => tooltip(what === null ? null : typeof what === "number" ? describe(state, what, cart, event) : [what.name, areaWords(state.areas.get(what.id) ?? 0)], px, py),
    here: (section) => here(section && `${section.name} · ${remaining(state.free[section.index], state.held[section.index], "free")}`)
  });
  const list = new SeatList($("list"), { cart, event, pick });
  const panel = new Panel($("panel"), { api, cart, event, clock, reveal: (i) => {
    views("map", list);
    map.reveal(i);
  } });
  const show = (next) => {
    state = next;
    cart.on(state);
    map.show(state);
    list.show(state);
    panel.on(state);
    legend(event, state);
    $("key-wheelchair").hidden = !state.chart.flags.some((f) => f & ACCESSIBLE);
  };
  show(first);
  cart.addEventListener("change", () => map.looks(cart.picked, cart.mine));
  told(cart);
  controls(map, list);
  opening(event, panel);
  const apply = (changed, flash) => {
    map.changed(changed, flash);
    list.update();
    cart.seen(changed);
    legend(event, state);
    if (event.areas.length && cart.stage === "picking") panel.draw();
  };
  const holds = new Holds(event, () => panel.draw());
  let inside = true;
  let resumed = false;
  const leave = () => {
    if (!inside && resumed && cart.stage === "picking") toLine(event.id);
  };
  cart.addEventListener("change", leave);
  const feed = new Feed({
    event: event.id,
    chart: event.chart,
    guarded: event.guarded,
    api,
    clock,
    sink: {
      snapshot: (frame) => apply(state.snapshot(frame), false),
      delta: (frame) => apply(state.delta(frame), true),
      chart: async (sha) => {
        const [next, now] = await Promise.all([chart(sha), details()]);
        if (now.chart !== sha) throw new Error("the event is on another chart");
        Object.assign(event, now);
        show(new State(next));
      },
      mode: (mode) => {
        holds.heard(mode);
        inside = mode !== "outside";
        leave();
        const shown = mode === "late" && !event.holds ? "unheld" : mode;
        $("live").dataset.mode = shown;
        $("live-text").textContent = MODES[shown];
      },
      heard: () => {
        $("asof").textContent = `as of ${new Date(clock.now()).toLocaleTimeString()}`;
      }
    }
  });
  feed.start(event.mode === "hot");
  await cart.resume();
  resumed = true;
  leave();
}
function header(event) {
  document.title = `${event.name} · Seatcast`;
  $("name").textContent = event.name;
  $("where").textContent = `${event.venue} · ${when(event.startsAt, event.zone)}`;
}
function legend(event, state) {
  const box = $("legend");
  if (box.dataset.chart !== state.chart.sha) {
    box.dataset.chart = state.chart.sha;
    const priced = (amount) => amount === void 0 ? "–" : money(amount, event);
    const prices = new Map(event.prices.map((p) => [p.category, p.allIn ?? p.amount]));
    box.replaceChildren(...state.chart.categories.map((c) => h(
      "li",
      {},
      swatch(c.color),
      h("span", {}, c.name),
      h("strong", {}, priced(prices.get(c.name))),
      h("small", {})
    )));
  }
  state.chart.categories.forEach((c, n) => {
    const places = state.chart.areas.filter((a) => a.category === c.name).reduce((sum, a) => sum + (state.areas.get(a.id) ?? 0), 0);
    box.children[n].lastElementChild.textContent = remaining(state.freeByCategory[n] + places, state.heldByCategory[n], "left");
  });
}
function choose(state, cart, i) {
  const answer = cart.toggle(i);
  const place = state.chart.place(i);
  const says = {
    added: () => announce(`${place} chosen`),
    removed: () => announce(`${place} taken out`),
    full: () => note("That is as many as one order may hold. Take one out to choose another.", "bad"),
    "not free": () => note(`${place} is not free.`),
    busy: () => {
      if (cart.stage !== "picking") note(`You have ${cart.unheld ? "an order" : "seats on hold"} already: pay or give back to choose others.`);
    }
  };
  says[answer]();
}
function told(cart) {
  cart.addEventListener("problem", (e) => note(sentence(e.detail), "bad"));
  cart.addEventListener("told", (e) => {
    const says = {
      held: cart.unheld ? [UNHELD, "plain"] : ["Your seats are held. Pay before the clock runs out.", "good"],
      extended: ["You have more time.", "good"],
      sold: ["Paid. The seats are yours.", "good"],
      asked: ["Your bank wants you to approve this payment.", "plain"],
      declined: [`The card was declined. ${cart.unheld ? "Try" : "Your seats are still held: try"} another card.`, "bad"]
    };
    note(...says[e.detail.what]);
  });
}
function tooltip(lines, px, py) {
  const tip = $("tip");
  tip.hidden = !lines;
  if (!lines) return;
  tip.replaceChildren(...lines.map((l, n) => h(n ? "div" : "strong", {}, l)));
  const width = $("map").clientWidth;
  tip.style.left = `${Math.min(Math.max(8, px + 14), Math.max(8, width - tip.offsetWidth - 8))}px`;
  tip.style.top = `${py > tip.offsetHeight + 24 ? py - tip.offsetHeight - 14 : py + 20}px`;
}
function here(text) {
  const el = $("here");
  if (el.textContent === (text ?? "")) return;
  el.textContent = text ?? "";
  el.hidden = !text;
}
function views(which, list) {
  for (const name of ["map", "list"]) {
    $(`${name}-view`).hidden = name !== which;
    $(`show-${name}`).setAttribute("aria-pressed", String(name === which));
  }
  $("list").hidden = which !== "list";
  if (which === "list") list.update();
}
function controls(map, list) {
  $("zoom-in").onclick = () => map.zoom(1.7);
  $("zoom-out").onclick = () => map.zoom(1 / 1.7);
  $("zoom-fit").onclick = () => map.fit();
  $("show-map").onclick = () => views("map", list);
  $("show-list").onclick = () => views("list", list);
}
function opening(event, panel) {
  if (event.open) return;
  const banner = $("banner");
  banner.hidden = false;
  if (event.state === "cancelled") {
    banner.textContent = CANCELLED;
    $("legend").hidden = $("stage").hidden = true;
    return;
  }
  const ask = async (pause) => {
    const fresh = await details().catch(() => event);
    Object.assign(event, { open: fresh.open, opensAt: fresh.opensAt });
    if (!event.open) {
      setTimeout(ask, pause * (1 + Math.random()), pause);
      return;
    }
    banner.hidden = true;
    note("The sale is open.", "good");
    panel.draw();
  };
  if (Date.parse(event.opensAt) <= clock.now()) {
    banner.textContent = "This event is not on sale.";
    ask(15e3);
    return;
  }
  new Countdown(clock, (left) => {
    banner.textContent = left > 36e5 ? `On sale ${when(event.opensAt, event.zone)}` : `The sale opens in ${mmss(left)}`;
    if (left === 0) ask(2e3);
  }).until(Date.parse(event.opensAt));
}
main();
