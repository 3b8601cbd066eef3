import { Api, Problem } from './api.js';
import { Cart } from './cart.js';
import { Clock, Countdown, mmss } from './clock.js';
import { h, $ } from './dom.js';
import { details, House } from './house.js';
import { Inside } from './inside.js';
import { kept } from './kept.js';
import { t } from './lang.js';
import * as line from './line.js';
import { toLine } from './line.js';
import { translate } from './page.js';
import { Panel } from './panel.js';
import { Speaker } from './say.js';
import { Session } from './session.js';
import { Sheet } from './sheet.js';
import { Tabs } from './tabs.js';
import { sentence, when, declineWords } from './words.js';

translate();
const clock = new Clock();
const session = new Session();
const api = new Api(clock, session, line);
const say = new Speaker();
const id = decodeURIComponent(location.pathname.split("/")[2] ?? "");
async function main() {
  document.body.append(say.notes, say.announcer);
  try {
    await open(await details(api, id, true));
  } catch (err) {
    const p = err instanceof Problem ? err : { code: "internal" };
    const says = p.code === "unknown_event" ? [h("h1", {}, sentence(p))] : [h("h1", {}, t.page.broken), h("p", {}, sentence(p))];
    $("fatal").replaceChildren(...says, h("p", {}, h("a", { href: "/" }, t.page.allEvents), " · ", h("a", { href: "" }, t.page.again)));
    for (const el of [$("name"), $("where"), $("stage"), $("side")]) el.hidden = true;
    $("fatal").hidden = false;
    if (!(err instanceof Problem)) throw err;
  }
}
async function open(event) {
  header(event);
  const cart = new Cart(api, event, sessionStorage);
  const tabs = new Tabs(event.id, cart, () => session.account);
  const choice = new KeptChoice(event.id, cart);
  const sheet = new Sheet(document.querySelector(".side"), cart, () => {
    say.note(t.event.back);
    $("map").focus();
  });
  const panel = new Panel($("panel"), { api, cart, event, clock, say, ticking: sheet.clock, reveal: (i) => house.reveal(i) });
  let inside = true;
  let resumed = false;
  const leave = () => {
    if (!inside && resumed && cart.stage === "picking") toLine(event.id);
  };
  cart.addEventListener("change", leave);
  const house = new House({
    event,
    cart,
    api,
    clock,
    say,
    stage: $("stage"),
    legend: $("legend"),
    live: $("live"),
    watcher: {
      area: (area) => {
        document.getElementById(`area-${area}`)?.scrollIntoView({ block: "nearest" });
        document.querySelector(`#area-${CSS.escape(area)} button:last-child`)?.focus();
      },
      chart: (state) => panel.on(state),
      changed: () => {
        choice.known();
        if (event.areas.length && cart.stage === "picking") panel.draw();
      },
      turned: () => panel.draw(),
      mode: (mode) => {
        inside = mode !== "outside";
        leave();
      }
    }
  });
  told(cart, (seats) => house.state.chart.places(seats));
  opening(event, panel);
  await house.open();
  keepView(event.id, house);
  const { last } = tabs;
  if (await cart.resume(last)) tabs.forget(last);
  new Inside({ event, cart, api, clock, say });
  resumed = true;
  leave();
  choice.resumed();
  sheet.resumed();
  tabs.ask();
}
class KeptChoice {
  #cart;
  #key;
  #known = false;
  // what is free
  #resumed = false;
  // what is held
  constructor(event, cart) {
    this.#cart = cart;
    this.#key = `seatcast.choice.${event}`;
    cart.addEventListener("change", () => this.#keep());
  }
  known() {
    if (this.#known) return;
    this.#known = true;
    this.#restore();
  }
  resumed() {
    this.#resumed = true;
    this.#restore();
  }
  #restore() {
    if (!this.#known || !this.#resumed || this.#cart.stage !== "picking" || this.#cart.size) return;
    const chosen = kept(sessionStorage, this.#key);
    if (Array.isArray(chosen) && chosen.every(Array.isArray)) this.#cart.restore(chosen[0] ?? [], chosen[1] ?? []);
  }
  #keep() {
    const cart = this.#cart;
    if (!this.#known || !this.#resumed || cart.stage !== "picking") return;
    sessionStorage.setItem(this.#key, JSON.stringify([cart.chosen, [...cart.places]]));
  }
}
function keepView(event, house) {
  const key = `seatcast.view.${event}`;
  const was = kept(sessionStorage, key);
  const { x, y, k } = was ?? {};
  if (was?.chart === house.state.chart.sha && [x, y, k].every(Number.isFinite)) house.aim = { x, y, k };
  addEventListener("pagehide", () => {
    if (house.aim) sessionStorage.setItem(key, JSON.stringify({ chart: house.state.chart.sha, ...house.aim }));
    else sessionStorage.removeItem(key);
  });
}
function header(event) {
  document.title = `${event.name} · Seatcast`;
  $("name").textContent = event.name;
  $("where").textContent = `${event.venue} · ${when(event.startsAt, event.zone)}`;
}
function told(cart, places) {
  cart.addEventListener("problem", (e) => {
    if (e.detail.code === "seats_taken") say.shown(sentence(e.detail));
    else say.note(sentence(e.detail), "bad");
  });
  cart.addEventListener("told", (e) => {
    const says = {
      asked: [t.event.asked, "plain"],
      held: cart.unheld ? [t.event.unheld, "plain"] : [t.event.held, "good"],
      extended: [t.event.extended, "good"],
      sold: [t.event.sold, "good"],
      declined: [declineWords(cart.declined ?? "", cart.unheld), "bad"],
      cancelled: [t.event.cancelledPayment, "plain"],
      lost: [t.event.lost(e.detail.what === "lost" ? places(e.detail.seats) : ""), "bad"]
    };
    const [text, kind] = says[e.detail.what];
    if (["asked", "declined"].includes(e.detail.what) && $("panel").getClientRects().length) say.shown(text);
    else say.note(text, kind);
  });
}
function opening(event, panel) {
  if (event.open) return;
  const banner = $("banner");
  banner.hidden = false;
  if (event.state === "cancelled") {
    banner.textContent = t.event.cancelled;
    $("legend").hidden = $("stage").hidden = true;
    return;
  }
  const ask = async (pause) => {
    const fresh = await details(api, event.id).catch(() => event);
    Object.assign(event, { open: fresh.open, opensAt: fresh.opensAt });
    if (!event.open) {
      setTimeout(ask, pause * (1 + Math.random()), pause);
      return;
    }
    banner.hidden = true;
    say.note(t.event.open, "good");
    panel.draw();
  };
  if (Date.parse(event.opensAt) <= clock.now()) {
    banner.textContent = t.event.notOnSale;
    ask(15e3);
    return;
  }
  new Countdown(clock, (left) => {
    banner.textContent = left > 36e5 ? t.event.opensAt(when(event.opensAt, event.zone)) : t.event.opensIn(mmss(left));
    if (left === 0) ask(2e3);
  }).until(Date.parse(event.opensAt));
}
main();
