// Names of sections on the map, with what is free in them and from how much. Where
// they lie is settled once for a scale: each in its own section, away from the seats of
// the shopper, none over another; smaller, or turned, where there is no room otherwise.

import { inside, type Box, type Chart, type Section } from './chart';
import { caption, extent, PLATE, write, type Scene, type Words } from './legend';
import type { Painter, Pen, Window } from './paint';
import type { Point } from './wire';

/** PICKABLE is the radius of a seat, in CSS pixels, from which a tap means it. Names of sections do not lie on such seats. */
export const PICKABLE = 5;

const COUNTS = 50; // CSS pixels of a usual section's width from which counts fit into most
const LEAST = 8; // CSS pixels of the smallest letters
const MARK = 8; // CSS pixels around a seat of the shopper that are left clear

/** Tag is the label of a section where it lies on the canvas. */
export interface Tag extends Box { section: Section }

/** Hand is how a label is written: how high its letters are, whether it goes up along its section, and how much of its width and height lies in that at least. */
interface Hand { px: number; plate: number; turned: boolean; share: number }

/** Placed is a label where it lies, in device pixels from the chart's 0, 0. */
interface Placed extends Hand { section: Section; name: string; lines: number; letters: number; at: Point; box: Box }

/** Ground is where a section has room for its label. */
interface Ground { outline: Point[]; area: number; spots: Point[] }

/** Labels are the labels of one chart in one theme. */
export class Labels {
  #chart: Chart;
  #painter: Painter;
  #grounds: Ground[];
  #placed: Placed[] = [];
  #k = 0; // of which they are

  constructor(chart: Chart, painter: Painter) {
    this.#chart = chart;
    this.#painter = painter;
    this.#grounds = chart.sections.map((s) => ground(chart, s));
  }

  /** stale says that other things are to be said, or other seats to be left clear. */
  stale(): void {
    this.#k = 0;
  }

  /** paint writes labels while seats are too small to be read themselves, and returns those it wrote. */
  paint(ctx: Pen, { sells }: Pick<Scene, 'sells'>, to: Window, own: Iterable<number>): Tag[] {
    if ((this.#chart.radius * to.k) / to.dpr < PICKABLE) {
      if (this.#k !== to.k) this.#place(sells, to, own);
      let said = this.#say(sells, to);
      if (said.some(({ label, lines }) => letters(lines) !== label.letters)) { // counts have more or fewer digits
        this.#place(sells, to, own);
        said = this.#say(sells, to);
      }
      return said.map(({ label, lines, wanted }) => this.#write(ctx, label, lines, wanted, to));
    }
    return [];
  }

  /** say is what the labels that are seen say now. */
  #say(sells: Scene['sells'], to: Window): { label: Placed; lines: string[]; wanted: boolean }[] {
    const [x, y] = [to.x0 * to.k, to.y0 * to.k];
    const seen = { x0: x, y0: y, x1: x + (to.box.x1 - to.box.x0) * to.k, y1: y + (to.box.y1 - to.box.y0) * to.k };
    return this.#placed.filter((label) => overlap(label.box, seen)).map((label) => {
      const words = sells(label.section);
      return { label, lines: told(label.name, words).slice(0, label.lines), wanted: words.wanted };
    });
  }

  #write(ctx: Pen, { section, px, plate, turned, at, box }: Placed, lines: string[], wanted: boolean, to: Window): Tag {
    const c = this.#painter.colors;
    const picture = caption(this.#painter, lines, px, { ink: wanted ? c.ink : c.soft, ground: c.slab, plate });
    const [dx, dy] = [to.x0 * to.k, to.y0 * to.k];
    const x = Math.round(at.x - dx);
    const y = Math.round(at.y - dy);
    ctx.globalAlpha = wanted ? 1 : 0.6;
    if (turned) ctx.setTransform(0, -1, 1, 0, x, y);
    write(ctx, picture, turned ? { x: 0, y: 0 } : { x, y });
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.globalAlpha = 1;
    return { section, x0: box.x0 - dx, y0: box.y0 - dy, x1: box.x1 - dx, y1: box.y1 - dy };
  }

  /** place finds where labels lie at a scale: names first, and then as much of the rest as there is room for. */
  #place(sells: Scene['sells'], { k, dpr }: Window, own: Iterable<number>): void {
    this.#k = k;
    const { sections, x, y, sectionWidth } = this.#chart;
    const usual = (sectionWidth * k) / dpr;
    const px = (Math.round(2 * Math.min(12.5, Math.max(9.5, usual / 4))) / 2) * dpr;
    const marks = [...own].map((i) => about({ x: x[i] * k, y: y[i] * k }, 2 * MARK * dpr, 2 * MARK * dpr));
    const short = this.#shortened(px, k, dpr);
    const boxes = new Map<Section, Box>(); // of the labels
    const taken = (box: Box, besides?: Section) => {
      for (const [s, other] of boxes) if (s !== besides && overlap(other, box)) return true;
      return false;
    };
    this.#placed = [];
    for (const section of sections) {
      const name = short.has(family(section)) ? section.name.slice(family(section).length) : section.name;
      const label = this.#name(section, name, px, { k, dpr }, (box) => !taken(box), marks);
      if (!label) continue;
      boxes.set(section, label.box);
      this.#placed.push(label);
    }
    if (usual < COUNTS) return;
    for (const label of this.#placed) {
      const all = told(label.name, sells(label.section));
      for (let lines = all.length; lines > 1 && label.px === px && !label.turned; lines--) {
        const { width, height } = extent(this.#painter, all.slice(0, lines), px, PLATE.usual);
        const box = first(this.#spots(label.section, width, height, k, 0.8), (b) => !taken(b, label.section) && !marks.some((m) => overlap(m, b)));
        if (!box) continue;
        Object.assign(label, { box, at: middle(box), lines, plate: PLATE.usual });
        boxes.set(label.section, box);
        break;
      }
    }
    for (const label of this.#placed) label.letters = letters(told(label.name, sells(label.section)).slice(0, label.lines));
  }

  /** name is a section's name where it fits in it, or beside one that is thinner than letters are high. */
  #name(section: Section, name: string, px: number, { k, dpr }: Pick<Window, 'k' | 'dpr'>, free: (box: Box) => boolean, marks: Box[]): Placed | null {
    const least = LEAST * dpr;
    const hands: Hand[] = [
      { px, plate: PLATE.usual, turned: false, share: 0.86 }, { px, plate: PLATE.tight, turned: false, share: 0.86 },
      { px: least, plate: PLATE.tight, turned: false, share: 0.86 }, { px: least, plate: PLATE.tight, turned: true, share: 0.86 },
      { px: least, plate: PLATE.tight, turned: false, share: 0.6 },
    ];
    const placed = (hand: Hand, box: Box): Placed => ({ ...hand, section, name, lines: 1, letters: name.length, at: middle(box), box });
    let fits = false;
    for (const clear of marks.length ? [marks, []] : [marks]) { // marks of seats lie over labels if they must
      for (const hand of hands) {
        const { width, height } = extent(this.#painter, [name], hand.px, hand.plate);
        const box = first(this.#spots(section, hand.turned ? height : width, hand.turned ? width : height, k, hand.share), (b) => {
          fits = true;
          return free(b) && !clear.some((m) => overlap(m, b));
        });
        if (box) return placed(hand, box);
      }
    }
    if (fits) return null;
    const hand = hands[0];
    const { width, height } = extent(this.#painter, [name], hand.px, hand.plate);
    const thin = Math.min(section.box.x1 - section.box.x0, section.box.y1 - section.box.y0) * k < least;
    const box = thin ? this.#beside(section, width, height, k, dpr, free) : null;
    return box && placed(hand, box);
  }

  /** spots are boxes of a size that lie in a section, by and large, and leave some of it to be seen; the best first. */
  * #spots(section: Section, width: number, height: number, k: number, share: number): Generator<Box> {
    const { outline, area, spots } = this.#grounds[section.index];
    if (width * height > 0.75 * area * k * k) return;
    const edge = (this.#chart.slabWidth * k) / 2;
    const w = Math.max(0, (width * share) / 2 - edge) / k;
    const h = Math.max(0, (height * share) / 2 - edge) / k;
    const corners = [[-w, -h], [w, -h], [w, h], [-w, h], [0, -h], [0, h], [-w, 0], [w, 0]];
    for (const s of spots) if (corners.every(([dx, dy]) => inside(outline, s.x + dx, s.y + dy))) yield about({ x: s.x * k, y: s.y * k }, width, height);
  }

  /** beside is where a name lies next to a section: away from the middle, or else towards it. */
  #beside(section: Section, width: number, height: number, k: number, dpr: number, free: (box: Box) => boolean): Box | null {
    const { box, slabWidth, sections } = this.#chart;
    const off = width / 2 + (slabWidth / 2) * k + 2 * dpr;
    const sides = [section.box.x0 * k - off, section.box.x1 * k + off];
    if (section.label.x >= (box.x0 + box.x1) / 2) sides.reverse();
    return sides.map((x) => about({ x, y: section.label.y * k }, width, height)).find((b) => {
      const on = { x0: b.x0 / k, y0: b.y0 / k, x1: b.x1 / k, y1: b.y1 / k };
      return free(b) && !sections.some((s) => s !== section && overlap(s.box, on));
    }) ?? null;
  }

  /** shortened are the families that go without what is common to them, all of them or none, since one of them has no room for it. */
  #shortened(px: number, k: number, dpr: number): Set<string> {
    const count = new Map<string, number>();
    const cramped = new Set<string>();
    for (const s of this.#chart.sections) {
      const f = family(s);
      count.set(f, (count.get(f) ?? 0) + 1);
      if (f && !cramped.has(f) && extent(this.#painter, [s.name], px, PLATE.usual).width > Math.max((s.box.x1 - s.box.x0) * k, 26 * dpr)) cramped.add(f);
    }
    for (const f of cramped) if (count.get(f) === 1) cramped.delete(f);
    return cramped;
  }
}

/** first is the first of some boxes that will do. */
function first(boxes: Iterable<Box>, does: (box: Box) => boolean): Box | null {
  for (const box of boxes) if (does(box)) return box;
  return null;
}

/** family is what a section's name has in common with others: "Block " of "Block 101". */
const family = (section: Section) => section.name.slice(0, section.name.lastIndexOf(' ') + 1);

/** told are the lines of a label, in the order in which they matter. */
const told = (name: string, { left, from }: Words) => [name, left, from].filter((line) => line);

const letters = (lines: string[]) => lines.join('\n').length;

const overlap = (a: Box, b: Box) => a.x0 < b.x1 && a.x1 > b.x0 && a.y0 < b.y1 && a.y1 > b.y0;

const about = ({ x, y }: Point, w: number, h: number): Box => ({ x0: x - w / 2, y0: y - h / 2, x1: x + w / 2, y1: y + h / 2 });

const middle = (b: Box): Point => ({ x: (b.x0 + b.x1) / 2, y: (b.y0 + b.y1) / 2 });

/** ground is the outline of a section through the ends of its rows, and some of its seats, the one in the middle first. */
function ground(chart: Chart, { rows, label }: Section): Ground {
  const at = (i: number): Point => ({ x: chart.x[i], y: chart.y[i] });
  const lines: number[][] = [];
  for (const { seats } of rows.filter((r) => r.seats.length)) {
    const last = lines.at(-1);
    lines.push(last && chart.distance(last[0], seats[0]) > chart.distance(last[0], seats[seats.length - 1]) ? seats.toReversed() : seats);
  }
  const step = (n: number) => Math.max(1, Math.floor(n / 6));
  const along = (line: number[]) => line.filter((_, n) => n % step(line.length) === 0 || n === line.length - 1);
  const between = lines.slice(1, -1).filter((_, n) => n % step(lines.length) === 0);
  const outline = [
    ...along(lines[0] ?? []), ...between.map((line) => line[line.length - 1]),
    ...(lines.length > 1 ? along(lines[lines.length - 1]).toReversed() : []), ...between.toReversed().map((line) => line[0]),
  ].map(at);
  const area = Math.abs(outline.reduce((sum, p, n) => { const q = outline[(n + 1) % outline.length]; return sum + p.x * q.y - q.x * p.y; }, 0)) / 2;
  const parts = [0.5, 0.35, 0.65, 0.22, 0.78];
  const seat = (line: number[], part: number) => at(line[Math.floor((line.length - 1) * part)]);
  return { outline, area, spots: [label, ...parts.flatMap((r) => parts.map((s) => seat(lines[Math.floor((lines.length - 1) * r)], s)))] };
}
