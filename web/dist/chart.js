import { t } from './lang.js';
import { byPlace } from './words.js';

const PALETTE = ["#4f7cff", "#12a594", "#e8833a", "#a463f2", "#d6409f", "#5b9a3c", "#c2a014", "#3aa0d6"];
const ACCESSIBLE = 1;
const COMPANION = 2;
const RESTRICTED = 4;
const BREAK = 8;
class Chart {
  sha;
  size;
  // of the index space: above every i
  stage;
  shapes;
  categories;
  areas;
  x;
  y;
  section;
  // -1: a hole, no seat has this index any more
  category;
  flags;
  label;
  row;
  ticketId;
  byTicketId = /* @__PURE__ */ new Map();
  sections;
  pitch;
  // the usual distance between neighbours
  radius;
  // of a seat
  slabWidth;
  sectionWidth;
  // of the section that a seat is usually in
  box;
  #cell;
  // the side of a square of the grid
  #columns;
  #lines;
  #start;
  // cell c holds order[start[c]] to order[start[c+1]]
  #order;
  constructor(sha, json) {
    const n = json.seats;
    this.sha = sha;
    this.size = n;
    this.stage = json.stage ?? null;
    this.shapes = json.shapes ?? [];
    this.categories = json.categories.map((c, i) => ({ name: c.name, color: c.color || PALETTE[i % PALETTE.length] }));
    this.areas = json.areas ?? [];
    this.x = new Float32Array(n);
    this.y = new Float32Array(n);
    this.section = new Int32Array(n).fill(-1);
    this.category = new Uint16Array(n);
    this.flags = new Uint8Array(n);
    this.label = new Array(n).fill("");
    this.row = new Array(n).fill("");
    this.ticketId = new Array(n).fill("");
    const categoryOf = new Map(this.categories.map((c, i) => [c.name, i]));
    this.sections = json.sections.map((s, index) => this.#section(s, index, categoryOf));
    this.pitch = this.#pitch();
    this.radius = this.pitch * 0.4;
    this.slabWidth = Math.max(this.pitch * 1.5, Math.min(this.#rowPitch() * 1.3, this.pitch * 3));
    for (const s of this.sections) s.slab = this.#slab(s);
    this.sectionWidth = this.#usualWidth();
    this.box = this.#bounds(json);
    this.#cell = this.pitch * 4;
    this.#columns = Math.max(1, Math.ceil((this.box.x1 - this.box.x0) / this.#cell));
    this.#lines = Math.max(1, Math.ceil((this.box.y1 - this.box.y0) / this.#cell));
    [this.#start, this.#order] = this.#grid();
  }
  #section(s, index, categoryOf) {
    const box = emptyBox();
    let seats = 0;
    const rows = s.rows.map((r) => ({
      label: r.label,
      seats: r.seats.map((seat2) => {
        const i = seat2.i;
        this.x[i] = seat2.x;
        this.y[i] = seat2.y;
        this.section[i] = index;
        this.category[i] = categoryOf.get(seat2.category) ?? 0;
        this.flags[i] = (seat2.accessible ? ACCESSIBLE : 0) | (seat2.companion ? COMPANION : 0) | (seat2.restricted ? RESTRICTED : 0) | (seat2.break ? BREAK : 0);
        this.label[i] = seat2.label;
        this.row[i] = r.label;
        this.ticketId[i] = seat2.ticketId;
        this.byTicketId.set(seat2.ticketId, i);
        grow(box, seat2.x, seat2.y);
        seats++;
        return i;
      })
    }));
    const middle = rows[rows.length >> 1].seats;
    const seat = middle[middle.length >> 1];
    return { index, id: s.id, name: s.name, rows, seats, box, slab: [], label: { x: this.x[seat], y: this.y[seat] } };
  }
  /** pitch is the usual distance between neighbours. */
  #pitch() {
    const gaps = [];
    for (const s of this.sections) {
      for (const r of s.rows) {
        for (let k = 1; k < r.seats.length; k += 3) gaps.push(this.distance(r.seats[k - 1], r.seats[k]));
      }
    }
    gaps.sort((a, b) => a - b);
    return gaps[Math.floor(gaps.length * 0.3)] || 20;
  }
  /** usualWidth is how wide a section is that a seat is usually in: boxes of six do not count like stands. */
  #usualWidth() {
    let half = this.sections.reduce((sum, s) => sum + s.seats, 0) / 2;
    const width = (s) => s.box.x1 - s.box.x0;
    return width(this.sections.toSorted((a, b) => width(a) - width(b)).find((s) => (half -= s.seats) <= 0) ?? { box: { x0: 0, x1: 0 } });
  }
  /** rowPitch is the usual distance between rows. */
  #rowPitch() {
    const gaps = [];
    for (const s of this.sections) {
      for (let n = 1; n < s.rows.length; n++) {
        const [a, b] = [s.rows[n - 1].seats, s.rows[n].seats];
        if (a.length && b.length) gaps.push(this.distance(a[a.length >> 1], b[b.length >> 1]));
      }
    }
    gaps.sort((a, b) => a - b);
    return gaps[gaps.length >> 2] ?? 0;
  }
  /**
   * slab is the outline of a section as lines along its rows, to be stroked
   * thick: it follows curves and gaps as no hull does.
   */
  #slab(section) {
    const lines = [];
    for (const r of section.rows) {
      let line = [];
      r.seats.forEach((i, k) => {
        if (k && this.distance(r.seats[k - 1], i) > 2.6 * this.pitch) {
          lines.push(line);
          line = [];
        }
        line.push(this.x[i], this.y[i]);
      });
      lines.push(line);
    }
    return lines.map(thin);
  }
  #bounds(json) {
    const box = emptyBox();
    for (const s of this.sections) {
      grow(box, s.box.x0, s.box.y0);
      grow(box, s.box.x1, s.box.y1);
    }
    for (const shape of [this.stage, ...this.shapes, ...this.areas]) for (const p of shape?.points ?? []) grow(box, p.x, p.y);
    if (!(box.x0 < box.x1)) return { x0: 0, y0: 0, x1: json.width || 1, y1: json.height || 1 };
    const m = this.pitch * 2;
    return { x0: box.x0 - m, y0: box.y0 - m, x1: box.x1 + m, y1: box.y1 + m };
  }
  /** grid sorts the seats into square cells, and returns start and order. */
  #grid() {
    const at = (i) => this.#line(this.y[i]) * this.#columns + this.#column(this.x[i]);
    const start = new Uint32Array(this.#columns * this.#lines + 1);
    for (let i = 0; i < this.size; i++) if (this.section[i] >= 0) start[at(i) + 1]++;
    for (let c = 1; c < start.length; c++) start[c] += start[c - 1];
    const fill = start.slice();
    const order = new Uint32Array(start[start.length - 1]);
    for (let i = 0; i < this.size; i++) if (this.section[i] >= 0) order[fill[at(i)]++] = i;
    return [start, order];
  }
  #column(x) {
    return clamp(Math.floor((x - this.box.x0) / this.#cell), 0, this.#columns - 1);
  }
  #line(y) {
    return clamp(Math.floor((y - this.box.y0) / this.#cell), 0, this.#lines - 1);
  }
  /** distance between two seats. */
  distance(i, j) {
    return Math.hypot(this.x[i] - this.x[j], this.y[i] - this.y[j]);
  }
  /** within calls f for every seat in a box, and some just outside. */
  within(box, f) {
    const r = this.radius;
    const [c0, c1] = [this.#column(box.x0 - r), this.#column(box.x1 + r)];
    for (let l = this.#line(box.y0 - r), last = this.#line(box.y1 + r); l <= last; l++) {
      const from = this.#start[l * this.#columns + c0];
      const to = this.#start[l * this.#columns + c1 + 1];
      for (let k = from; k < to; k++) f(this.#order[k]);
    }
  }
  /** countWithin is about how many seats a box holds, without touching them. */
  countWithin(box) {
    let n = 0;
    const [c0, c1] = [this.#column(box.x0), this.#column(box.x1)];
    for (let l = this.#line(box.y0), last = this.#line(box.y1); l <= last; l++) {
      n += this.#start[l * this.#columns + c1 + 1] - this.#start[l * this.#columns + c0];
    }
    return n;
  }
  /** nearest is the seat closest to a place, or -1 when none is within reach. */
  nearest(x, y, reach) {
    let best = -1;
    let least = reach * reach;
    this.within({ x0: x - reach, y0: y - reach, x1: x + reach, y1: y + reach }, (i) => {
      const d = (this.x[i] - x) ** 2 + (this.y[i] - y) ** 2;
      if (d < least) [best, least] = [i, d];
    });
    return best;
  }
  /** place names a seat in words: "Block 104, row 12, seat 7". */
  place(i) {
    const s = this.sections[this.section[i]];
    return t.seat.place(s.name, this.row[i], this.label[i]);
  }
  /** inOrder are seats as they are listed. */
  inOrder(seats) {
    const at = (i) => ({ section: this.sections[this.section[i]].name, row: this.row[i], label: this.label[i] });
    return [...seats].sort((a, b) => byPlace(at(a), at(b)));
  }
  /** places names seats in words, row by row. */
  places(seats) {
    const rows = /* @__PURE__ */ new Map();
    for (const i of this.inOrder(seats)) {
      const row = `${this.section[i]} ${this.row[i]}`;
      rows.set(row, [...rows.get(row) ?? [], i]);
    }
    return [...rows.values()].map((all) => all.length === 1 ? this.place(all[0]) : t.seat.places(this.sections[this.section[all[0]]].name, this.row[all[0]], all.map((i) => this.label[i]).join(", "))).join("; ");
  }
}
function inside(points, x, y) {
  let odd = false;
  for (let i = 0, j = points.length - 1; i < points.length; j = i++) {
    const a = points[i];
    const b = points[j];
    if (a.y > y !== b.y > y && x < (b.x - a.x) * (y - a.y) / (b.y - a.y) + a.x) odd = !odd;
  }
  return odd;
}
function boxOf(points) {
  const box = emptyBox();
  for (const p of points) grow(box, p.x, p.y);
  return box;
}
const emptyBox = () => ({ x0: Infinity, y0: Infinity, x1: -Infinity, y1: -Infinity });
function grow(box, x, y) {
  box.x0 = Math.min(box.x0, x);
  box.y0 = Math.min(box.y0, y);
  box.x1 = Math.max(box.x1, x);
  box.y1 = Math.max(box.y1, y);
}
const clamp = (v, least, most) => Math.min(most, Math.max(least, v));
function thin(line) {
  const n = line.length / 2;
  const step = Math.max(1, Math.floor((n - 1) / 8));
  const out = [];
  for (let k = 0; k < n; k += step) out.push(line[2 * k], line[2 * k + 1]);
  if ((n - 1) % step) out.push(line[2 * n - 2], line[2 * n - 1]);
  return out;
}

export { ACCESSIBLE, BREAK, COMPANION, Chart, RESTRICTED, boxOf, inside };
