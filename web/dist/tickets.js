import { Api, problem } from './api.js';
import { Clock, Countdown, mmss } from './clock.js';
import { $, tell, h, unbroken } from './dom.js';
import { t } from './lang.js';
import { translate } from './page.js';
import { qr } from './qr.js';
import { Session } from './session.js';
import { sentence, when, money, byPlace, there, ticketWords } from './words.js';

const KEPT = "seatcast.booking.";
const GRACE = 2e3;
const SOON = 3e3;
const LATE = 2e4;
const clock = new Clock();
const api = new Api(clock, new Session());
const entries = /* @__PURE__ */ new Map();
const events = /* @__PURE__ */ new Map();
let next;
let paged = false;
let wait = SOON;
let timer = 0;
let loading = null;
function eventOf(id) {
  const known = events.get(id) ?? api.get(`/v1/events/${encodeURIComponent(id)}`);
  events.set(id, known);
  known.catch(() => events.delete(id));
  return known;
}
function kept() {
  return [sessionStorage, localStorage].flatMap((where) => Object.keys(where).filter((key) => key.startsWith(KEPT)).map((key) => where.getItem(key)));
}
async function unpaid(id) {
  try {
    const order = await api.call("GET", `/v1/bookings/${id}`, { quiet: true });
    put(order, await eventOf(id.split(".")[0]), entries.get(id)?.at ?? Infinity);
  } catch (err) {
    const p = problem(err);
    if (p.status !== 403 && p.status !== 404) throw p;
    entries.get(id)?.countdown?.until(null);
    entries.get(id)?.el.remove();
    entries.delete(id);
  }
}
async function page(before, quiet) {
  const mine = await api.call("GET", `/v1/me/bookings?${new URLSearchParams(before ? { before } : {})}`, { quiet });
  const of = await Promise.all(mine.bookings.map((b) => eventOf(b.event.id)));
  mine.bookings.forEach((b, n) => put(b, of[n], Date.parse(b.bookedAt)));
  if (before || !paged) next = mine.next;
  paged ||= before !== "";
  return mine.bookings.map((b) => b.bookingId);
}
function load(quiet = true) {
  loading ??= (async () => {
    clearTimeout(timer);
    try {
      const listed = await page("", quiet);
      const others = /* @__PURE__ */ new Set([...kept(), ...[...entries.values()].filter((e) => e.at === Infinity || underWay(e.order)).map((e) => e.order.bookingId)]);
      for (const id of listed) others.delete(id);
      await Promise.all([...others].map(unpaid));
      trouble(null);
    } catch (err) {
      trouble(problem(err));
    }
    said();
    follow();
  })().finally(() => {
    loading = null;
  });
  return loading;
}
const underWay = ({ state, expiresAt = "", tickets = [] }) => state === "paying" || state === "held" && Date.parse(expiresAt) <= clock.now() || tickets.some((one) => one.status === "pending" || one.status === "refunding");
function follow() {
  if (document.hidden) return;
  const busy = [...entries.values()].some((e) => underWay(e.order));
  if (busy || !$("trouble").hidden) timer = setTimeout(load, wait);
  wait = busy ? Math.min(LATE, wait * 1.5) : SOON;
}
function said() {
  const troubled = !$("trouble").hidden || !$("sign-in").hidden;
  if (entries.size || troubled) tell("says", "");
  else tell("says", t.tickets.none);
  $("more").hidden = troubled || next === void 0;
  $("print").hidden = ![...entries.values()].some((e) => e.order.tickets?.some((one) => one.status === "valid"));
}
function trouble(p) {
  const nobody = p?.code === "token_missing" || p?.status === 401;
  $("sign-in").hidden = !nobody;
  $("trouble").hidden = p === null;
  $("again").hidden = nobody;
  $("trouble-text").textContent = p && (nobody ? t.tickets.signIn : sentence(p));
  if (nobody) {
    for (const e of entries.values()) e.countdown?.until(null);
    entries.clear();
    $("orders").replaceChildren();
  }
}
function put(order, event, at) {
  const old = entries.get(order.bookingId);
  const text = JSON.stringify([order, at]);
  if (old?.said === text) return;
  old?.countdown?.until(null);
  const entry = { order, event, at, said: text, el: draw(order, event) };
  entries.set(order.bookingId, entry);
  if (old) old.el.replaceWith(entry.el);
  else {
    const after = [...entries.values()].filter((e) => e.at < at).sort((a, b) => b.at - a.at)[0];
    $("orders").insertBefore(entry.el, after?.el ?? null);
  }
  const clocks = entry.el.querySelector(".clock");
  if (!clocks || !order.expiresAt) return;
  entry.countdown = new Countdown(clock, (left) => {
    clocks.textContent = mmss(left);
    clocks.classList.toggle("hurry", left < 6e4);
    if (left === 0) setTimeout(load, GRACE);
  });
  entry.countdown.until(Date.parse(order.expiresAt));
}
function draw(order, event) {
  const { state } = order;
  const title = `order-${order.bookingId}`;
  return h(
    "article",
    { class: `order ${state}`, "data-booking": order.bookingId, "aria-labelledby": title },
    h(
      "header",
      {},
      h("div", {}, h("h2", { id: title, dir: "auto" }, event.name), h("p", { class: "soft", dir: "auto" }, `${event.venue} · ${when(event.startsAt, event.zone)}`)),
      h("span", { class: `badge ${state}` }, t.tickets.states[state])
    ),
    event.state === "cancelled" ? h("p", { class: "hint" }, t.event.cancelled) : null,
    ...state === "held" || state === "paying" ? open(order, event) : closed(order, event)
  );
}
function open(order, event) {
  const { state, bookingId, total, holds } = order;
  const link = h(
    "a",
    { class: "go", href: `/events/${encodeURIComponent(event.id)}`, onclick: () => sessionStorage.setItem(KEPT + event.id, bookingId) },
    state === "held" ? t.tickets.pay(money(total.amount, event)) : t.tickets.look
  );
  return [
    lines(order, event),
    h("p", { class: "due" }, h("span", {}, state === "paying" ? t.tickets.payingLeft : t.tickets.left), " ", h("strong", { class: "clock", role: "timer" }, "")),
    h("p", { class: "soft" }, state === "paying" ? t.tickets.paying : holds === false ? t.event.unheld : t.tickets.leftThen),
    h("div", { class: "actions" }, link)
  ];
}
function closed(order, event) {
  const { state, tickets = [], reason = "", total } = order;
  if (tickets.length) {
    const back = tickets.filter((one) => one.status === "refunded").reduce((sum, one) => sum + one.allIn, 0);
    return [
      h("div", { class: "stubs" }, ...tickets.toSorted(byPlace).map((one) => stub(one, event))),
      h("p", { class: "soft paid" }, t.tickets.paid(money(total.amount, event)), back > 0 && ` ${t.tickets.back(money(back, event))}`),
      h("p", { class: "soft paid" }, t.tickets.order, " ", h("code", {}, order.bookingId))
    ];
  }
  const why = reason === "event_cancelled" ? sentence({ code: reason }) : state === "lost" ? sentence({ code: "seats_lost", reason }) : t.tickets.over[state === "released" ? "released" : "expired"];
  return [lines(order, event), h("p", { class: "soft" }, why)];
}
function lines({ seats, areas }, event) {
  return h(
    "ul",
    { class: "lines" },
    ...seats.toSorted(byPlace).map((s) => h("li", {}, ...unbroken(t.seat.place(s.section, s.row, s.label)))),
    ...areas.map((a) => h("li", {}, t.tickets.places(a.quantity, areaOf(event, a.area))))
  );
}
const areaOf = (event, area) => event.areas.find((a) => a.area === area)?.name ?? area;
function stub(one, event) {
  return h(
    "div",
    { class: `stub ${one.status}`, role: "group", "aria-label": one.area ? areaOf(event, one.area) : t.seat.place(one.section ?? "", one.row ?? "", one.label ?? "") },
    one.qr ? qr(one.qr, t.ticket.code) : null,
    h(
      "div",
      { class: "about" },
      h("strong", { class: "what", dir: "auto" }, event.name),
      h("span", { class: "when", dir: "auto" }, `${event.venue} · ${there(event.startsAt, event.zone)}`),
      one.area ? h("dl", {}, ...pair(t.ticket.area, areaOf(event, one.area))) : h("dl", {}, ...pair(t.ticket.section, one.section), ...pair(t.ticket.row, one.row), ...pair(t.ticket.seat, one.label)),
      h("footer", {}, h("span", { class: "state" }, ticketWords(one.status)), h("span", {}, money(one.allIn, event)), h("code", {}, one.id))
    )
  );
}
const pair = (name, value = "") => [h("div", {}, h("dt", {}, name), h("dd", { dir: "auto" }, value))];
async function older() {
  try {
    await page(next ?? "", true);
    trouble(null);
  } catch (err) {
    trouble(problem(err));
  }
  said();
}
function main() {
  translate();
  document.title = `${t.tickets.title} · Seatcast`;
  $("again").onclick = () => load();
  $("more").onclick = older;
  $("print").onclick = () => print();
  $("sign-in").onclick = () => load(false);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) load();
  });
  addEventListener("pageshow", (e) => {
    if (e.persisted) load();
  });
  load();
}
main();
