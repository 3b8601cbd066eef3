import { sheet } from './paint.js';

const TILE = 512;
const KEEP = 72;
const LATE = 3e3;
const OVERVIEW = 1600;
class Raster {
  scene;
  k;
  x0;
  y0;
  canvas;
  ctx;
  box;
  fresh = false;
  #late = [];
  // seats that have changed since it was painted
  constructor(scene, k, x0, y0, width, height) {
    this.scene = scene;
    this.k = k;
    this.x0 = x0;
    this.y0 = y0;
    [this.canvas, this.ctx] = sheet(width, height);
    this.box = { x0, y0, x1: x0 + width / k, y1: y0 + height / k };
  }
  /** ready paints it, or what has changed in it. */
  ready() {
    if (this.fresh && this.#late.length > LATE) this.fresh = false;
    if (!this.fresh) this.#paint();
    else if (this.#late.length) this.#repaint();
    this.#late = [];
  }
  /** changed is told of every seat, of which some may be in it. */
  changed(list) {
    if (this.fresh && this.#late.length <= LATE) this.#late.push(...list);
  }
  #paint() {
    const { ctx, canvas } = this;
    const { chart, painter, look } = this.scene;
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.clearRect(0, 0, canvas.width, canvas.height);
    paintSlabs(ctx, this.scene, this);
    const list = [];
    chart.within(this.box, (i) => list.push(i));
    painter.seats(ctx, list, this, look);
    this.fresh = true;
  }
  #repaint() {
    const { chart, painter, look } = this.scene;
    const r = chart.radius * 1.3;
    const b = this.box;
    const mine = [...new Set(this.#late)].filter((i) => chart.x[i] > b.x0 - r && chart.x[i] < b.x1 + r && chart.y[i] > b.y0 - r && chart.y[i] < b.y1 + r);
    if (!mine.length) return;
    painter.seats(this.ctx, mine, this, look, true);
  }
}
function paintSlabs(ctx, { chart, painter }, { k, x0, y0, box }) {
  ctx.strokeStyle = painter.colors.slab;
  ctx.lineWidth = chart.slabWidth * k;
  ctx.lineCap = "round";
  ctx.lineJoin = "round";
  const m = chart.slabWidth;
  for (const s of chart.sections) {
    if (s.box.x1 + m < box.x0 || s.box.x0 - m > box.x1 || s.box.y1 + m < box.y0 || s.box.y0 - m > box.y1) continue;
    ctx.beginPath();
    for (const line of s.slab) {
      ctx.moveTo((line[0] - x0) * k, (line[1] - y0) * k);
      if (line.length === 2) ctx.lineTo((line[0] - x0) * k + 0.01, (line[1] - y0) * k);
      for (let p = 2; p < line.length; p += 2) ctx.lineTo((line[p] - x0) * k, (line[p + 1] - y0) * k);
    }
    ctx.stroke();
  }
}
class Rasters {
  scene;
  #tiles = /* @__PURE__ */ new Map();
  // in order of use, the oldest first
  #overview;
  constructor(scene) {
    this.scene = scene;
    const b = scene.chart.box;
    const k = OVERVIEW / Math.max(b.x1 - b.x0, b.y1 - b.y0);
    this.#overview = new Raster(scene, k, b.x0, b.y0, Math.ceil((b.x1 - b.x0) * k), Math.ceil((b.y1 - b.y0) * k));
  }
  /** stale says that everything has to be painted anew. */
  stale() {
    this.#overview.fresh = false;
    for (const t of this.#tiles.values()) t.fresh = false;
  }
  /** changed tells every picture of seats that look otherwise now: it is painted over when it is next copied. */
  changed(list) {
    if (list.length > LATE) return this.stale();
    for (const r of [this.#overview, ...this.#tiles.values()]) r.changed(list);
  }
  /**
   * draw copies pictures onto the canvas, painting those that are missing
   * until the deadline by performance.now(); what is left shows the picture of
   * everything, coarsely. It returns whether nothing is missing.
   */
  draw(ctx, to, deadline) {
    const o = this.#overview;
    o.ready();
    if (to.k <= o.k * 1.1) {
      copy(ctx, o, to);
      return true;
    }
    const missing = [];
    let stale = false;
    for (const tile of this.#wanted(to)) {
      const t = this.#tiles.get(tile.key);
      if (!t) {
        missing.push(tile);
        continue;
      }
      this.#tiles.delete(tile.key);
      this.#tiles.set(tile.key, t);
      if (t.fresh || performance.now() < deadline) t.ready();
      copy(ctx, t, to);
      stale ||= !t.fresh;
    }
    while (performance.now() < deadline) {
      const tile = missing.shift();
      if (!tile) break;
      const t = tile.make();
      t.ready();
      this.#tiles.set(tile.key, t);
      copy(ctx, t, to);
    }
    for (const tile of missing) copyPart(ctx, o, tile.box, to);
    for (const key of this.#tiles.keys()) {
      if (this.#tiles.size <= KEEP) break;
      this.#tiles.delete(key);
    }
    return missing.length === 0 && !stale;
  }
  /** wanted are the tiles a view needs, at the nearest half-octave of its scale. */
  *#wanted({ k, box }) {
    const level = Math.round(2 * Math.log2(k));
    const at = 2 ** (level / 2);
    const side = TILE / at;
    const b = this.scene.chart.box;
    const [x0, x1] = [Math.max(box.x0, b.x0), Math.min(box.x1, b.x1)];
    const [y0, y1] = [Math.max(box.y0, b.y0), Math.min(box.y1, b.y1)];
    for (let ty = Math.floor(y0 / side); ty * side < y1; ty++) {
      for (let tx = Math.floor(x0 / side); tx * side < x1; tx++) {
        yield {
          key: `${level}/${tx}/${ty}`,
          box: { x0: tx * side, y0: ty * side, x1: (tx + 1) * side, y1: (ty + 1) * side },
          make: () => new Raster(this.scene, at, tx * side, ty * side, TILE, TILE)
        };
      }
    }
  }
}
function copy(ctx, r, to) {
  const x = Math.round((r.box.x0 - to.x0) * to.k);
  const y = Math.round((r.box.y0 - to.y0) * to.k);
  ctx.drawImage(r.canvas, x, y, Math.round((r.box.x1 - to.x0) * to.k) - x, Math.round((r.box.y1 - to.y0) * to.k) - y);
}
function copyPart(ctx, r, box, to) {
  const [x0, y0] = [Math.max(box.x0, r.box.x0), Math.max(box.y0, r.box.y0)];
  const [x1, y1] = [Math.min(box.x1, r.box.x1), Math.min(box.y1, r.box.y1)];
  if (x0 >= x1 || y0 >= y1) return;
  ctx.drawImage(
    r.canvas,
    (x0 - r.x0) * r.k,
    (y0 - r.y0) * r.k,
    (x1 - x0) * r.k,
    (y1 - y0) * r.k,
    (x0 - to.x0) * to.k,
    (y0 - to.y0) * to.k,
    (x1 - x0) * to.k,
    (y1 - y0) * to.k
  );
}

export { Rasters, paintSlabs };
