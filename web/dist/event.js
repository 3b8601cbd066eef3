import { Api, Problem } from './api.js';
import { Cart } from './cart.js';
import { Clock, Countdown, mmss } from './clock.js';
import { h, $ } from './dom.js';
import { details, House } from './house.js';
import * as line from './line.js';
import { toLine } from './line.js';
import { Panel } from './panel.js';
import { Speaker } from './say.js';
import { Session } from './session.js';
import { sentence, when, UNHELD, CANCELLED } from './words.js';

const clock = new Clock();
const api = new Api(clock, new Session(), line);
const say = new Speaker();
const id = decodeURIComponent(location.pathname.split("/")[2] ?? "");
async function main() {
  document.body.append(say.notes, say.announcer);
  try {
    await open(await details(api, id));
  } catch (err) {
    const p = err instanceof Problem ? err : { code: "internal" };
    const says = p.code === "unknown_event" ? [h("h1", {}, sentence(p))] : [h("h1", {}, "This page could not be loaded"), h("p", {}, sentence(p))];
    $("fatal").replaceChildren(...says, h("p", {}, h("a", { href: "/" }, "All events"), " · ", h("a", { href: "" }, "Try again")));
    $("fatal").hidden = false;
    if (!(err instanceof Problem)) throw err;
  }
}
async function open(event) {
  header(event);
  const cart = new Cart(api, event, sessionStorage);
  const panel = new Panel($("panel"), { api, cart, event, clock, say, reveal: (i) => house.reveal(i) });
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
        if (event.areas.length && cart.stage === "picking") panel.draw();
      },
      turned: () => panel.draw(),
      mode: (mode) => {
        inside = mode !== "outside";
        leave();
      }
    }
  });
  told(cart);
  opening(event, panel);
  await house.open();
  await cart.resume();
  resumed = true;
  leave();
}
function header(event) {
  document.title = `${event.name} · Seatcast`;
  $("name").textContent = event.name;
  $("where").textContent = `${event.venue} · ${when(event.startsAt, event.zone)}`;
}
function told(cart) {
  cart.addEventListener("problem", (e) => say.note(sentence(e.detail), "bad"));
  cart.addEventListener("told", (e) => {
    const says = {
      held: cart.unheld ? [UNHELD, "plain"] : ["Your seats are held. Pay before the clock runs out.", "good"],
      extended: ["You have more time.", "good"],
      sold: ["Paid. The seats are yours.", "good"],
      asked: ["Your bank wants you to approve this payment.", "plain"],
      declined: [`The card was declined. ${cart.unheld ? "Try" : "Your seats are still held: try"} another card.`, "bad"]
    };
    say.note(...says[e.detail.what]);
  });
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
    const fresh = await details(api, event.id).catch(() => event);
    Object.assign(event, { open: fresh.open, opensAt: fresh.opensAt });
    if (!event.open) {
      setTimeout(ask, pause * (1 + Math.random()), pause);
      return;
    }
    banner.hidden = true;
    say.note("The sale is open.", "good");
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
