// What is chosen of a house: seats and places, what they cost, which of them somebody
// else has got and what may be taken instead. Nothing here asks the server.

import type { Stage } from './cart';
import type { Chart } from './chart';
import { near, type Offer } from './near';
import { allIn, type Costs } from './price';
import { AVAILABLE, type State } from './state';
import type * as wire from './wire';

/** Choice is what is chosen of one event, as long as nothing is held. It tells "change". */
export abstract class Choice extends EventTarget {
  abstract readonly stage: Stage;
  abstract readonly busy: boolean;
  picked = new Set<number>(); // seats by i, in the order they were chosen
  places = new Map<string, number>(); // area → quantity
  gone = new Set<number>(); // seats the server said are taken; until the map says otherwise
  prices = new Map<string, number>(); // category → minor units, on the chart in force, without fees
  alones = new Map<string, number>(); // the same for one ticket alone, with all fees
  party = 2; // seats to ask for when the house chooses
  wish: Omit<wire.Wish, 'quantity'> = {}; // what else is asked of it
  max = Infinity; // seats and places the page allows, whatever the event does
  protected event: wire.Event;
  protected chart!: Chart; // since the first was followed
  protected state!: State;
  protected known = false; // the map says what is free
  protected ours = new Set<number>(); // seats that were asked for or given back: whose they are the map may not show yet
  #offer: (Offer & { of: string }) | null = null;

  constructor(event: wire.Event) {
    super();
    this.event = event;
  }

  /** unsure are seats that may be this shopper's, whatever the map says. */
  protected abstract get unsure(): Set<number>;

  /**
   * on follows a chart and its state, and the event as it is sold on it. Seats
   * chosen on another chart are found again by ticketId.
   */
  on(state: State): void {
    const old: Chart | undefined = this.chart;
    this.prices = new Map(this.event.prices.map((p) => [p.category, p.amount]));
    this.alones = new Map(this.event.prices.map((p) => [p.category, p.allIn ?? p.amount]));
    this.chart = state.chart;
    this.state = state;
    this.known = false;
    this.ours = this.unsure;
    if (!old) return;
    const kept = this.at([...this.picked].map((i) => old.ticketId[i]));
    const areas = new Set(this.event.areas.map((a) => a.area));
    const left = [...this.places].filter(([area]) => areas.has(area));
    const lost = kept.length < this.picked.size || left.length < this.places.size;
    this.picked = new Set(kept);
    this.places = new Map(left);
    this.gone.clear();
    this.changed(lost);
  }

  /** heard follows changes of the map: what is free, and, which it returns, what was chosen and is gone. */
  protected heard(seats: number[]): number[] {
    const { unsure } = this;
    const first = !this.known;
    this.known = true;
    for (const i of seats) {
      if (!this.busy && !unsure.has(i)) this.ours.delete(i);
      if (this.state.status[i] === AVAILABLE) this.gone.delete(i);
    }
    if (first || this.busy || this.stage !== 'picking') return [];
    return seats.filter((i) => this.picked.has(i) && !this.gone.has(i) && !this.free(i));
  }

  /** concerns says whether a seat is chosen, or offered in place of one that is. */
  protected concerns(i: number): boolean {
    return this.picked.has(i) || this.#offer !== null && this.#offer.seats.includes(i);
  }

  /** free says whether a chosen seat can still be held. */
  free(i: number): boolean {
    return (this.state.status[i] === AVAILABLE || this.ours.has(i)) && !this.gone.has(i);
  }

  /** lost are the chosen seats that somebody else has got. */
  get lost(): number[] {
    return this.known ? [...this.picked].filter((i) => !this.free(i)) : [];
  }

  /** offer is what may be taken in place of all that is chosen, some of which is lost. It stays the same while it is free. */
  get offer(): Offer | null {
    const { lost } = this;
    if (this.stage !== 'picking' || !lost.length) return this.#offer = null;
    const of = `${[...this.picked].join()} ${lost.join()}`;
    const free = (i: number) => this.free(i);
    if (this.#offer?.of !== of || !this.#offer.seats.every(free)) {
      const found = near(this.chart, [...this.picked], free, this.event.orphans);
      this.#offer = found && { ...found, of };
    }
    return this.#offer;
  }

  /** wanted are the chosen seats that can be held now. */
  get wanted(): number[] {
    return [...this.picked].filter((i) => this.free(i));
  }

  /** size counts what is chosen. */
  get size(): number {
    return this.picked.size + [...this.places.values()].reduce((sum, n) => sum + n, 0);
  }

  /** price of one seat without fees, in minor units. */
  price(i: number): number {
    return this.prices.get(this.#category(i)) ?? 0;
  }

  /** alone is what one seat costs, bought alone, with all fees. */
  alone(i: number): number {
    return this.alones.get(this.#category(i)) ?? 0;
  }

  #category(i: number): string {
    return this.chart.categories[this.chart.category[i]].name;
  }

  /** costs is what would be held now: all in, and what of it is which fee. */
  get costs(): Costs {
    const prices = this.wanted.map((i) => this.price(i));
    for (const a of this.event.areas) prices.push(...new Array<number>(this.places.get(a.area) ?? 0).fill(this.prices.get(a.category) ?? 0));
    return allIn(prices, this.event.fees);
  }

  /** toggle chooses a seat or takes it out again. */
  toggle(i: number): 'added' | 'removed' | 'full' | 'not free' | 'busy' {
    if (this.stage !== 'picking' || this.busy) return 'busy';
    if (this.picked.has(i)) {
      this.picked.delete(i);
      this.gone.delete(i);
      this.changed(true);
      return 'removed';
    }
    if (!this.free(i)) return 'not free';
    if (this.size >= this.most) return 'full';
    this.picked.add(i);
    this.changed(true);
    return 'added';
  }

  /** most is how many seats and places may be chosen. */
  get most(): number {
    return Math.min(this.max, this.event.seatsPerBooking ?? Infinity);
  }

  /**
   * only chooses seats by ticketId in place of those that were, as many as may be, and
   * returns those of them that are not free.
   */
  only(ids: string[]): string[] {
    const at = (id: string) => this.chart.byTicketId.get(id) ?? -1;
    const free = [...new Set(ids)].filter((id) => at(id) >= 0 && this.free(at(id)));
    this.picked = new Set(free.slice(0, Math.max(0, this.most - (this.size - this.picked.size))).map(at));
    this.changed(true);
    return ids.filter((id) => !free.includes(id));
  }

  /** restore chooses what was chosen before a reload, also what is gone since. */
  restore(ids: string[], places: [area: string, quantity: number][]): void {
    this.picked = new Set(this.at(ids).slice(0, this.most));
    for (const [area, n] of places) if (this.event.areas.some((a) => a.area === area)) this.setPlaces(area, n);
    this.changed(true);
  }

  /** chosen are the chosen seats by ticketId. */
  get chosen(): string[] {
    return [...this.picked].map((i) => this.chart.ticketId[i]);
  }

  /** setPlaces wants so many places of an area. */
  setPlaces(area: string, n: number): void {
    const most = this.most - this.size + (this.places.get(area) ?? 0);
    const q = Math.max(0, Math.min(n, most));
    if (q) this.places.set(area, q);
    else this.places.delete(area);
    this.changed(true);
  }

  /** mostParty is how many seats the house can be asked for beside the places chosen. */
  get mostParty(): number {
    return Math.min(this.max, this.event.seatsPerBooking ?? 100) - (this.size - this.picked.size);
  }

  /** setParty says how many seats the house is to choose. */
  setParty(n: number): void {
    this.party = Math.max(1, Math.min(n, this.mostParty));
    this.changed(true);
  }

  /** setWish says which seats the house is to choose among. */
  setWish(wish: Omit<wire.Wish, 'quantity'>): void {
    const other = JSON.stringify(wish) !== JSON.stringify(this.wish);
    this.wish = wish;
    this.changed(other);
  }

  /** clear takes everything out. */
  clear(): void {
    this.picked.clear();
    this.places.clear();
    this.gone.clear();
    this.changed(true);
  }

  protected get areas(): wire.Take['areas'] {
    return [...this.places].map(([area, quantity]) => ({ area, quantity }));
  }

  /** at are seats by ticketId. */
  protected at(ids: string[]): number[] {
    return ids.map((id) => this.chart.byTicketId.get(id)).filter((i) => i !== undefined);
  }

  /** changed tells. Chosen: something else is. */
  protected changed(_chosen = false): void {
    this.dispatchEvent(new Event('change'));
  }
}
