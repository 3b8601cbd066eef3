import { ACCESSIBLE } from './chart.js';
import { h, swatch } from './dom.js';
import { t } from './lang.js';
import { remaining, money } from './words.js';

class Prices {
  #root;
  #filter;
  #flipped;
  // is called when the filter is another
  #entries = [];
  #all = h("li", { class: "all", hidden: true }, h("button", { id: "filter-all", class: "plain", onclick: () => this.#flip(() => this.#filter.clear()) }, t.map.showAll));
  constructor(root, filter, flipped) {
    this.#root = root;
    this.#filter = filter;
    this.#flipped = flipped;
  }
  /** show takes another chart, and what its categories cost in an event. */
  show(chart, event, prices) {
    this.#root.dataset.chart = chart.sha;
    this.#entries = chart.categories.map(({ name, color }, n) => {
      const amount = prices.get(name);
      return this.#entry({
        parts: [swatch(color), h("span", { dir: "auto" }, name), h("strong", {}, amount === void 0 ? "–" : money(amount, event))],
        flip: () => this.#filter.flip(name),
        pressed: () => this.#filter.has(name),
        says: (state) => {
          const places = chart.areas.filter((a) => a.category === name).reduce((sum, a) => sum + (state.areas.get(a.id) ?? 0), 0);
          return remaining(state, state.freeByCategory[n] + places, state.heldByCategory[n], t.left.left);
        }
      });
    });
    if (chart.flags.some((f) => f & ACCESSIBLE)) {
      this.#entries.push(this.#entry({
        id: "filter-accessible",
        parts: [h("i", { class: "wheelchair" }), h("span", {}, t.map.special), h("strong", {})],
        flip: () => {
          this.#filter.accessible = !this.#filter.accessible;
        },
        pressed: () => this.#filter.accessible,
        says: (state) => remaining(state, state.freeSpecial, state.heldSpecial, t.left.left)
      }));
    }
    this.#root.replaceChildren(...this.#entries.map((e) => h("li", {}, e.button)), this.#all);
  }
  /** update says what is free now, and what is filtered. */
  update(state) {
    for (const e of this.#entries) {
      e.left.textContent = e.says(state);
      e.button.setAttribute("aria-pressed", String(e.pressed()));
    }
    this.#root.classList.toggle("filtered", this.#filter.on);
    this.#all.hidden = !this.#filter.on;
  }
  #entry({ id, parts, flip, pressed, says }) {
    const left = h("small", {});
    const button = h("button", { id, "aria-pressed": "false", onclick: () => this.#flip(flip) }, ...parts, left);
    return { button, left, pressed, says };
  }
  #flip(flip) {
    flip();
    this.#flipped();
  }
}

export { Prices };
