import { inside } from './chart.js';
import { listen } from './gestures.js';
import { Labels, PICKABLE } from './labels.js';
import { paintAreas, paintShapes } from './legend.js';
import { Overview } from './overview.js';
import { pen, Painter, theme, DIM, PICKED, MINE } from './paint.js';
import { Rasters, paintSlabs } from './raster.js';
import { Rows } from './rows.js';
import { AVAILABLE, HELD } from './state.js';
import { View } from './view.js';

const DIRECT = 2600;
const BUDGET = 7;
const FLASH = 1100;
const SEEN = 4;
const LEGIBLE = 7;
const still = matchMedia("(prefers-reduced-motion: reduce)");
class SeatMap {
  #canvas;
  #ctx;
  #above;
  // of the canvas over it
  #events;
  #sells;
  #filter;
  #state = null;
  #chart;
  // of the state, as what follows
  #painter;
  #rasters;
  #dim;
  // by seat: DIM where it is not wanted
  #look;
  #labels;
  #rows;
  #overview;
  #tags = [];
  // labels of sections in the last frame
  #view = new View();
  #dpr = 1;
  #wanted = 0;
  // the frame asked for
  #moved = true;
  // the view is not the one that is painted
  #turned = [];
  // seats that changed since
  #glide = null;
  // an animation, and whether it goes on
  #flashes = /* @__PURE__ */ new Map();
  // i → since when
  #hover = -1;
  #looks = /* @__PURE__ */ new Map();
  // i → PICKED, MINE or HELD
  #life = new AbortController();
  constructor({ canvas, above, overview }, { events, sells, filter }) {
    this.#canvas = canvas;
    this.#ctx = pen(canvas);
    this.#above = pen(above);
    this.#overview = new Overview(overview, ({ x, y }, smooth) => {
      if (this.#state) (smooth ? this.#go : this.#jump).call(this, { x, y, k: this.#view.k });
    });
    this.#events = events;
    this.#sells = sells;
    this.#filter = filter;
    listen(canvas, this.#target());
    const { signal } = this.#life;
    const sized = new ResizeObserver(() => this.#resize());
    sized.observe(canvas);
    signal.addEventListener("abort", () => sized.disconnect());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.recolor(), { signal });
  }
  /** recolor draws in the colours that its canvas has now. */
  recolor() {
    if (this.#state) this.show(this.#state, true);
  }
  /** stop draws nothing any more. */
  stop() {
    this.#life.abort();
    cancelAnimationFrame(this.#wanted);
    this.#state = null;
  }
  /**
   * show takes another chart, or the same one again in other colours. Then it may
   * stay at the part in view.
   */
  show(state, stay = false) {
    this.#state = state;
    this.#chart = state.chart;
    this.#painter = new Painter(this.#chart, theme(this.#canvas));
    this.#dim = new Uint8Array(this.#chart.size);
    this.#look = (i) => state.status[i] | this.#dim[i];
    this.#rasters = new Rasters({ chart: this.#chart, painter: this.#painter, look: this.#look });
    this.#labels = new Labels(this.#chart, this.#painter);
    this.#rows = new Rows(this.#chart, this.#painter);
    this.#overview.show(this.#chart, this.#painter);
    this.filtered();
    this.#view.bounds(this.#chart);
    this.#view.set(stay ? this.#view : this.#view.whole());
    this.#move();
  }
  /** changed redraws seats whose status is another now. */
  changed(seats, flash) {
    this.#rasters.changed(seats);
    if (this.#turned.length + seats.length > DIRECT) this.#moved = true;
    else this.#turned.push(...seats);
    if (flash && !still.matches) {
      const now = performance.now();
      for (const i of seats.slice(0, 200)) this.#flashes.set(i, now);
    }
    this.#redraw();
  }
  /** filtered dims what its filter leaves out now. */
  filtered() {
    if (!this.#state) return;
    for (let i = 0; i < this.#chart.size; i++) this.#dim[i] = this.#chart.section[i] < 0 || this.#filter.passes(this.#chart, i) ? 0 : DIM;
    this.#rasters.stale();
    this.#labels.stale();
    this.#move();
  }
  /** looks says which seats are chosen, which are the shopper's own, and which are gone though they may not be shown so yet. */
  looks(picked, mine, gone) {
    this.#looks = /* @__PURE__ */ new Map();
    for (const i of gone) if (this.#state?.status[i] === AVAILABLE) this.#looks.set(i, HELD);
    for (const i of picked) this.#looks.set(i, PICKED);
    for (const i of mine) this.#looks.set(i, MINE);
    this.#labels?.stale();
    if (this.#state) this.#overview.mark(this.#view, this.#own, this.#painter);
    this.#redraw();
  }
  /** aim is the part in view; null: all of it. */
  get aim() {
    const { x, y, k } = this.#view;
    return this.#whole ? null : { x, y, k };
  }
  set aim(to) {
    this.#jump(to);
  }
  get #whole() {
    return Math.abs(this.#view.k / this.#view.whole().k - 1) < 0.02;
  }
  /** zoom in or out about the middle. */
  zoom(factor) {
    this.#go(this.#view.zoomed(this.#view.width / 2, this.#view.height / 2, factor));
  }
  /** fit shows everything. */
  fit() {
    this.#go(() => this.#view.whole());
  }
  /** reveal goes to a seat, near enough to tell it from its neighbours. */
  reveal(i) {
    this.#go({ x: this.#chart.x[i], y: this.#chart.y[i], k: Math.max(this.#view.k, 26 / this.#chart.pitch) });
  }
  /** move asks for a frame of another view. */
  #move() {
    this.#moved = true;
    this.#redraw();
  }
  #redraw() {
    if (this.#wanted || !this.#state) return;
    this.#wanted = requestAnimationFrame((now) => this.#frame(now));
    this.#canvas.toggleAttribute("data-moving", true);
  }
  #resize() {
    const { clientWidth: w, clientHeight: h } = this.#canvas;
    this.#dpr = Math.min(2, devicePixelRatio || 1);
    for (const { canvas } of [this.#ctx, this.#above]) {
      canvas.width = Math.round(w * this.#dpr);
      canvas.height = Math.round(h * this.#dpr);
    }
    const whole = this.#state && this.#whole;
    Object.assign(this.#view, { width: Math.max(1, w), height: Math.max(1, h) });
    if (!this.#state) return;
    this.#view.bounds(this.#chart);
    this.#view.set(whole || this.#view.k < this.#view.least ? this.#view.whole() : this.#view);
    this.#move();
  }
  #frame(now) {
    this.#wanted = 0;
    if (this.#glide && !this.#glide(now)) this.#glide = null;
    this.#paint(this.#state, performance.now() + BUDGET);
    if (this.#glide || this.#moved || this.#flashes.size) this.#redraw();
    this.#canvas.toggleAttribute("data-moving", this.#wanted > 0);
  }
  #paint(state, deadline) {
    const v = this.#view;
    const box = v.box();
    const to = { k: v.k * this.#dpr, x0: box.x0, y0: box.y0, box, dpr: this.#dpr };
    const scene = { chart: this.#chart, state, painter: this.#painter, ...this.#sells };
    if (this.#moved) {
      this.#moved = !this.#paintAll(scene, to, deadline);
      this.#placeRows(to);
      this.#rows.paint(this.#ctx, "ends");
      this.#overview.mark(v, this.#own, this.#painter);
    } else this.#paintTurned(to);
    this.#turned = [];
    const above = this.#above;
    above.clearRect(0, 0, this.#canvas.width, this.#canvas.height);
    paintAreas(above, scene, to);
    this.#paintFlashes(above, to);
    this.#tags = this.#labels.paint(above, scene, to, this.#own);
    this.#rows.paint(above, "edge");
    this.#paintLooks(above, to);
    this.#tell();
  }
  #placeRows(to) {
    const r = this.#chart.radius * this.#view.k;
    if (r < PICKABLE) this.#rows.clear();
    else this.#rows.place(to, r >= LEGIBLE);
  }
  /** own are the seats that are chosen or the shopper's own. */
  get #own() {
    return [...this.#looks].filter(([, look]) => look !== HELD).map(([i]) => i);
  }
  /** paintAll returns whether nothing is missing. */
  #paintAll(scene, to, deadline) {
    const ctx = this.#ctx;
    ctx.fillStyle = this.#painter.colors.paper;
    ctx.fillRect(0, 0, this.#canvas.width, this.#canvas.height);
    paintShapes(ctx, scene, to);
    if (this.#chart.countWithin(to.box) > DIRECT) return this.#rasters.draw(ctx, to, deadline);
    this.#paintSeats(ctx, scene, to);
    return true;
  }
  /** paintTurned paints seats that changed over what they were. */
  #paintTurned(to) {
    const { x0, y0, x1, y1 } = to.box;
    const { x, y, pitch: m } = this.#chart;
    const list = [...new Set(this.#turned)].filter((i) => x[i] > x0 - m && x[i] < x1 + m && y[i] > y0 - m && y[i] < y1 + m);
    if (!list.length) return;
    this.#painter.seats(this.#ctx, list, to, this.#look, true);
    if (this.#chart.radius * this.#view.k >= LEGIBLE) this.#painter.labels(this.#ctx, list, to, this.#look);
  }
  #tell() {
    const v = this.#view;
    const i = this.#chart.sections.length < 2 || this.#chart.radius * v.k < PICKABLE ? -1 : this.#chart.nearest(v.x, v.y, v.width / v.k / 3);
    this.#events.here(i < 0 ? null : this.#chart.sections[this.#chart.section[i]]);
    this.#events.shapes(v.told(v.k));
  }
  #paintSeats(ctx, scene, to) {
    paintSlabs(ctx, scene, to);
    const list = [];
    this.#chart.within(to.box, (i) => list.push(i));
    this.#painter.seats(ctx, list, to, this.#look);
    if (this.#chart.radius * this.#view.k >= LEGIBLE) this.#painter.labels(ctx, list, to, this.#look);
  }
  /** looks of the shopper's own seats lie over everything else, never in pictures of it. */
  #paintLooks(ctx, to) {
    const look = (i) => this.#looks.get(i) ?? PICKED;
    const all = [...this.#looks.keys()];
    if (this.#hover >= 0 && !this.#looks.has(this.#hover)) this.#ring(ctx, to, this.#hover, this.#painter.colors.ink);
    if (!all.length) return;
    this.#painter.seats(ctx, all, to, look, true);
    if (this.#chart.radius * this.#view.k < SEEN) this.#paintMarks(ctx, to);
    if (this.#chart.radius * this.#view.k >= LEGIBLE) this.#painter.labels(ctx, all, to, look);
  }
  /** marks show where the shopper's own seats are while seats are small: as they look from near, and those side by side as one. */
  #paintMarks(ctx, to) {
    const { accent, slab } = this.#painter.colors;
    const { x, y } = this.#chart;
    for (const [r, color] of [[6.5, accent], [5, slab], [3.25, accent]]) {
      ctx.fillStyle = color;
      ctx.beginPath();
      for (const i of this.#own) {
        const [px, py] = [(x[i] - to.x0) * to.k, (y[i] - to.y0) * to.k];
        ctx.moveTo(px, py);
        ctx.arc(px, py, r * this.#dpr, 0, 7);
      }
      ctx.fill();
    }
  }
  #ring(ctx, to, i, color) {
    ctx.strokeStyle = color;
    ctx.lineWidth = 2 * this.#dpr;
    ctx.beginPath();
    ctx.arc((this.#chart.x[i] - to.x0) * to.k, (this.#chart.y[i] - to.y0) * to.k, Math.max(this.#chart.radius * to.k + 2, 5 * this.#dpr), 0, 7);
    ctx.stroke();
  }
  #paintFlashes(ctx, to) {
    const now = performance.now();
    const since = /* @__PURE__ */ new Map();
    for (const [i, at] of this.#flashes) {
      if (now - at >= FLASH) this.#flashes.delete(i);
      else if (!since.get(at)?.push(i)) since.set(at, [i]);
    }
    ctx.strokeStyle = ctx.fillStyle = this.#painter.colors.ink;
    ctx.lineWidth = 2 * this.#dpr;
    for (const [at, seats] of since) this.#flash(ctx, to, seats, (now - at) / FLASH);
    ctx.globalAlpha = 1;
  }
  /** flash is rings about seats, at a time from 0 to 1, or a glow where rings of neighbours would be a tangle. */
  #flash(ctx, to, seats, t) {
    const { x, y, radius } = this.#chart;
    const small = radius * to.k < 4 * this.#dpr;
    const r = small ? Math.max(radius * to.k, 2.5 * this.#dpr) * (1 + 0.7 * t) : Math.max(radius * to.k + 2, 5 * this.#dpr) * (1 + 0.5 * t);
    ctx.globalAlpha = (small ? 0.18 : 0.5) * (1 - t);
    ctx.beginPath();
    for (const i of seats) {
      const [px, py] = [(x[i] - to.x0) * to.k, (y[i] - to.y0) * to.k];
      if (px < -r || py < -r || px > this.#canvas.width + r || py > this.#canvas.height + r) continue;
      ctx.moveTo(px + r, py);
      ctx.arc(px, py, r, 0, 7);
    }
    if (small) ctx.fill();
    else ctx.stroke();
  }
  /** target does nothing before there is a map. */
  #target() {
    const ready = (f) => (...args) => {
      if (this.#state) f(...args);
    };
    return {
      pan: ready((dx, dy) => this.#jump(this.#view.panned(dx, dy))),
      zoom: ready((px, py, factor, smooth) => smooth ? this.#go(this.#view.zoomed(px, py, factor)) : this.#jump(this.#view.zoomed(px, py, factor))),
      fit: ready(() => this.fit()),
      fling: ready((vx, vy) => this.#fling(vx, vy)),
      tap: ready((px, py, touch) => this.#tap(px, py, touch)),
      hover: ready((px, py) => this.#over(px, py))
    };
  }
  #jump(view) {
    this.#glide = null;
    this.#view.set(view);
    this.#move();
  }
  /** go moves smoothly to a view, or to what a canvas that is given another size meanwhile makes of it. */
  #go(aim) {
    const end = aim instanceof Function ? aim : () => aim;
    if (still.matches) return this.#jump(end());
    const from = { x: this.#view.x, y: this.#view.y, k: this.#view.k };
    const start = performance.now();
    this.#glide = (now) => {
      const t = Math.min(1, Math.max(0, (now - start) / 320));
      const e = 1 - (1 - t) ** 3;
      const to = end();
      const k = from.k * (to.k / from.k) ** e;
      const f = Math.abs(to.k / from.k - 1) < 1e-3 ? e : (1 / from.k - 1 / k) / (1 / from.k - 1 / to.k);
      this.#view.set({ x: from.x + (to.x - from.x) * f, y: from.y + (to.y - from.y) * f, k });
      this.#moved = true;
      return t < 1;
    };
    this.#redraw();
  }
  #fling(vx, vy) {
    if (Math.hypot(vx, vy) < 0.1 || still.matches) {
      this.#glide = null;
      return;
    }
    let last = performance.now();
    this.#glide = (now) => {
      const dt = Math.max(0, now - last);
      last = now;
      this.#view.set(this.#view.panned(vx * dt, vy * dt));
      this.#moved = true;
      const slow = Math.exp(-dt / 180);
      vx *= slow;
      vy *= slow;
      return Math.hypot(vx, vy) > 0.02;
    };
    this.#redraw();
  }
  #tap(px, py, touch) {
    const at = this.#view.world(px, py);
    const r = this.#chart.radius * this.#view.k;
    const i = this.#chart.nearest(at.x, at.y, Math.max(this.#chart.pitch * 0.6, (touch ? 14 : 8) / this.#view.k));
    const tag = this.#tags.find((t) => t.x0 <= px * this.#dpr && px * this.#dpr <= t.x1 && t.y0 <= py * this.#dpr && py * this.#dpr <= t.y1);
    if (i >= 0 && r >= PICKABLE) this.#events.seat(i);
    else if (tag) this.#approach(tag.section, at);
    else if (i >= 0) this.#approach(this.#chart.sections[this.#chart.section[i]], at);
    else {
      const area = this.#chart.areas.find((a) => inside(a.points, at.x, at.y));
      if (area) this.#events.area(area.id);
    }
  }
  /** approach zooms to a section whose seats are too small to be meant, and from there to the place. */
  #approach(section, at) {
    const whole = this.#view.of(section.box, 52);
    const near = { x: at.x, y: at.y, k: 24 / this.#chart.pitch };
    this.#go(whole.k > this.#view.k * 1.3 && whole.k < near.k ? whole : near);
  }
  #over(px, py) {
    let what = null;
    let seat = -1;
    if (px !== null && py !== null) {
      const at = this.#view.world(px, py);
      if (this.#chart.radius * this.#view.k >= 3) seat = this.#chart.nearest(at.x, at.y, this.#chart.pitch * 0.6);
      what = seat >= 0 ? seat : this.#chart.areas.find((a) => inside(a.points, at.x, at.y)) ?? null;
    }
    if (seat !== this.#hover) this.#redraw();
    this.#hover = seat;
    this.#canvas.style.cursor = what !== null ? "pointer" : "";
    this.#events.hover(what, px ?? 0, py ?? 0);
  }
}

export { SeatMap };
