import { ACCESSIBLE, RESTRICTED, COMPANION } from './chart.js';
import { h } from './dom.js';
import { AVAILABLE, HELD, SOLD } from './state.js';

const PICKED = 4;
const MINE = 5;
const DIM = 8;
const FAINT = 0.22;
const NONE = -1;
const SMALL = 2.2;
function theme(el) {
  const probe = h("span");
  el.append(probe);
  const css = getComputedStyle(probe);
  const get = (name) => {
    probe.style.color = `var(${name})`;
    return css.color;
  };
  const read = {
    paper: get("--map"),
    slab: get("--slab"),
    ink: get("--ink"),
    soft: get("--soft"),
    line: get("--line"),
    accent: get("--accent"),
    onAccent: get("--on-accent"),
    held: get("--held"),
    sold: get("--sold"),
    closed: get("--closed"),
    stage: get("--stage"),
    font: css.fontFamily
  };
  probe.remove();
  return read;
}
class Painter {
  chart;
  colors;
  onCategory;
  // what reads on the colour of each
  #dimmed;
  // the colour of each where it is not wanted
  captions = /* @__PURE__ */ new Map();
  // of legend.ts, which live as long as the colours do
  #widths = /* @__PURE__ */ new Map();
  #ruler = pen(document.createElement("canvas"));
  #stamps = /* @__PURE__ */ new Map();
  #texts = /* @__PURE__ */ new Map();
  #tints = /* @__PURE__ */ new Map();
  #size = 0;
  constructor(chart, colors) {
    this.chart = chart;
    this.colors = colors;
    this.onCategory = chart.categories.map((c) => contrast(c.color));
    this.#dimmed = chart.categories.map((c) => blend(colors.slab, c.color, FAINT));
  }
  /** width is how wide a text is, in heights of its letters. */
  width(text, weight) {
    const key = `${weight} ${text}`;
    const known = this.#widths.get(key);
    if (known !== void 0) return known;
    this.#ruler.font = `${weight} 100px ${this.colors.font}`;
    const width = this.#ruler.measureText(text).width / 100;
    if (this.#widths.size > 5e3) this.#widths.clear();
    this.#widths.set(key, width);
    return width;
  }
  /** seats paints seats with their looks; over: over what they were, which covers no neighbour. */
  seats(ctx, list, to, look, over = false) {
    const { x, y, category, flags } = this.chart;
    const r = this.chart.radius * to.k;
    if (r < SMALL) {
      if (over) this.#squares(ctx, list, to, () => NONE, Math.max(1.4, r * 2.4));
      return this.#squares(ctx, list, to, look, Math.max(1, r * 1.8));
    }
    this.#resize(r);
    for (const i of list) {
      const stamp = this.#stamp(category[i], look(i), flags[i], over);
      ctx.drawImage(stamp, (x[i] - to.x0) * to.k - stamp.width / 2, (y[i] - to.y0) * to.k - stamp.height / 2);
    }
  }
  #squares(ctx, list, to, look, size) {
    const { x, y, category, categories } = this.chart;
    const c = this.colors;
    let last = "";
    for (const i of list) {
      const l = look(i);
      const color = l === NONE ? c.slab : l === AVAILABLE ? categories[category[i]].color : l === HELD ? c.held : l === SOLD ? c.sold : l === (AVAILABLE | DIM) ? this.#dimmed[category[i]] : l === PICKED || l === MINE ? c.accent : c.closed;
      if (color !== last) ctx.fillStyle = last = color;
      ctx.fillRect((x[i] - to.x0) * to.k - size / 2, (y[i] - to.y0) * to.k - size / 2, size, size);
    }
  }
  /** labels writes seat numbers into free, picked and own seats, and a wheelchair into its free spaces. */
  labels(ctx, list, to, look) {
    const { x, y, category, label, flags } = this.chart;
    for (const i of list) {
      const l = look(i);
      if (l !== AVAILABLE && l !== PICKED && l !== MINE || !label[i]) continue;
      const text = l !== AVAILABLE ? this.#text(label[i], this.colors.onAccent) : flags[i] & ACCESSIBLE ? this.#wheelchair(this.onCategory[category[i]]) : this.#text(label[i], this.onCategory[category[i]]);
      ctx.drawImage(text, (x[i] - to.x0) * to.k - text.width / 2, (y[i] - to.y0) * to.k - text.height / 2);
    }
  }
  /**
   * tint is a colour of the chart laid thinly over the ground, so that it suits
   * dark and light; without one it is the other given.
   */
  tint(color, otherwise, alpha = 0.3) {
    if (!color) return otherwise;
    const key = color + alpha;
    let mixed = this.#tints.get(key);
    if (!mixed) this.#tints.set(key, mixed = blend(this.colors.paper, color, alpha));
    return mixed;
  }
  /** resize throws stamps of another size away; half a pixel is no other size. */
  #resize(r) {
    const size = Math.max(SMALL, Math.round(r * 2) / 2);
    if (size === this.#size) return;
    this.#size = size;
    this.#stamps.clear();
    this.#texts.clear();
  }
  #stamp(category, look, flags, over) {
    const state = look & ~DIM;
    const key = (state === AVAILABLE ? category : 0) * 256 + (over ? 128 : 0) + look * 8 + (flags & 7);
    let s = this.#stamps.get(key);
    if (!s) this.#stamps.set(key, s = this.#draw(category, look, flags, over));
    return s;
  }
  #draw(category, looks, flags, over) {
    const r = this.#size;
    const [look, dim] = [looks & ~DIM, (looks & DIM) > 0];
    const side = Math.ceil(r * (look >= PICKED ? 3.6 : 2.6) + 4);
    const [canvas, ctx] = sheet(side, side);
    ctx.translate(side / 2, side / 2);
    const c = this.colors;
    if (over) {
      ctx.fillStyle = c.slab;
      ctx.beginPath();
      ctx.arc(0, 0, r * 1.3, 0, 7);
      ctx.fill();
    }
    const outline = shape(ctx, flags);
    ctx.lineWidth = Math.max(1, r * 0.18);
    if (dim) ctx.globalAlpha = FAINT;
    if (look === AVAILABLE || look >= PICKED) {
      if (look >= PICKED) this.#edge(ctx, outline, r);
      ctx.fillStyle = look === AVAILABLE ? this.chart.categories[category].color : c.accent;
      outline(r);
      if (flags & RESTRICTED) this.#pale(ctx, r);
      ctx.fill();
    } else if (look === HELD) {
      outline(r - ctx.lineWidth / 2);
      ctx.strokeStyle = ctx.fillStyle = c.held;
      ctx.stroke();
      ctx.clip();
      ctx.fillRect(-r, 0, 2 * r, r);
    } else if (look === SOLD) {
      const d = r * 0.42;
      ctx.strokeStyle = c.sold;
      ctx.beginPath();
      ctx.moveTo(-d, -d);
      ctx.lineTo(d, d);
      ctx.moveTo(d, -d);
      ctx.lineTo(-d, d);
      ctx.stroke();
    } else {
      ctx.fillStyle = c.closed;
      ctx.beginPath();
      ctx.arc(0, 0, Math.max(0.8, r * 0.22), 0, 7);
      ctx.fill();
    }
    return canvas;
  }
  /** pale fills an outline thinly, and leaves its lower part to be filled. */
  #pale(ctx, by) {
    const alpha = ctx.globalAlpha;
    ctx.globalAlpha = alpha * 0.35;
    ctx.fill();
    ctx.globalAlpha = alpha;
    const below = new Path2D();
    below.rect(-2 * by, -0.3 * by, 4 * by, 4 * by);
    ctx.clip(below);
  }
  /** edge sets chosen seats off from the free ones by a second outline, around a seat and its number. */
  #edge(ctx, outline, r) {
    const width = Math.max(1, r * 0.15);
    outline(r + 2 * width);
    ctx.fillStyle = this.colors.accent;
    ctx.fill();
    outline(r + width);
    ctx.fillStyle = this.colors.slab;
    ctx.fill();
  }
  #text(label, color) {
    return this.#inscribed(color + label, (ctx) => {
      const px = this.#size * (label.length > 2 ? 0.8 : 1);
      ctx.font = `600 ${px}px ${this.colors.font}`;
      ctx.textAlign = "center";
      ctx.textBaseline = "middle";
      ctx.fillStyle = color;
      ctx.fillText(label, 0, px * 0.06);
    });
  }
  #wheelchair(color) {
    return this.#inscribed(color, (ctx) => {
      ctx.scale(this.#size, this.#size);
      ctx.strokeStyle = ctx.fillStyle = color;
      ctx.lineWidth = 0.16;
      ctx.lineCap = ctx.lineJoin = "round";
      ctx.beginPath();
      ctx.arc(-0.12, -0.6, 0.15, 0, 7);
      ctx.fill();
      ctx.stroke(new Path2D("M-.12 -.34V.12H.28L.46 .58M-.12 -.12H.24"));
      ctx.beginPath();
      ctx.arc(-0.1, 0.28, 0.42, 0.25, 4.3);
      ctx.stroke();
    });
  }
  /** inscribed is a picture of what stands in a seat, drawn about its middle and kept under a key. */
  #inscribed(key, draw) {
    const made = this.#texts.get(key);
    if (made) return made;
    const side = Math.ceil(this.#size * 2.4);
    const [canvas, ctx] = sheet(side, side);
    ctx.translate(side / 2, side / 2);
    draw(ctx);
    this.#texts.set(key, canvas);
    return canvas;
  }
}
function shape(ctx, flags) {
  return (by) => {
    ctx.beginPath();
    if (flags & ACCESSIBLE) ctx.roundRect(-by, -by, 2 * by, 2 * by, by * 0.25);
    else if (flags & COMPANION) for (const [x, y] of [[0, -1.25], [1.25, 0], [0, 1.25], [-1.25, 0]]) ctx.lineTo(x * by, y * by);
    else ctx.arc(0, 0, by, 0, 7);
    ctx.closePath();
  };
}
const pen = (canvas) => canvas.getContext("2d");
function sheet(width, height) {
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  return [canvas, pen(canvas)];
}
function blend(under, over, alpha) {
  const [, ctx] = sheet(1, 1);
  ctx.fillStyle = under;
  ctx.fillRect(0, 0, 1, 1);
  ctx.globalAlpha = alpha;
  ctx.fillStyle = over;
  ctx.fillRect(0, 0, 1, 1);
  const [r, g, b] = ctx.getImageData(0, 0, 1, 1).data;
  return `rgb(${r} ${g} ${b})`;
}
function contrast(color) {
  const [, ctx] = sheet(1, 1);
  ctx.fillStyle = color;
  ctx.fillRect(0, 0, 1, 1);
  const [r, g, b] = ctx.getImageData(0, 0, 1, 1).data;
  return 0.299 * r + 0.587 * g + 0.114 * b > 150 ? "#111827" : "#ffffff";
}

export { DIM, MINE, PICKED, Painter, pen, sheet, theme };
