import { inside } from './chart.js';
import { caption, write, extent, PLATE } from './legend.js';

const PICKABLE = 5;
const COUNTS = 50;
const LEAST = 8;
const MARK = 8;
class Labels {
  #chart;
  #painter;
  #grounds;
  #placed = [];
  #k = 0;
  // of which they are
  constructor(chart, painter) {
    this.#chart = chart;
    this.#painter = painter;
    this.#grounds = chart.sections.map((s) => ground(chart, s));
  }
  /** stale says that other things are to be said, or other seats to be left clear. */
  stale() {
    this.#k = 0;
  }
  /** paint writes labels while seats are too small to be read themselves, and returns those it wrote. */
  paint(ctx, { sells }, to, own) {
    if (this.#chart.radius * to.k / to.dpr < PICKABLE) {
      if (this.#k !== to.k) this.#place(sells, to, own);
      let said = this.#say(sells, to);
      if (said.some(({ label, lines }) => letters(lines) !== label.letters)) {
        this.#place(sells, to, own);
        said = this.#say(sells, to);
      }
      return said.map(({ label, lines, wanted }) => this.#write(ctx, label, lines, wanted, to));
    }
    return [];
  }
  /** say is what the labels that are seen say now. */
  #say(sells, to) {
    const [x, y] = [to.x0 * to.k, to.y0 * to.k];
    const seen = { x0: x, y0: y, x1: x + (to.box.x1 - to.box.x0) * to.k, y1: y + (to.box.y1 - to.box.y0) * to.k };
    return this.#placed.filter((label) => overlap(label.box, seen)).map((label) => {
      const words = sells(label.section);
      return { label, lines: told(label.name, words).slice(0, label.lines), wanted: words.wanted };
    });
  }
  #write(ctx, { section, px, plate, turned, at, box }, lines, wanted, to) {
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
  #place(sells, { k, dpr }, own) {
    this.#k = k;
    const { sections, x, y, sectionWidth } = this.#chart;
    const usual = sectionWidth * k / dpr;
    const px = Math.round(2 * Math.min(12.5, Math.max(9.5, usual / 4))) / 2 * dpr;
    const marks = [...own].map((i) => about({ x: x[i] * k, y: y[i] * k }, 2 * MARK * dpr, 2 * MARK * dpr));
    const short = this.#shortened(px, k, dpr);
    const boxes = /* @__PURE__ */ new Map();
    const taken = (box, besides) => {
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
  #name(section, name, px, { k, dpr }, free, marks) {
    const least = LEAST * dpr;
    const hands = [
      { px, plate: PLATE.usual, turned: false, share: 0.86 },
      { px, plate: PLATE.tight, turned: false, share: 0.86 },
      { px: least, plate: PLATE.tight, turned: false, share: 0.86 },
      { px: least, plate: PLATE.tight, turned: true, share: 0.86 },
      { px: least, plate: PLATE.tight, turned: false, share: 0.6 }
    ];
    const placed = (hand2, box2) => ({ ...hand2, section, name, lines: 1, letters: name.length, at: middle(box2), box: box2 });
    let fits = false;
    for (const clear of marks.length ? [marks, []] : [marks]) {
      for (const hand2 of hands) {
        const { width: width2, height: height2 } = extent(this.#painter, [name], hand2.px, hand2.plate);
        const box2 = first(this.#spots(section, hand2.turned ? height2 : width2, hand2.turned ? width2 : height2, k, hand2.share), (b) => {
          fits = true;
          return free(b) && !clear.some((m) => overlap(m, b));
        });
        if (box2) return placed(hand2, box2);
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
  *#spots(section, width, height, k, share) {
    const { outline, area, spots } = this.#grounds[section.index];
    if (width * height > 0.75 * area * k * k) return;
    const edge = this.#chart.slabWidth * k / 2;
    const w = Math.max(0, width * share / 2 - edge) / k;
    const h = Math.max(0, height * share / 2 - edge) / k;
    const corners = [[-w, -h], [w, -h], [w, h], [-w, h], [0, -h], [0, h], [-w, 0], [w, 0]];
    for (const s of spots) if (corners.every(([dx, dy]) => inside(outline, s.x + dx, s.y + dy))) yield about({ x: s.x * k, y: s.y * k }, width, height);
  }
  /** beside is where a name lies next to a section: away from the middle, or else towards it. */
  #beside(section, width, height, k, dpr, free) {
    const { box, slabWidth, sections } = this.#chart;
    const off = width / 2 + slabWidth / 2 * k + 2 * dpr;
    const sides = [section.box.x0 * k - off, section.box.x1 * k + off];
    if (section.label.x >= (box.x0 + box.x1) / 2) sides.reverse();
    return sides.map((x) => about({ x, y: section.label.y * k }, width, height)).find((b) => {
      const on = { x0: b.x0 / k, y0: b.y0 / k, x1: b.x1 / k, y1: b.y1 / k };
      return free(b) && !sections.some((s) => s !== section && overlap(s.box, on));
    }) ?? null;
  }
  /** shortened are the families that go without what is common to them, all of them or none, since one of them has no room for it. */
  #shortened(px, k, dpr) {
    const count = /* @__PURE__ */ new Map();
    const cramped = /* @__PURE__ */ new Set();
    for (const s of this.#chart.sections) {
      const f = family(s);
      count.set(f, (count.get(f) ?? 0) + 1);
      if (f && !cramped.has(f) && extent(this.#painter, [s.name], px, PLATE.usual).width > Math.max((s.box.x1 - s.box.x0) * k, 26 * dpr)) cramped.add(f);
    }
    for (const f of cramped) if (count.get(f) === 1) cramped.delete(f);
    return cramped;
  }
}
function first(boxes, does) {
  for (const box of boxes) if (does(box)) return box;
  return null;
}
const family = (section) => section.name.slice(0, section.name.lastIndexOf(" ") + 1);
const told = (name, { left, from }) => [name, left, from].filter((line) => line);
const letters = (lines) => lines.join("\n").length;
const overlap = (a, b) => a.x0 < b.x1 && a.x1 > b.x0 && a.y0 < b.y1 && a.y1 > b.y0;
const about = ({ x, y }, w, h) => ({ x0: x - w / 2, y0: y - h / 2, x1: x + w / 2, y1: y + h / 2 });
const middle = (b) => ({ x: (b.x0 + b.x1) / 2, y: (b.y0 + b.y1) / 2 });
function ground(chart, { rows, label }) {
  const at = (i) => ({ x: chart.x[i], y: chart.y[i] });
  const lines = [];
  for (const { seats } of rows.filter((r) => r.seats.length)) {
    const last = lines.at(-1);
    lines.push(last && chart.distance(last[0], seats[0]) > chart.distance(last[0], seats[seats.length - 1]) ? seats.toReversed() : seats);
  }
  const step = (n) => Math.max(1, Math.floor(n / 6));
  const along = (line) => line.filter((_, n) => n % step(line.length) === 0 || n === line.length - 1);
  const between = lines.slice(1, -1).filter((_, n) => n % step(lines.length) === 0);
  const outline = [
    ...along(lines[0] ?? []),
    ...between.map((line) => line[line.length - 1]),
    ...lines.length > 1 ? along(lines[lines.length - 1]).toReversed() : [],
    ...between.toReversed().map((line) => line[0])
  ].map(at);
  const area = Math.abs(outline.reduce((sum, p, n) => {
    const q = outline[(n + 1) % outline.length];
    return sum + p.x * q.y - q.x * p.y;
  }, 0)) / 2;
  const parts = [0.5, 0.35, 0.65, 0.22, 0.78];
  const seat = (line, part) => at(line[Math.floor((line.length - 1) * part)]);
  return { outline, area, spots: [label, ...parts.flatMap((r) => parts.map((s) => seat(lines[Math.floor((lines.length - 1) * r)], s)))] };
}

export { Labels, PICKABLE };
