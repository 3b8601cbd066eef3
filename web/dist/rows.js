import { caption, write, extent, PLATE } from './legend.js';
import { t } from './lang.js';

const GAP = 4;
const EDGE = { side: 8, top: 60, bottom: 44 };
class Rows {
  #chart;
  #painter;
  #names = [];
  #px = 0;
  constructor(chart, painter) {
    this.#chart = chart;
    this.#painter = painter;
  }
  /** clear writes none until they are placed again. */
  clear() {
    this.#names = [];
  }
  /** place finds where they lie in a view; worded: at the edge they are called rows, since seats have numbers too. */
  place(to, worded) {
    const { sections, slabWidth } = this.#chart;
    this.#names = [];
    this.#px = Math.round(Math.max(9.5 * to.dpr, this.#chart.radius * to.k * 0.7));
    const m = slabWidth * 2;
    const hidden = [];
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
  paint(ctx, which) {
    const { colors } = this.#painter;
    for (const name of this.#names) {
      const { text, plate } = name;
      if (which === "edge" !== plate > 0) continue;
      name.picture ??= caption(this.#painter, [text], this.#px, plate ? { ink: colors.ink, ground: colors.slab, plate } : { ink: colors.soft, ground: colors.paper });
      write(ctx, name.picture, name);
    }
  }
  /** end places a name beside the end of a row, whose seat has another next to it, and returns whether it is seen. */
  #end(text, seat, next, to) {
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
  #edge(seats, to, worded) {
    const { x, y, row, pitch } = this.#chart;
    const { dpr, k } = to;
    const text = row[seats[0]];
    const [px, py] = [(i) => (x[i] - to.x0) * k, (i) => (y[i] - to.y0) * k];
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
      const at = across ? { x: Math.max(left + w, px(first) - pitch * k), y: py(first) } : { x: px(first), y: Math.max(top + h, py(first) - pitch * k) };
      const name = named(words, at, width, height, PLATE.usual);
      if (this.#meets(name.box, dpr)) continue;
      this.#names.push(name);
      return;
    }
  }
  /** meets is a name that would run into a box. */
  #meets(box, gap) {
    return this.#names.find(({ box: b }) => b.x0 < box.x1 + gap && b.x1 > box.x0 - gap && b.y0 < box.y1 && b.y1 > box.y0);
  }
}
const named = (text, { x, y }, w, h, plate = 0) => ({ text, x, y, plate, box: { x0: x - w / 2, y0: y - h / 2, x1: x + w / 2, y1: y + h / 2 } });

export { Rows };
