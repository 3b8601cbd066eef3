import { Api } from './api.js';
import { Clock, Countdown, mmss } from './clock.js';
import { h, $, tell } from './dom.js';
import { Finder } from './finder.js';
import { t } from './lang.js';
import { inManner } from './locale.js';
import { translate } from './page.js';
import { Session } from './session.js';
import { when } from './words.js';

const NEAR = 36e5;
const HURRY = 5e3;
const clock = new Clock();
const api = new Api(clock, new Session());
const countdowns = [];
const opens = ({ state: state2, open, opensAt }) => !open && state2 === "open" ? Date.parse(opensAt) : null;
function state(event) {
  if (event.state === "cancelled") return t.home.cancelled;
  if (event.open) return event.queue ? t.home.queue : t.home.onSale;
  return opens(event) === null ? t.home.notOnSale : t.home.onSaleFrom(when(event.opensAt, event.zone));
}
function day(event) {
  const part = (how) => new Intl.DateTimeFormat(inManner(), { ...how, timeZone: event.zone }).format(new Date(event.startsAt));
  return h("span", { class: "day", "aria-hidden": "true" }, h("span", {}, part({ month: "short" })), h("strong", {}, part({ day: "numeric" })), h("span", {}, part({ weekday: "short" })));
}
function card(event, first) {
  const badge = h("span", { class: `badge ${event.state}${event.open ? " on" : ""}` }, state(event));
  const el = h(
    "li",
    { class: `event${first && event.open ? " first" : ""}` },
    h(
      "a",
      { href: `/${event.queue && event.open ? "queue" : "events"}/${encodeURIComponent(event.id)}` },
      day(event),
      h(
        "span",
        { class: "about" },
        badge,
        h("h2", { dir: "auto" }, event.name),
        h("span", { dir: "auto" }, event.venue),
        h("span", { class: "soft" }, when(event.startsAt, event.zone)),
        event.open ? h("span", { class: "go" }, event.queue ? t.home.join : t.home.choose) : null
      )
    )
  );
  const at = opens(event);
  if (at !== null) count(event, at, badge, () => el.replaceWith(card(event, first)));
  return el;
}
function count(event, at, badge, opened) {
  const ask = async () => {
    if (!badge.isConnected) return;
    Object.assign(event, await api.get(`/v1/events/${event.id}`).catch(() => event));
    if (event.open || event.state !== "open") opened();
    else setTimeout(ask, HURRY * (1 + Math.random()));
  };
  const countdown = new Countdown(clock, (left) => {
    if (left <= NEAR) badge.textContent = t.home.opensIn(mmss(left));
    if (left === 0) setTimeout(ask, HURRY * Math.random());
  });
  countdowns.push(countdown);
  countdown.until(at);
}
function show(events, page) {
  if (page === 1) for (const one of countdowns.splice(0)) one.until(null);
  const sorted = events.toSorted((a, b) => Number(b.open) - Number(a.open));
  const cards = sorted.map((e, n) => card(e, page === 1 && n === 0));
  if (page === 1) $("events").replaceChildren(...cards);
  else $("events").append(...cards);
  if (page > 1) cards[0]?.querySelector("a")?.focus();
}
function arrows(e) {
  const field = $("words");
  if (e.key === "/" && document.activeElement !== field) {
    e.preventDefault();
    field.focus();
  }
  const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
  const stops = [field, ...document.querySelectorAll(".event a")];
  const at = stops.indexOf(document.activeElement);
  if (!step || at < 0) return;
  e.preventDefault();
  stops[Math.min(stops.length - 1, Math.max(0, at + step))].focus();
}
function main() {
  translate();
  document.title = `${t.home.title} · Seatcast`;
  document.addEventListener("keydown", arrows);
  new Finder(api, (found, words, page) => {
    show(found.events, page);
    const n = document.querySelectorAll(".event").length;
    if (n) tell("found", found.next ? t.home.first(n) : words ? t.home.found(n) : "");
    else tell("found", words ? t.home.none(words) : t.home.empty);
  }, () => {
    $("events").replaceChildren();
    tell("found", "");
  });
}
main();
