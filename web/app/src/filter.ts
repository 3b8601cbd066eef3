// What a shopper wants to see of a house: seats at some of the prices, or of
// wheelchair users and who comes along with them. The rest is dimmed, not gone.

import { ACCESSIBLE, COMPANION, type Chart, type Section } from './chart';
import type { State } from './state';
import type * as wire from './wire';

/** Offer is what a section has for a shopper. */
export interface Offer {
  seats: number; // that are wanted, free or not
  free: number;
  held: number;
  from: number | null; // the lowest price of those free
}

/** Filter is a choice of seats of one event. */
export class Filter {
  accessible = false; // wheelchair spaces and companion seats alone
  #categories = new Set<string>(); // names; without any, all

  /** on says whether anything is left out. */
  get on(): boolean {
    return this.accessible || this.#categories.size > 0;
  }

  /** has says whether a category was chosen. */
  has(category: string): boolean {
    return this.#categories.has(category);
  }

  /** flip chooses a category, or does not any more. */
  flip(category: string): void {
    if (!this.#categories.delete(category)) this.#categories.add(category);
  }

  /** clear wants every seat. */
  clear(): void {
    this.accessible = false;
    this.#categories.clear();
  }

  /** keep forgets the categories that a chart does not have. */
  keep(chart: Chart): void {
    this.#categories = new Set(chart.categories.map((c) => c.name).filter((name) => this.#categories.has(name)));
  }

  /** passes says whether a seat is wanted. */
  passes(chart: Chart, i: number): boolean {
    return this.#wants(chart.categories[chart.category[i]].name, (chart.flags[i] & (ACCESSIBLE | COMPANION)) > 0);
  }

  /** admits says whether an area is wanted. */
  admits(category: string): boolean {
    return this.#wants(category, false);
  }

  #wants(category: string, special: boolean): boolean {
    return (special || !this.accessible) && (this.#categories.size === 0 || this.#categories.has(category));
  }

  /** offer counts what a section has, at these prices by category. */
  offer(state: State, section: Section, prices: Map<string, number>): Offer {
    const sum: Offer = { seats: 0, free: 0, held: 0, from: null };
    state.chart.categories.forEach(({ name }, category) => {
      for (const special of [false, true]) {
        if (!this.#wants(name, special)) continue;
        const at = state.part(section.index, category, special);
        sum.seats += state.seatsIn[at];
        sum.free += state.freeIn[at];
        sum.held += state.heldIn[at];
        const price = prices.get(name);
        if (state.freeIn[at] && price !== undefined) sum.from = Math.min(sum.from ?? price, price);
      }
    });
    return sum;
  }

  /** wish is what it asks of a house that chooses. One wheelchair space is asked for: the others are company. */
  get wish(): Omit<wire.Wish, 'quantity'> {
    return { ...this.#categories.size && { categories: [...this.#categories].sort() }, ...this.accessible && { accessible: 1 } };
  }
}
