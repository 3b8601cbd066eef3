import { ACCESSIBLE, COMPANION, RESTRICTED } from './chart.js';
import { h } from './dom.js';
import { t } from './lang.js';
import { AVAILABLE, HELD } from './state.js';
import { Stepper } from './stepper.js';
import { remaining, dotted, price, money, leftIn } from './words.js';

const KINDS = ["free", "held", "sold", "closed"];
class SeatList {
  #root;
  #cart;
  #event;
  #filter;
  #pick;
  #state = null;
  #open = /* @__PURE__ */ new Set();
  // those opened so far
  #updates = /* @__PURE__ */ new Map();
  // by section, and by row
  #due = 0;
  #readonly = false;
  constructor(root, { cart, event, filter, pick }) {
    this.#root = root;
    this.#cart = cart;
    this.#event = event;
    this.#filter = filter;
    this.#pick = pick;
    cart.addEventListener("change", () => this.update());
  }
  /** show takes another chart. */
  show(state) {
    this.#state = state;
    this.#open.clear();
    this.#updates.clear();
    const entries = [
      ...state.chart.sections.filter((s) => this.#offer(state, s).seats > 0).map((s) => this.#section(state, s)),
      ...this.#event.areas.filter((a) => this.#filter.admits(a.category)).map((a) => this.#area(state, a))
    ];
    this.#root.replaceChildren(...entries.length ? entries : [h("p", { class: "soft" }, t.map.noSuch)]);
    this.update();
  }
  /** filtered lists what its filter lets through now. What was open and still has something stays open. */
  filtered() {
    if (!this.#state) return;
    const open = [...this.#root.querySelectorAll(":scope > details[open]")].map((el) => el.dataset.section);
    this.show(this.#state);
    for (const el of this.#root.querySelectorAll(":scope > details")) el.open = open.includes(el.dataset.section);
  }
  /** readonly has nobody choose. */
  set readonly(on) {
    this.#readonly = on;
    if (this.#state) this.show(this.#state);
  }
  /** enter goes to an area, to where more of its places are asked for. */
  enter(area) {
    this.#root.querySelector(`[data-key="${CSS.escape(area)}+"]`)?.focus();
  }
  /** update brings counts and opened seats up to date, once a moment at most. */
  update() {
    if (this.#due || !this.#state || this.#root.hidden) return;
    this.#due = setTimeout(() => {
      this.#due = 0;
      for (const f of this.#updates.values()) f();
    }, 150);
  }
  #section(state, s) {
    const label = h("span", { class: "count" }, "");
    this.#updates.set(`${s.index}`, () => {
      const { free, held, seats, from } = this.#offer(state, s);
      const left = remaining(state, free, held, (n) => t.left.freeOf(n, seats));
      label.textContent = dotted(left, from === null ? "" : t.map.from(price(from, this.#event)));
    });
    const el = h(
      "details",
      { "data-section": s.id, ontoggle: () => this.#toggleSection(state, el, s) },
      h("summary", {}, h("span", { class: "name", dir: "auto" }, s.name), label)
    );
    return el;
  }
  #offer(state, s) {
    return this.#filter.offer(state, s, this.#cart.alones);
  }
  #area(state, a) {
    const label = h("span", { class: "count" }, "");
    const stepper = new Stepper(t.stepper.placesIn(a.name), a.area, (to) => this.#cart.setPlaces(a.area, to));
    const update = () => {
      const left = state.areas.get(a.area) ?? 0;
      const n = this.#cart.places.get(a.area) ?? 0;
      label.textContent = dotted(money(this.#cart.alones.get(a.category) ?? 0, this.#event), leftIn(state, a.area, t.left.places));
      const fixed = this.#cart.busy || this.#cart.stage !== "picking";
      stepper.show(n, fixed ? n : 0, fixed ? n : Math.min(left, n + this.#cart.most - this.#cart.size));
    };
    update();
    this.#updates.set(`area ${a.area}`, update);
    return h("div", { class: "entry" }, h("span", { class: "name", dir: "auto" }, a.name), label, this.#readonly ? null : stepper.element);
  }
  #toggleSection(state, el, s) {
    if (!el.open || this.#open.has(s)) return;
    this.#open.add(s);
    const rows = s.rows.map((r) => ({ label: r.label, seats: r.seats.filter((i) => this.#filter.passes(state.chart, i)) }));
    const priced = new Set(rows.flatMap((r) => r.seats.map((i) => state.chart.category[i]))).size > 1;
    el.append(h("div", { class: priced ? "rows priced" : "rows" }, ...rows.filter((r) => r.seats.length).map((r, n) => this.#row(state, s, r, n, priced))));
  }
  /** row is one of a section in which seats are at one price, or priced at several. */
  #row(state, s, r, n, priced) {
    const key = `${s.index}/${n}`;
    const label = h("span", { class: "count" }, "");
    const counted = () => {
      const free = r.seats.filter((i) => state.status[i] === AVAILABLE);
      label.textContent = !state.known ? "" : !free.length ? t.left.none : priced ? `${t.left.free(free.length)} · ${this.#costs(free)}` : t.left.free(free.length);
    };
    counted();
    this.#updates.set(key, counted);
    const el = h("details", {
      ontoggle: () => {
        if (!el.open) {
          el.querySelector(".seats")?.remove();
          this.#updates.set(key, counted);
          return;
        }
        const [body, update] = this.#seats(state, s, r);
        el.append(body);
        this.#updates.set(key, () => {
          counted();
          update();
        });
      }
    }, h("summary", {}, h("span", { class: "name" }, t.seat.row(r.label)), label));
    return el;
  }
  /** costs is what each of these seats costs, or the least of them. */
  #costs(seats) {
    const prices = seats.map((i) => this.#cart.alone(i));
    const least = price(Math.min(...prices), this.#event);
    return prices.every((p) => p === prices[0]) ? least : t.map.from(least);
  }
  #seats(state, s, r) {
    const buttons = new Map(r.seats.map((i) => [i, h("button", { onclick: () => this.#pick(i) }, state.chart.label[i])]));
    for (const [i, button] of buttons) button.style.setProperty("--swatch", state.chart.categories[state.chart.category[i]].color);
    const update = () => {
      const mine = new Set(this.#cart.mine);
      for (const [i, button] of buttons) this.#seat(state, button, i, mine.has(i));
    };
    update();
    return [h("div", { class: "seats", role: "group", "aria-label": t.seat.inRow(s.name, r.label) }, ...buttons.values()), update];
  }
  /** seat says in words what the map says in shapes. */
  #seat(state, button, i, mine) {
    const chosen = this.#cart.picked.has(i);
    const picked = chosen && this.#cart.free(i);
    const status = statusOf(state, i, this.#cart);
    const c = state.chart;
    const kind = mine ? "mine" : picked ? "picked" : state.known ? KINDS[status] : "unknown";
    if (button.dataset.kind === kind) return;
    button.dataset.kind = kind;
    const category = c.categories[c.category[i]].name;
    const words = [t.seat.seat(c.label[i]), category, money(this.#cart.alone(i), this.#event), ...remarks(c, i), mine ? t.seat.yours : picked ? t.seat.chosen : statusWords(state, status)].filter((w) => w);
    button.setAttribute("aria-label", words.join(", "));
    button.setAttribute("aria-pressed", String(picked || mine));
    button.setAttribute("aria-disabled", String(this.#readonly || !chosen && status !== AVAILABLE));
    button.title = dotted(...words.slice(1));
    button.dataset.marks = marks(c.flags[i]);
  }
}
function remarks(chart, i) {
  const flags = [[ACCESSIBLE, t.seat.accessible], [COMPANION, t.seat.companion], [RESTRICTED, t.seat.restricted]];
  return flags.filter(([f]) => chart.flags[i] & f).map(([, words]) => words);
}
const marks = (flags) => [flags & ACCESSIBLE && "wheelchair", flags & COMPANION && "companion", flags & RESTRICTED && "restricted"].filter((m) => m).join(" ");
function statusOf(state, i, cart) {
  return state.status[i] === AVAILABLE && cart.gone.has(i) ? HELD : state.status[i];
}
const statusWords = (state, status) => state.known ? t.seat.status[status] : "";
function describe(state, i, cart, event) {
  const c = state.chart;
  const own = cart.mine.includes(i) ? t.seat.yours : cart.picked.has(i) && cart.free(i) ? t.seat.chosen : statusWords(state, statusOf(state, i, cart));
  return [c.place(i), dotted(c.categories[c.category[i]].name, money(cart.alone(i), event), own), ...remarks(c, i).map(capital)];
}
const capital = (words) => words[0].toUpperCase() + words.slice(1);

export { SeatList, describe, remarks };
