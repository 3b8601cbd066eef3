import { ACCESSIBLE, COMPANION } from './chart.js';

const AVAILABLE = 0;
const HELD = 1;
const SOLD = 2;
const UNAVAILABLE = 3;
function decodeMap(base64, seats) {
  const bytes = atob(base64);
  const out = new Uint8Array(seats).fill(UNAVAILABLE);
  for (let i = 0, n = Math.min(seats, bytes.length * 4); i < n; i++) {
    out[i] = bytes.charCodeAt(i >> 2) >> 2 * (i & 3) & 3;
  }
  return out;
}
function judge(mine, frame, resuming) {
  if (mine === 0) return "gap";
  if (frame.n <= mine) return "old";
  if (frame.prev === mine || resuming && frame.prev < mine) return "apply";
  return "gap";
}
class State {
  chart;
  known = false;
  // before the first snapshot nothing is said of what is left
  status;
  // by seat
  free;
  // by section
  held;
  // by section
  freeByCategory;
  heldByCategory;
  seatsIn;
  // by part, as the two that follow
  freeIn;
  heldIn;
  freeSpecial = 0;
  // wheelchair spaces and companion seats
  heldSpecial = 0;
  areas;
  // places left
  constructor(chart) {
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
  part(section, category, special) {
    return (section * this.chart.categories.length + category) * 2 + Number(special);
  }
  #partOf(i) {
    const c = this.chart;
    return this.part(c.section[i], c.category[i], (c.flags[i] & (ACCESSIBLE | COMPANION)) > 0);
  }
  /** snapshot replaces everything, and returns the seats that differ. */
  snapshot(frame) {
    this.known = true;
    const next = decodeMap(frame.map, this.chart.size);
    const changed = [];
    for (let i = 0; i < next.length; i++) this.#set(i, next[i], changed);
    this.#areas(frame.areas);
    return changed;
  }
  /** delta writes what a frame names, and returns the seats that differ. */
  delta(frame) {
    const changed = [];
    const lists = [[frame.reserved, HELD], [frame.released, AVAILABLE], [frame.booked, SOLD], [frame.closed, UNAVAILABLE]];
    for (const [seats, to] of lists) {
      for (const i of seats) this.#set(i, to, changed);
    }
    this.#areas(frame.areas);
    return changed;
  }
  #set(i, to, changed) {
    const c = this.chart;
    const from = this.status[i];
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
  #areas(areas) {
    for (const [id, left] of Object.entries(areas ?? {})) this.areas.set(id, left);
  }
}

export { AVAILABLE, HELD, SOLD, State, UNAVAILABLE, decodeMap, judge };
