// What the numbered frames say: the status of every seat and the places left
// in every area, with the counts the page shows kept as frames arrive.

import { ACCESSIBLE, COMPANION, type Chart } from './chart';
import type * as wire from './wire';

/** The four states of a seat, in their encoding. */
export const AVAILABLE = 0;
export const HELD = 1;
export const SOLD = 2;
export const UNAVAILABLE = 3;

/**
 * decodeMap reads a map as it is sent, into a status per seat: base64, two bits a
 * seat, seat i in bits 2(i mod 4) of byte i/4. Seats beyond its end are unavailable.
 */
export function decodeMap(base64: string, seats: number): Uint8Array {
  const bytes = atob(base64);
  const out = new Uint8Array(seats).fill(UNAVAILABLE);
  for (let i = 0, n = Math.min(seats, bytes.length * 4); i < n; i++) {
    out[i] = (bytes.charCodeAt(i >> 2) >> (2 * (i & 3))) & 3;
  }
  return out;
}

/**
 * judge says what to do with a delta when the last number seen is mine, or 0 when
 * there was none. While resuming, the first frames may begin before it; otherwise a
 * frame whose prev is not mine tells of a gap or a fork. States are absolute, so an
 * overlap does no harm.
 */
export function judge(mine: number, frame: { n: number; prev: number }, resuming: boolean): 'apply' | 'old' | 'gap' {
  if (mine === 0) return 'gap';
  if (frame.n <= mine) return 'old';
  if (frame.prev === mine || (resuming && frame.prev < mine)) return 'apply';
  return 'gap';
}

/** State is the map of one event as this page knows it. */
export class State {
  readonly chart: Chart;
  known = false; // before the first snapshot nothing is said of what is left
  readonly status: Uint8Array; // by seat
  readonly free: Int32Array; // by section
  readonly held: Int32Array; // by section
  readonly freeByCategory: Int32Array;
  readonly heldByCategory: Int32Array;
  readonly seatsIn: Int32Array; // by part, as the two that follow
  readonly freeIn: Int32Array;
  readonly heldIn: Int32Array;
  freeSpecial = 0; // wheelchair spaces and companion seats
  heldSpecial = 0;
  readonly areas: Map<string, number>; // places left

  constructor(chart: Chart) {
    this.chart = chart;
    this.status = new Uint8Array(chart.size).fill(UNAVAILABLE);
    this.free = new Int32Array(chart.sections.length);
    this.held = new Int32Array(chart.sections.length);
    this.freeByCategory = new Int32Array(chart.categories.length);
    this.heldByCategory = new Int32Array(chart.categories.length);
    const parts = chart.sections.length * chart.categories.length * 2;
    this.seatsIn = new Int32Array(parts);
    this.freeIn = new Int32Array(parts);
    this.heldIn = new Int32Array(parts);
    for (let i = 0; i < chart.size; i++) if (chart.section[i] >= 0) this.seatsIn[this.#partOf(i)]++;
    this.areas = new Map(chart.areas.map((a) => [a.id, a.capacity]));
  }

  /** part is a section's seats of a category that are, or are not, wheelchair spaces and companion seats. */
  part(section: number, category: number, special: boolean): number {
    return (section * this.chart.categories.length + category) * 2 + Number(special);
  }

  #partOf(i: number): number {
    const c = this.chart;
    return this.part(c.section[i], c.category[i], (c.flags[i] & (ACCESSIBLE | COMPANION)) > 0);
  }

  /** snapshot replaces everything, and returns the seats that differ. */
  snapshot(frame: wire.Snapshot): number[] {
    this.known = true;
    const next = decodeMap(frame.map, this.chart.size);
    const changed: number[] = [];
    for (let i = 0; i < next.length; i++) this.#set(i, next[i], changed);
    this.#areas(frame.areas);
    return changed;
  }

  /** delta writes what a frame names, and returns the seats that differ. */
  delta(frame: wire.Delta): number[] {
    const changed: number[] = [];
    const lists: [number[], number][] = [[frame.reserved, HELD], [frame.released, AVAILABLE], [frame.booked, SOLD], [frame.closed, UNAVAILABLE]];
    for (const [seats, to] of lists) {
      for (const i of seats) this.#set(i, to, changed);
    }
    this.#areas(frame.areas);
    return changed;
  }

  #set(i: number, to: number, changed: number[]): void {
    const c = this.chart;
    const from = this.status[i];
    // A frame may name seats of a chart newer than ours.
    if (from === to || !(i < c.size) || c.section[i] < 0) return;
    this.status[i] = to;
    const step = Number(to === AVAILABLE) - Number(from === AVAILABLE);
    this.free[c.section[i]] += step;
    this.freeByCategory[c.category[i]] += step;
    const held = Number(to === HELD) - Number(from === HELD);
    this.held[c.section[i]] += held;
    this.heldByCategory[c.category[i]] += held;
    const part = this.#partOf(i);
    this.freeIn[part] += step;
    this.heldIn[part] += held;
    if (part % 2) {
      this.freeSpecial += step;
      this.heldSpecial += held;
    }
    changed.push(i);
  }

  #areas(areas: Record<string, number>): void {
    for (const [id, left] of Object.entries(areas ?? {})) this.areas.set(id, left);
  }
}
