// What the seats of a house cost, which is also its filter: a button a price, that
// has seats at it shown and others dimmed, and one for seats of wheelchair users.

import { ACCESSIBLE, type Chart } from './chart';
import { h, swatch, type Child } from './dom';
import type { Filter } from './filter';
import { t } from './lang';
import type { State } from './state';
import type * as wire from './wire';
import { money, remaining } from './words';

interface Entry { button: HTMLButtonElement; left: HTMLElement; pressed(): boolean; says(state: State): string }

/** Prices fills a list with prices, all in, and what is free at each. */
export class Prices {
  #root: HTMLElement;
  #filter: Filter;
  #flipped: () => void; // is called when the filter is another
  #entries: Entry[] = [];
  #all = h('li', { class: 'all', hidden: true }, h('button', { id: 'filter-all', class: 'plain', onclick: () => this.#flip(() => this.#filter.clear()) }, t.map.showAll));

  constructor(root: HTMLElement, filter: Filter, flipped: () => void) {
    this.#root = root;
    this.#filter = filter;
    this.#flipped = flipped;
  }

  /** show takes another chart, and what its categories cost in an event. */
  show(chart: Chart, event: wire.Event, prices: Map<string, number>): void {
    this.#root.dataset.chart = chart.sha;
    this.#entries = chart.categories.map(({ name, color }, n) => {
      const amount = prices.get(name);
      return this.#entry({
        parts: [swatch(color), h('span', { dir: 'auto' }, name), h('strong', {}, amount === undefined ? '–' : money(amount, event))],
        flip: () => this.#filter.flip(name),
        pressed: () => this.#filter.has(name),
        says: (state) => {
          const places = chart.areas.filter((a) => a.category === name).reduce((sum, a) => sum + (state.areas.get(a.id) ?? 0), 0);
          return remaining(state, state.freeByCategory[n] + places, state.heldByCategory[n], t.left.left);
        },
      });
    });
    if (chart.flags.some((f) => f & ACCESSIBLE)) {
      this.#entries.push(this.#entry({
        id: 'filter-accessible',
        parts: [h('i', { class: 'wheelchair' }), h('span', {}, t.map.special), h('strong', {})],
        flip: () => { this.#filter.accessible = !this.#filter.accessible; },
        pressed: () => this.#filter.accessible,
        says: (state) => remaining(state, state.freeSpecial, state.heldSpecial, t.left.left),
      }));
    }
    this.#root.replaceChildren(...this.#entries.map((e) => h('li', {}, e.button)), this.#all);
  }

  /** update says what is free now, and what is filtered. */
  update(state: State): void {
    for (const e of this.#entries) {
      e.left.textContent = e.says(state);
      e.button.setAttribute('aria-pressed', String(e.pressed()));
    }
    this.#root.classList.toggle('filtered', this.#filter.on);
    this.#all.hidden = !this.#filter.on;
  }

  #entry({ id, parts, flip, pressed, says }: { id?: string; parts: Child[]; flip(): void; pressed(): boolean; says(state: State): string }): Entry {
    const left = h('small', {});
    const button = h('button', { id, 'aria-pressed': 'false', onclick: () => this.#flip(flip) }, ...parts, left);
    return { button, left, pressed, says };
  }

  #flip(flip: () => void): void {
    flip();
    this.#flipped();
  }
}
