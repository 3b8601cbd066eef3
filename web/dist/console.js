import { Api, problem, Problem, newKey } from './api.js';
import { Clock } from './clock.js';
import { h, $, tell } from './dom.js';
import { Finder } from './finder.js';
import { t } from './lang.js';
import { number } from './locale.js';
import { translate } from './page.js';
import { when, hour, money } from './words.js';

const KEPT = "seatcast.operator";
const POLL = 5e3;
const clock = new Clock();
const token = () => {
  const kept = sessionStorage.getItem(KEPT);
  return kept === null ? Promise.reject(new DOMException("not signed in", "AbortError")) : Promise.resolve(kept);
};
const api = new Api(clock, { token, forget: () => {
} });
const cards = /* @__PURE__ */ new Map();
let finder = null;
const said = (p) => {
  if (p.code === "offline") return t.problems.offline;
  return p.detail ? `${p.detail} (${p.status} ${p.code})` : `${p.status} ${p.code}`;
};
class Card {
  element;
  #event;
  #figures = h("div", { class: "figures" });
  #asOf = h("p", { class: "soft as-of" });
  #room = h("div", { class: "room" });
  #unseen = h("p", { class: "trouble", role: "status" });
  // why the room is not as of now
  #controls = h("div", { class: "actions" });
  #answer = h("p", { class: "answer", role: "status" });
  #timer = 0;
  #turn = 0;
  // of reading; what was asked before the last of them comes too late
  constructor(event) {
    this.#event = event;
    const { id, mode, state, open, queue } = event;
    this.element = h(
      "details",
      { class: "card", "data-event": id },
      h(
        "summary",
        {},
        h("span", { class: "what" }, h("strong", { dir: "auto" }, event.name), h("small", { dir: "auto" }, `${event.venue} · ${when(event.startsAt, event.zone)}`)),
        h("span", { class: "badge" }, t.console.modes[mode]),
        h("span", { class: `badge ${state}${open ? " on" : ""}` }, this.#state()),
        queue ? h("span", { class: "badge" }, t.console.room) : null
      ),
      h(
        "div",
        { class: "body" },
        event.holds ? null : h("p", { class: "trouble" }, t.console.noHolds),
        this.#figures,
        h("div", { class: "actions" }, h("button", { "data-do": "refresh", onclick: () => this.#read() }, t.console.refresh), h("a", { href: `/events/${encodeURIComponent(id)}` }, t.console.page), this.#asOf),
        this.#room,
        this.#unseen,
        this.#controls,
        this.#answer
      )
    );
    this.element.addEventListener("toggle", () => this.element.open ? this.#read() : this.stop());
  }
  /** stop looks at it no more. */
  stop() {
    this.#turn++;
    clearTimeout(this.#timer);
  }
  #state() {
    const { state, open, opensAt, zone } = this.#event;
    if (state === "open" && !open) return t.home.onSaleFrom(when(opensAt, zone));
    return t.console.states[state];
  }
  async #read() {
    this.stop();
    const turn = this.#turn;
    const { id, zone } = this.#event;
    try {
      const [figures, room] = await Promise.all([
        api.call("GET", `/v1/admin/events/${id}/figures`),
        api.call("GET", `/v1/admin/rooms/${id}`).catch((err) => {
          const p = problem(err);
          if (p.code !== "no_queue") throw p;
          return null;
        })
      ]);
      if (turn !== this.#turn) return;
      if (this.#answer.classList.contains("bad")) this.#answers("");
      this.#show(figures);
      this.#asOf.textContent = t.console.asOf(hour(new Date(clock.now()).toISOString(), zone));
      if (room) this.#line(room);
      else this.#noLine();
    } catch (err) {
      const p = problem(err);
      if (turn === this.#turn) this.#failed(p);
    }
  }
  #failed(p) {
    if (refused(p)) return;
    this.#answers(said(p), true);
  }
  #answers(text, bad = false) {
    this.#answer.classList.toggle("bad", bad);
    this.#answer.textContent = text;
  }
  #show({ seats, holdsKnown, areas, tickets, money: taken }) {
    const { available, held, sold, unavailable } = seats;
    const all = available + held + sold + unavailable;
    const figure = (name, value, kind = "") => h("div", { class: `figure ${kind}` }, h("dt", {}, name), h("dd", {}, value));
    const bar = h("div", { class: "bar", "aria-hidden": "true" }, ...["sold", "held", "available", "unavailable"].filter((kind) => seats[kind] > 0).map((kind) => {
      const part = h("span", { class: kind });
      part.style.flexGrow = String(seats[kind]);
      return part;
    }));
    this.#figures.replaceChildren(
      all ? bar : "",
      h(
        "dl",
        {},
        ...all ? [
          figure(t.console.sold, number(sold), "sold"),
          figure(t.console.held, holdsKnown ? number(held) : "?", "held"),
          figure(t.console.free, number(available), "available"),
          figure(t.console.closed, number(unavailable), "unavailable")
        ] : [],
        ...areas.map((a) => figure(a.name, t.console.soldOf(a.sold, a.capacity))),
        figure(t.console.tickets, number(tickets)),
        figure(t.console.money, money(taken.amount, taken))
      ),
      holdsKnown ? "" : h("p", { class: "soft" }, t.console.holdsUnknown)
    );
  }
  #noLine() {
    this.#doubt("");
    this.#room.replaceChildren(h("p", { class: "soft" }, t.console.noRoom(`/v1/admin/rooms/${this.#event.id}`)));
    this.#controls.replaceChildren();
  }
  /** line shows the room as it was read, and then as everybody sees it. */
  #line(room) {
    this.#buttons(room);
    const turn = this.#turn;
    const follow = async () => {
      if (!document.hidden) {
        const now = await api.get(`/v1/queue/${this.#event.id}`, true).catch(problem);
        if (turn !== this.#turn) return;
        if (now instanceof Problem && now.code === "no_queue") return this.#noLine();
        if (now instanceof Problem) this.#doubt(said(now));
        else {
          this.#tell(now, room);
          if (now.state !== room.state) this.#buttons(Object.assign(room, { state: now.state }));
        }
      }
      if (this.element.open && this.element.isConnected) this.#timer = setTimeout(follow, POLL);
    };
    if (room.frame) this.#tell(room.frame, room);
    this.#timer = setTimeout(follow, POLL);
  }
  #doubt(why) {
    if (this.#unseen.textContent !== why) this.#unseen.textContent = why;
  }
  #tell(line, room) {
    this.#doubt("");
    const pair = (name, value) => h("div", { class: "figure" }, h("dt", {}, name), h("dd", {}, value));
    const why = line.slowed && (t.console.slowed[line.slowed] ?? line.slowed);
    this.#room.replaceChildren(
      h(
        "h2",
        {},
        t.console.room,
        " ",
        h("span", { class: `badge ${line.state}`, "data-room": line.state }, t.console.rooms[line.state]),
        " ",
        h("small", {}, t.live.asOf(hour(new Date(line.at).toISOString(), this.#event.zone)))
      ),
      h(
        "dl",
        {},
        pair(t.console.waiting, number(line.waiting)),
        pair(t.console.inside, t.console.of(line.inside, room.cap)),
        pair(t.console.rate, t.console.aMinute(line.rate)),
        pair(t.console.pace, t.console.aMinute(line.pace)),
        ...room.suspected ? [pair(t.console.suspected, number(room.suspected))] : []
      ),
      why ? h("p", { class: "soft" }, why) : ""
    );
  }
  #buttons({ state, rate }) {
    const path = `/v1/admin/rooms/${this.#event.id}`;
    const c = t.console;
    const button = (name, title, means, method, to) => h("button", { "data-do": name, onclick: () => sure(title, means, () => this.#do(method, path + to)) }, title);
    this.#controls.replaceChildren(
      ...state === "open" ? [button("pause", c.pause, c.pauseMeans, "POST", "/pause")] : [],
      ...state === "paused" ? [button("resume", c.resume, c.resumeMeans, "POST", "/resume")] : [],
      ...state === "closed" || state === "over" ? [button("open", c.open, c.openMeans, "POST", "/open")] : [],
      ...state === "over" ? [] : [h("form", {
        class: "rate",
        onsubmit: (e) => {
          e.preventDefault();
          const to = Number(e.currentTarget.querySelector("input").value);
          sure(c.setRate, c.rateMeans(to), () => this.#do("PUT", `${path}/rate`, { rate: to }));
        }
      }, h("label", {}, c.rate, " ", h("input", { type: "number", min: 0, step: 1, required: true, value: rate, "data-do": "rate" })), h("button", { "data-do": "set-rate" }, c.setRate))]
    );
  }
  /** do carries out a call, and shows what was answered. */
  async #do(method, path, body) {
    this.#answers(t.console.sending);
    try {
      const room = await api.call(method, path, { key: newKey(), ...body && { body } });
      if (!this.element.isConnected) return;
      this.#answers(t.console.done(t.console.rooms[room.state], room.rate));
      await this.#read();
    } catch (err) {
      const p = problem(err);
      if (this.element.isConnected) this.#failed(p);
    }
  }
}
function sure(title, means, does) {
  const dialog = $("sure");
  $("sure-title").textContent = $("sure-yes").textContent = title;
  $("sure-text").textContent = means;
  $("sure-yes").onclick = () => {
    dialog.close();
    does();
  };
  $("sure-no").onclick = () => dialog.close();
  dialog.showModal();
}
function refused(p) {
  const nobody = p.status === 401 || p.code === "token_missing";
  if (nobody || p.code === "not_operator") leave(nobody ? t.console.refused : t.console.notOperator, p);
  return nobody || p.code === "not_operator";
}
function leave(why = "", p) {
  sessionStorage.removeItem(KEPT);
  for (const card of cards.values()) card.stop();
  cards.clear();
  $("events").replaceChildren();
  tell("jobs", "");
  $("desk").hidden = $("sign-out").hidden = true;
  $("enter").hidden = false;
  $("refused").hidden = !why;
  $("refused").textContent = p?.detail ? `${why} ${said(p)}` : why;
  $("token").focus();
}
async function enter() {
  try {
    const { jobs, next } = await api.call("GET", "/v1/admin/jobs?limit=50");
    tell("jobs", jobs.length ? t.console.stuck(jobs.length, next !== void 0) : t.console.noneStuck);
  } catch (err) {
    const p = problem(err);
    if (refused(p)) return;
    $("refused").hidden = $("enter").hidden = false;
    $("refused").textContent = said(p);
    return;
  }
  $("enter").hidden = $("refused").hidden = true;
  $("desk").hidden = $("sign-out").hidden = false;
  if (finder) finder.again();
  else finder = new Finder(api, show, () => $("events").replaceChildren());
}
function show(found, words, page) {
  if (sessionStorage.getItem(KEPT) === null) return;
  if (page === 1) {
    for (const card of cards.values()) card.stop();
    cards.clear();
    $("events").replaceChildren();
    if (!found.events.length) $("events").append(h("p", { class: "soft" }, words ? t.home.none(words) : t.home.empty));
  }
  for (const event of found.events) {
    const card = new Card(event);
    cards.set(event.id, card);
    $("events").append(card.element);
  }
  if (page === 1 && found.events.length === 1) cards.get(found.events[0].id).element.open = true;
}
function main() {
  translate();
  document.title = `${t.console.title} · Seatcast`;
  $("enter").onsubmit = (e) => {
    e.preventDefault();
    const field = $("token");
    sessionStorage.setItem(KEPT, field.value.trim().replace(/^Bearer\s+/i, ""));
    field.value = "";
    enter();
  };
  $("sign-out").onclick = () => leave();
  if (sessionStorage.getItem(KEPT) === null) leave();
  else enter();
}
main();
