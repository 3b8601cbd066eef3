import { ACCESSIBLE, COMPANION } from './chart.js';

class Filter {
  accessible = false;
  // wheelchair spaces and companion seats alone
  #categories = /* @__PURE__ */ new Set();
  // names; without any, all
  /** on says whether anything is left out. */
  get on() {
    return this.accessible || this.#categories.size > 0;
  }
  /** has says whether a category was chosen. */
  has(category) {
    return this.#categories.has(category);
  }
  /** flip chooses a category, or does not any more. */
  flip(category) {
    if (!this.#categories.delete(category)) this.#categories.add(category);
  }
  /** clear wants every seat. */
  clear() {
    this.accessible = false;
    this.#categories.clear();
  }
  /** keep forgets the categories that a chart does not have. */
  keep(chart) {
    this.#categories = new Set(chart.categories.map((c) => c.name).filter((name) => this.#categories.has(name)));
  }
  /** passes says whether a seat is wanted. */
  passes(chart, i) {
    return this.#wants(chart.categories[chart.category[i]].name, (chart.flags[i] & (ACCESSIBLE | COMPANION)) > 0);
  }
  /** admits says whether an area is wanted. */
  admits(category) {
    return this.#wants(category, false);
  }
  #wants(category, special) {
    return (special || !this.accessible) && (this.#categories.size === 0 || this.#categories.has(category));
  }
  /** offer counts what a section has, at these prices by category. */
  offer(state, section, prices) {
    const sum = { seats: 0, free: 0, held: 0, from: null };
    state.chart.categories.forEach(({ name }, category) => {
      for (const special of [false, true]) {
        if (!this.#wants(name, special)) continue;
        const at = state.part(section.index, category, special);
        sum.seats += state.seatsIn[at];
        sum.free += state.freeIn[at];
        sum.held += state.heldIn[at];
        const price = prices.get(name);
        if (state.freeIn[at] && price !== void 0) sum.from = Math.min(sum.from ?? price, price);
      }
    });
    return sum;
  }
  /** wish is what it asks of a house that chooses. One wheelchair space is asked for: the others are company. */
  get wish() {
    return { ...this.#categories.size && { categories: [...this.#categories].sort() }, ...this.accessible && { accessible: 1 } };
  }
}

export { Filter };
