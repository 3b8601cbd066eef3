import { Countdown, mmss } from './clock.js';
import { h, swatch } from './dom.js';
import { Means } from './pay.js';
import { remarks } from './list.js';
import { Stepper } from './stepper.js';
import { money, UNHELD, number, ticketWords } from './words.js';

const WARN = [[12e4, "Two minutes left to pay."], [6e4, "One minute left to pay."], [2e4, "Twenty seconds left to pay."]];
class Panel {
  #root;
  #cart;
  #event;
  #clock;
  #say;
  #reveal;
  #state = null;
  #countdown;
  #deadline = "";
  #said = /* @__PURE__ */ new Set();
  // warnings of this deadline
  #wish = null;
  // what has the focus again when it is there
  #means;
  #button = h("button", { class: "primary", "data-key": "pay" });
  #pay;
  // the form, which stays in the page while the means is shown
  #codes = /* @__PURE__ */ new Map();
  // text → canvas
  constructor(root, { api, cart, event, clock, say, reveal }) {
    this.#root = root;
    this.#cart = cart;
    this.#event = event;
    this.#clock = clock;
    this.#say = say;
    this.#reveal = reveal;
    this.#countdown = new Countdown(clock, (left) => this.#tick(left));
    this.#means = new Means(api, event, () => this.draw());
    this.#pay = h(
      "form",
      { class: "pay", onsubmit: (e) => {
        e.preventDefault();
        cart.pay(() => this.#means.name());
      } },
      this.#means.element,
      h("div", { class: "actions" }, this.#button)
    );
    cart.addEventListener("change", () => this.draw());
    cart.addEventListener("told", (e) => {
      if (e.detail.what === "asked") this.#step(e.detail.go);
    });
  }
  /** on follows a chart and its state. */
  on(state) {
    this.#state = state;
    this.draw();
  }
  /** draw shows the cart as it is. The focus stays where it was, or waits at the head for what it was on. */
  draw() {
    const state = this.#state;
    if (!state) return;
    const active = document.activeElement;
    const at = active instanceof HTMLElement && this.#root.contains(active) ? active.dataset.key : null;
    const focus = at === "head" && this.#wish || at;
    const stages = { picking: () => this.#picking(state), held: () => this.#held(state.chart), paying: () => this.#paying(state.chart), sold: () => this.#sold() };
    this.#show(stages[this.#cart.stage]());
    this.#root.dataset.stage = this.#cart.stage;
    this.#root.setAttribute("aria-busy", String(this.#cart.busy));
    if (focus) this.#focus(focus);
    this.#arm();
  }
  /** show puts parts in place of what is shown. The form to pay stays where it is. */
  #show(parts) {
    const at = parts.indexOf(this.#pay);
    if (at < 0 || this.#pay.parentNode !== this.#root) this.#root.replaceChildren(...parts);
    else {
      for (const el of [...this.#root.children]) if (el !== this.#pay) el.remove();
      this.#pay.before(...parts.slice(0, at));
      this.#pay.after(...parts.slice(at + 1));
    }
    const { stage, busy, costs } = this.#cart;
    this.#button.disabled = stage !== "held" || busy || !this.#means.ready;
    this.#pay.hidden = stage !== "held";
    if (at < 0) return this.#means.hide();
    this.#button.textContent = `Pay ${this.#money(costs.total)}`;
    if (stage === "held") this.#means.show(costs.total);
    else this.#means.used();
  }
  #focus(key) {
    const el = this.#root.querySelector(`[data-key="${CSS.escape(key)}"]:not(:disabled, [hidden] *)`);
    this.#wish = el ? null : key;
    (el ?? this.#root.querySelector("[data-key=head]"))?.focus({ preventScroll: true });
  }
  /** arm starts the countdown of a stage that has one, and anew when its end has moved. */
  #arm() {
    const { stage, order } = this.#cart;
    const ends = stage === "held" || stage === "paying" ? order.expiresAt : null;
    if (`${stage} ${ends}` !== this.#deadline) {
      this.#deadline = `${stage} ${ends}`;
      this.#said.clear();
      this.#countdown.until(ends ? Date.parse(ends) : null);
    } else if (ends) this.#tick(Date.parse(ends) - this.#clock.now(), true);
  }
  #tick(left, quiet = false) {
    const el = this.#root.querySelector(".clock");
    if (el) {
      el.textContent = mmss(left);
      el.classList.toggle("hurry", left < 6e4);
    }
    if (quiet) return;
    const due = WARN.findLast(([ms]) => left <= ms && left > ms - 2e3);
    if (due && !this.#said.has(due[0])) {
      this.#said.add(due[0]);
      this.#say.announce(due[1]);
    }
    if (left === 0) this.#cart.expire();
  }
  #action(text, key, onclick, kind = "") {
    return h("button", { "data-key": key, class: kind, disabled: this.#cart.busy, onclick }, text);
  }
  #money(amount) {
    return money(amount, this.#event);
  }
  #total() {
    const { total, fees } = this.#cart.costs;
    return h("div", { class: "total" }, h("span", {}, "Total", fees.length ? h("small", {}, " with all fees") : null), h("strong", {}, this.#money(total)));
  }
  /** fees are what of the total is none of the prices above. */
  #fees() {
    const { fees } = this.#cart.costs;
    return fees.length === 0 ? [] : [h("ul", { class: "lines fees" }, ...fees.map((f) => h("li", {}, h("span", { class: "place" }, f.name), h("span", { class: "price" }, this.#money(f.amount)))))];
  }
  #picking(state) {
    const cart = this.#cart;
    const parts = [head("Your seats")];
    if (this.#event.state === "cancelled") return [...parts, h("p", { class: "soft" }, "There is no order of yours in this tab.")];
    if (cart.size) parts.push(this.#total());
    if (!cart.picked.size) parts.push(h("p", { class: "soft" }, `Choose seats on the map or in the list. They are yours once you ${this.#event.holds ? "hold" : "have paid for"} them.`));
    if (!cart.picked.size && cart.mostParty > 0 && state.chart.size > 0) parts.push(this.#best());
    parts.push(h("ul", { class: "lines" }, ...[...cart.picked].map((i) => this.#seat(state.chart, i))));
    if (this.#event.areas.length) parts.push(h("div", { class: "areas" }, ...this.#event.areas.map((a) => this.#area(state, a))));
    if (!cart.size) return parts;
    const n = cart.wanted.length + cart.size - cart.picked.size;
    const all = n === cart.size;
    const verb = this.#event.holds ? { does: "Hold", busy: "Holding" } : { does: "Book", busy: "Booking" };
    if (!this.#event.holds) parts.push(h("p", { class: "hint" }, UNHELD));
    parts.push(...this.#fees(), h(
      "div",
      { class: "actions" },
      h(
        "button",
        { "data-key": "hold", class: "primary", disabled: cart.busy || n === 0 || !this.#event.open, onclick: () => cart.hold() },
        cart.busy ? `${verb.busy}…` : all ? `${verb.does} ${n}` : `${verb.does} ${n} of ${cart.size}`
      ),
      this.#action("Clear", "clear", () => cart.clear(), "plain")
    ));
    if (!this.#event.open) parts.push(h("p", { class: "soft" }, "The sale is not open yet. You can already choose."));
    return parts;
  }
  /** best lets the house choose. */
  #best() {
    const cart = this.#cart;
    const n = Math.min(cart.party, cart.mostParty);
    const stepper = new Stepper("Seats for us to choose", "best", (to) => cart.setParty(to));
    return h(
      "div",
      { class: "best" },
      h("span", { class: "place" }, "Or let us choose", h("small", {}, among(cart.wish))),
      cart.busy ? stepper.show(n, n, n).element : stepper.show(n, 1, cart.mostParty).element,
      h(
        "button",
        { "data-key": "best", class: "choose", disabled: cart.busy || !this.#event.open, onclick: () => cart.best() },
        cart.busy ? "Choosing…" : `${this.#event.holds ? "Hold" : "Book"} the best ${n === 1 ? "seat" : n}`
      )
    );
  }
  /** hints are what a shopper may want to know of the seats that are held. */
  #hints(chart) {
    const { together, warnings = [] } = this.#cart.order;
    const single = warnings.filter((w) => w.code === "orphan_left").flatMap((w) => w.seats).map((id) => chart.byTicketId.get(id)).filter((i) => i !== void 0).map((i) => chart.place(i));
    return [
      together === false && "So many seats were not left side by side. These are as near to each other as can be.",
      single.length > 0 && `You leave a single seat that hardly anybody will buy: ${single.join("; ")}. If it is all the same to you, give these back and move by one.`
    ].filter((text) => text !== false).map((text) => h("p", { class: "hint" }, text));
  }
  #seat(chart, i) {
    const free = this.#cart.free(i);
    const color = chart.categories[chart.category[i]].color;
    return h(
      "li",
      { class: free ? "" : "gone" },
      swatch(color),
      h(
        "button",
        { class: "plain place", "data-key": `seat${i}`, onclick: () => this.#reveal(i), title: "Show on the map" },
        chart.place(i),
        free ? null : h("em", {}, " taken"),
        remarked(chart, i)
      ),
      h("span", { class: "price" }, this.#money(this.#cart.price(i))),
      h("button", { class: "plain", "data-key": `drop${i}`, "aria-label": `Remove ${chart.place(i)}`, onclick: () => this.#cart.toggle(i) }, "×")
    );
  }
  #area(state, a) {
    const cart = this.#cart;
    const n = cart.places.get(a.area) ?? 0;
    const left = state.areas.get(a.area) ?? 0;
    const stepper = new Stepper(`Places in ${a.name}`, a.area, (to) => cart.setPlaces(a.area, to));
    return h(
      "div",
      { class: "area", id: `area-${a.area}` },
      h("span", { class: "place" }, a.name, h("small", {}, `${this.#money(cart.alones.get(a.category) ?? 0)} · ${left ? `${number(left)} left` : "full"}`)),
      cart.busy ? stepper.show(n, n, n).element : stepper.show(n, 0, left).element
    );
  }
  #lines(chart) {
    const b = this.#cart.order;
    const areas = new Map(this.#event.areas.map((a) => [a.area, a.name]));
    return h(
      "ul",
      { class: "lines" },
      ...(b.seats ?? []).map((s) => h("li", {}, h("span", { class: "place" }, `${s.section}, row ${s.row}, seat ${s.label}`, remarked(chart, chart.byTicketId.get(s.ticketId))), h("span", { class: "price" }, this.#money(s.price)))),
      ...(b.areas ?? []).map((a) => h("li", {}, h("span", { class: "place" }, `${a.quantity} × ${areas.get(a.area) ?? a.area}`), h("span", { class: "price" }, this.#money(a.price * a.quantity))))
    );
  }
  #held(chart) {
    const cart = this.#cart;
    const { cap, expiresAt = "" } = cart.order;
    const more = !cap || Date.parse(cap) - Date.parse(expiresAt) > 1e3;
    return [
      h("div", { class: "hold" }, head(cart.unheld ? "Booked, not held" : "Held for you"), h("span", { class: "clock", role: "timer" }, "")),
      ...cart.unheld ? [h("p", { class: "hint" }, `${UNHELD} The clock says how long this order and its price stand.`)] : [],
      this.#total(),
      this.#lines(chart),
      ...this.#fees(),
      ...this.#hints(chart),
      this.#pay,
      h(
        "div",
        { class: "actions" },
        this.#action("More time", "extend", () => cart.extend(), more ? "" : "hidden"),
        this.#action("Give back", "back", () => cart.giveBack(), "plain")
      )
    ];
  }
  #paying(chart) {
    const { action, stepping, unheld } = this.#cart;
    return [
      h("div", { class: "hold" }, head("Paying…"), h("span", { class: "clock", role: "timer" }, "")),
      this.#total(),
      this.#lines(chart),
      ...this.#fees(),
      this.#pay,
      ...action && !stepping ? [
        h("p", { class: "hint" }, "Your bank wants you to approve this payment."),
        h("div", { class: "actions" }, h("button", { "data-key": "approve", class: "primary", onclick: () => this.#step(true) }, "Approve the payment"))
      ] : [],
      h("p", { class: "soft working" }, `We are waiting for your bank. ${unheld ? "Should somebody else have been first, you are not charged" : "Your seats stay yours while it answers"}; you may leave this page open or come back to it.`)
    ];
  }
  /**
   * step has the shopper take the step a payment waits for: in the page, or at the
   * bank's. It goes there only when told; who came back from there, or reloads, stays.
   */
  #step(go) {
    const { action } = this.#cart;
    if (!action) return;
    this.#cart.step(async () => {
      if (action.clientSecret && await this.#means.scripted()) await this.#means.step(action.clientSecret);
      else if (go && action.url) location.assign(away(action.url));
    });
  }
  /** code is the QR code of a ticket, drawn once. What draws it is fetched only now. */
  #code(text) {
    const drawn = this.#codes.get(text);
    if (drawn) return drawn;
    const canvas = h("canvas", { class: "qr", role: "img", "aria-label": "QR code to show at the door" });
    this.#codes.set(text, canvas);
    import('./lean-qr.js').then(
      ({ generate }) => generate(text).toCanvas(canvas, { on: [0, 0, 0, 255], off: [255, 255, 255, 255] }),
      () => canvas.replaceWith(h("code", {}, text))
    );
    return canvas;
  }
  #sold() {
    const { order: b } = this.#cart;
    const ticket = (t) => h(
      "article",
      { class: `ticket ${t.status}` },
      h("div", {}, h("strong", {}, this.#event.name), h("small", {}, this.#event.venue)),
      t.area ? h("dl", {}, ...pair("Area", this.#event.areas.find((a) => a.area === t.area)?.name ?? t.area)) : h("dl", {}, ...pair("Section", t.section), ...pair("Row", t.row), ...pair("Seat", t.label)),
      t.qr ? this.#code(t.qr) : null,
      h("footer", {}, h("code", {}, t.id), h("span", { class: "state" }, ticketWords[t.status] ?? t.status))
    );
    const refunded = b.state === "refunded";
    return [
      head(refunded ? "Refunded" : "These are yours"),
      h("p", { class: "soft" }, refunded ? "Your money goes back to where it came from, and these tickets let nobody in." : `${this.#money(b.total.amount)} paid. Enjoy the show.`),
      h("div", { class: "tickets" }, ...(b.tickets ?? []).map(ticket)),
      h("div", { class: "actions" }, this.#action("Choose more seats", "again", () => this.#cart.again()))
    ];
  }
}
function among({ categories, accessible }) {
  const of = categories ? `The best of ${categories.join(", ")}` : "The best there are";
  return accessible ? `${of}: a wheelchair space, and company beside it` : `${of}, side by side if we can`;
}
function remarked(chart, i) {
  const words = i === void 0 ? "" : remarks(chart, i).join(", ");
  return words ? h("small", { class: "remark" }, words) : null;
}
function away(url) {
  const to = new URL(url, location.href);
  if (to.origin === location.origin) to.searchParams.set("return", location.pathname);
  return to.href;
}
const head = (text) => h("h2", { "data-key": "head", tabindex: -1 }, text);
const pair = (name, value = "") => [h("dt", {}, name), h("dd", {}, value)];

export { Panel };
