// The next best for seats that somebody else has got: as many, at the same price, and as
// near to what was chosen as can be. It looks at the map the page has, and asks nobody.

import { ACCESSIBLE, BREAK, COMPANION, type Chart } from './chart';

/** Offer are seats to take in place of those that were chosen. */
export interface Offer {
  seats: number[];
  together: boolean; // whoever sat side by side does so again
}

/** Window is a run of free seats that could be taken: the less of each, the better, the first before the others. */
interface Window { seats: number[]; cost: [elsewhere: number, orphan: number, distance: number] }

const SPACE = ACCESSIBLE | COMPANION; // given to whoever chooses them, and offered to nobody else

/**
 * near is the next best for chosen seats of which some are not free any more, or null where
 * the house has none. What is chosen at a price of which nothing is gone stays as it is;
 * so do the rest of the seats that were not side by side, or cannot be again. orphans is
 * the event's rule of single seats.
 */
export function near(chart: Chart, chosen: number[], free: (i: number) => boolean, orphans: string): Offer | null {
  const byCategory = new Map<number, number[]>();
  for (const i of chosen) byCategory.set(chart.category[i], [...byCategory.get(chart.category[i]) ?? [], i]);
  const seats: number[] = [];
  for (const group of byCategory.values()) {
    if (group.every(free)) {
      seats.push(...group);
      continue;
    }
    const run = runs(chart, group).length === 1 && !group.some((i) => chart.flags[i] & SPACE) ? nearestRun(chart, group, free, orphans) : null;
    const found = run ?? scattered(chart, group, free);
    if (!found) return null;
    seats.push(...found);
  }
  return { seats, together: haveRoom(runs(chart, chosen), runs(chart, seats)) };
}

/** runs are how many of the seats sit side by side, run by run, the longest first. */
function runs(chart: Chart, seats: number[]): number[] {
  const rows = new Set(seats.flatMap((i) => chart.sections[chart.section[i]].rows.filter((r) => r.seats.includes(i))));
  const all: number[] = [];
  for (const row of rows) {
    let run = 0;
    for (const i of row.seats) {
      const ours = seats.includes(i);
      if (run && (!ours || chart.flags[i] & BREAK)) {
        all.push(run);
        run = 0;
      }
      if (ours) run++;
    }
    if (run) all.push(run);
  }
  return all.sort((a, b) => b - a);
}

/** haveRoom says whether runs of seats find room in others, each in one piece. */
function haveRoom(wanted: number[], found: number[]): boolean {
  const left = [...found];
  for (const run of wanted) {
    const k = left.findLastIndex((room) => room >= run);
    if (k < 0) return false;
    left[k] -= run;
    left.sort((a, b) => b - a);
  }
  return true;
}

/** nearestRun is the best run of free seats like these. */
function nearestRun(chart: Chart, like: number[], free: (i: number) => boolean, orphans: string): number[] | null {
  const category = chart.category[like[0]];
  const sections = new Set(like.map((i) => chart.section[i]));
  const x = like.reduce((sum, i) => sum + chart.x[i], 0) / like.length;
  const y = like.reduce((sum, i) => sum + chart.y[i], 0) / like.length;
  let best: Window | null = null;
  for (const section of chart.sections) {
    for (const row of section.rows) {
      for (const open of stretches(chart, row.seats, free)) {
        for (let from = 0; from + like.length <= open.length; from++) {
          const seats = open.slice(from, from + like.length);
          if (seats.some((i) => chart.category[i] !== category)) continue;
          const [before, after] = [from, open.length - from - like.length];
          const orphan = orphans !== 'allow' && (before === 1 || after === 1) && before + after > 1;
          if (orphan && orphans === 'refuse') continue;
          const [a, b] = [seats[0], seats[seats.length - 1]];
          const distance = Math.hypot((chart.x[a] + chart.x[b]) / 2 - x, (chart.y[a] + chart.y[b]) / 2 - y);
          const cost: Window['cost'] = [sections.has(section.index) ? 0 : 1, orphan ? 1 : 0, distance];
          if (!best || less(cost, best.cost)) best = { seats, cost };
        }
      }
    }
  }
  return best?.seats ?? null;
}

/** stretches are the free seats of a row that are neighbours, spaces left out. */
function stretches(chart: Chart, row: number[], free: (i: number) => boolean): number[][] {
  const all: number[][] = [];
  let open: number[] = [];
  for (const i of row) {
    const usable = free(i) && !(chart.flags[i] & SPACE);
    if ((!usable || chart.flags[i] & BREAK) && open.length) {
      all.push(open);
      open = [];
    }
    if (usable) open.push(i);
  }
  return open.length ? [...all, open] : all;
}

/** scattered keeps the seats that are free, and has the nearest of its like for each of the others. */
function scattered(chart: Chart, like: number[], free: (i: number) => boolean): number[] | null {
  const found = like.filter(free);
  for (const lost of like.filter((i) => !free(i))) {
    let best = -1;
    let least: number[] = [];
    for (let i = 0; i < chart.size; i++) {
      if (chart.category[i] !== chart.category[lost] || chart.section[i] < 0 || !free(i) || (chart.flags[i] ^ chart.flags[lost]) & SPACE || found.includes(i)) continue;
      const cost = [chart.section[i] === chart.section[lost] ? 0 : 1, chart.distance(i, lost)];
      if (best < 0 || less(cost, least)) [best, least] = [i, cost];
    }
    if (best < 0) return null;
    found.push(best);
  }
  return found;
}

/** less compares number by number. */
function less(a: number[], b: number[]): boolean {
  const n = a.findIndex((v, k) => v !== b[k]);
  return n >= 0 && a[n] < b[n];
}
