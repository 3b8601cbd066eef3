// Names of rows: beside both their ends, one for both blocks where an aisle has no
// room for two, and at the edge of the map where neither end of a row is seen.

import type { Box, Chart } from './chart';
import { caption, extent, PLATE, write } from './legend';
import type { Painter, Pen, Window } from './paint';
import { t } from './lang';
import type { Point } from './wire';

const GAP = 4; // CSS pixels between two names
const EDGE = { side: 8, top: 60, bottom: 44 }; // CSS pixels of the canvas that are left to tools, and to its border

/** Name is one that is written, and where, in device pixels. */
interface Name extends Point { text: string; box: Box; plate: number; picture?: HTMLCanvasElement }

/** Rows are the names of the rows of one chart, in one theme. */
export class Rows {
  #chart: Chart;
  #painter: Painter;
  #names: Name[] = [];
  #px = 0;

  constructor(chart: Chart, painter: Painter) {
    this.#chart = chart;
    this.#painter = painter;
  }

  /** clear writes none until they are placed again. */
  clear(): void {
    this.#names = [];
  }

  /** place finds where they lie in a view; worded: at the edge they are called rows, since seats have numbers too. */
  place(to: Window, worded: boolean): void {
    const { sections, slabWidth } = this.#chart;
    this.#names = [];
    this.#px = Math.round(Math.max(9.5 * to.dpr, this.#chart.radius * to.k * 0.7));
    const m = slabWidth * 2;
    const hidden: number[][] = []; // rows of which no end is seen, and their names
    const { box } = to;
    for (const s of sections) {
      if (s.box.x1 + m < box.x0 || s.box.x0 - m > box.x1 || s.box.y1 + m < box.y0 || s.box.y0 - m > box.y1) continue;
      for (const { label, seats } of s.rows) {
        if (seats.length < 2 || !label) continue;
        const n = seats.length;
        const ends = [this.#end(label, seats[0], seats[1], to), this.#end(label, seats[n - 1], seats[n - 2], to)];
        if (!ends.includes(true)) hidden.push(seats);
      }
    }
    for (const seats of hidden) this.#edge(seats, to, worded);
  }

  /** paint writes those beside the ends of rows, which lie on no seat, or those at the edge, which do. */
  paint(ctx: Pen, which: 'ends' | 'edge'): void {
    const { colors } = this.#painter;
    for (const name of this.#names) {
      const { text, plate } = name;
      if ((which === 'edge') !== plate > 0) continue;
      name.picture ??= caption(this.#painter, [text], this.#px, plate ? { ink: colors.ink, ground: colors.slab, plate } : { ink: colors.soft, ground: colors.paper });
      write(ctx, name.picture, name);
    }
  }

  /** end places a name beside the end of a row, whose seat has another next to it, and returns whether it is seen. */
  #end(text: string, seat: number, next: number, to: Window): boolean {
    const { x, y, radius } = this.#chart;
    const d = this.#chart.distance(seat, next) || 1;
    const [ux, uy] = [(x[seat] - x[next]) / d, (y[seat] - y[next]) / d];
    const { width, height } = extent(this.#painter, [text], this.#px);
    const off = radius * to.k + to.dpr + (Math.abs(ux) * width + Math.abs(uy) * height) / 2;
    const at = { x: (x[seat] - to.x0) * to.k + ux * off, y: (y[seat] - to.y0) * to.k + uy * off };
    const whole = { x1: (to.box.x1 - to.box.x0) * to.k, y1: (to.box.y1 - to.box.y0) * to.k };
    const name = named(text, at, width, height);
    if (name.box.x1 < 0 || name.box.y1 < 0 || name.box.x0 > whole.x1 || name.box.y0 > whole.y1) return false;
    const seen = name.box.x0 >= 0 && name.box.y0 >= 0 && name.box.x1 <= whole.x1 && name.box.y1 <= whole.y1;
    const other = this.#meets(name.box, GAP * to.dpr);
    if (!other) this.#names.push(name);
    else if (other.text !== text) return false;
    else Object.assign(other, named(text, { x: (other.x + at.x) / 2, y: (other.y + at.y) / 2 }, width, height));
    return seen;
  }

  /** edge places a name where its row comes into view: at the left, or at the top where it goes down. */
  #edge(seats: number[], to: Window, worded: boolean): void {
    const { x, y, row, pitch } = this.#chart;
    const { dpr, k } = to;
    const text = row[seats[0]];
    const [px, py] = [(i: number) => (x[i] - to.x0) * k, (i: number) => (y[i] - to.y0) * k];
    const [right, bottom] = [(to.box.x1 - to.box.x0) * k - EDGE.side * dpr, (to.box.y1 - to.box.y0) * k - EDGE.bottom * dpr];
    const [left, top] = [EDGE.side * dpr, EDGE.top * dpr];
    const seen = seats.filter((i) => px(i) > left && px(i) < right && py(i) > top && py(i) < bottom);
    if (!seen.length) return;
    const [a, b] = [seen[0], seen[seen.length - 1]];
    const across = Math.abs(px(a) - px(b)) >= Math.abs(py(a) - py(b));
    const first = (across ? px(a) <= px(b) : py(a) <= py(b)) ? a : b;
    for (const words of worded ? [t.seat.row(text), text] : [text]) {
      const { width, height } = extent(this.#painter, [words], this.#px, PLATE.usual);
      const [w, h] = [width / 2, height / 2];
      const at = across
        ? { x: Math.max(left + w, px(first) - pitch * k), y: py(first) }
        : { x: px(first), y: Math.max(top + h, py(first) - pitch * k) };
      const name = named(words, at, width, height, PLATE.usual);
      if (this.#meets(name.box, dpr)) continue;
      this.#names.push(name);
      return;
    }
  }

  /** meets is a name that would run into a box. */
  #meets(box: Box, gap: number): Name | undefined {
    return this.#names.find(({ box: b }) => b.x0 < box.x1 + gap && b.x1 > box.x0 - gap && b.y0 < box.y1 && b.y1 > box.y0);
  }
}

const named = (text: string, { x, y }: Point, w: number, h: number, plate = 0): Name =>
  ({ text, x, y, plate, box: { x0: x - w / 2, y0: y - h / 2, x1: x + w / 2, y1: y + h / 2 } });
