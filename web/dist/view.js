const NARROW = 560;
const HEAD = { wide: 0, narrow: 46 };
const FOOT = { wide: 36, narrow: 66 };
const SHEET = { wide: 0, narrow: 12 };
const TOLD = 2.5;
class View {
  x = 0;
  // centre, in the chart's units
  y = 0;
  k = 1;
  // CSS pixels per unit
  width = 1;
  height = 1;
  least = 0.01;
  most = 10;
  chart;
  // once it has bounds
  /**
   * bounds sets how far one can zoom: out to the whole chart, in to seats of a
   * comfortable size.
   */
  bounds(chart) {
    this.chart = chart;
    this.least = this.whole().k * 0.9;
    this.most = Math.max(this.least * 4, 46 / chart.pitch);
  }
  /** whole is the view that shows the whole chart, below the tools and above the key, if there is one at such a scale. */
  whole() {
    const at = this.#between(SHEET);
    return this.told(at.k) ? this.#between(FOOT) : at;
  }
  #between(feet) {
    const how = this.width > NARROW ? "wide" : "narrow";
    const [head, foot] = [HEAD[how], feet[how]];
    const at = this.of(this.chart.box, 12, head + foot);
    return { ...at, y: at.y + (foot - head) / 2 / at.k };
  }
  /** told is whether shapes of seats can be told at a scale. */
  told(k) {
    return this.chart.radius * k >= TOLD;
  }
  /** of is the view that shows a box with a margin of so many CSS pixels, in so many of the height less. */
  of(box, margin, less = 0) {
    const w = Math.max(1, this.width - 2 * margin);
    const h = Math.max(1, this.height - 2 * margin - less);
    const k = Math.min(w / Math.max(1e-6, box.x1 - box.x0), h / Math.max(1e-6, box.y1 - box.y0));
    return { x: (box.x0 + box.x1) / 2, y: (box.y0 + box.y1) / 2, k };
  }
  /** set takes a view as near to the wanted one as the bounds allow. */
  set({ x, y, k }) {
    const b = this.chart.box;
    this.k = Math.min(this.most, Math.max(this.least, k));
    this.x = clampAxis(x, b.x0, b.x1, this.width / this.k);
    this.y = clampAxis(y, b.y0, b.y1, this.height / this.k);
  }
  /** panned is this view moved by CSS pixels. */
  panned(dx, dy) {
    return { x: this.x - dx / this.k, y: this.y - dy / this.k, k: this.k };
  }
  /** zoomed is this view scaled about a point of the canvas, which stays where it is. */
  zoomed(px, py, factor) {
    const k = Math.min(this.most, Math.max(this.least, this.k * factor));
    const at = this.world(px, py);
    return { x: at.x - (px - this.width / 2) / k, y: at.y - (py - this.height / 2) / k, k };
  }
  /** world is the place of the chart under a point of the canvas. */
  world(px, py) {
    return { x: this.x + (px - this.width / 2) / this.k, y: this.y + (py - this.height / 2) / this.k };
  }
  /** screen is the point of the canvas where a place of the chart is. */
  screen(x, y) {
    return { x: (x - this.x) * this.k + this.width / 2, y: (y - this.y) * this.k + this.height / 2 };
  }
  /** box is the part of the chart that is seen. */
  box() {
    const w = this.width / this.k / 2;
    const h = this.height / this.k / 2;
    return { x0: this.x - w, y0: this.y - h, x1: this.x + w, y1: this.y + h };
  }
}
function clampAxis(c, lo, hi, seen) {
  const slack = Math.max(0, (hi - lo) / 2 - seen / 2) + seen * 0.25;
  const mid = (lo + hi) / 2;
  return Math.min(mid + slack, Math.max(mid - slack, c));
}

export { View };
