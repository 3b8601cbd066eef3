// A small picture of the whole house, beside a map that shows a part of it: which
// part, and where the shopper's seats are. Whoever presses a place in it goes there.

import type { Chart } from './chart';
import { pen, sheet, type Painter, type Pen } from './paint';
import type { View } from './view';
import type { Point } from './wire';

const WIDTH = 116; // CSS pixels, as in the style sheet for wide screens
const HEIGHT = 84;
const MARGIN = 6;

/** Overview draws the whole of a chart, small. */
export class Overview {
  #canvas: HTMLCanvasElement;
  #ctx: Pen;
  #house: HTMLCanvasElement | null = null; // as it is before anything is marked
  #k = 1; // device pixels per unit
  #x0 = 0;
  #y0 = 0;
  #dpr = 1;

  /** go is called with where in the chart somebody wants to be; smoothly: unless it is dragged. */
  constructor(canvas: HTMLCanvasElement, go: (at: Point, smooth: boolean) => void) {
    this.#canvas = canvas;
    this.#ctx = pen(canvas);
    const to = (e: PointerEvent, smooth: boolean) => {
      const box = canvas.getBoundingClientRect();
      const scale = canvas.width / box.width / this.#k;
      go({ x: (e.clientX - box.left) * scale + this.#x0, y: (e.clientY - box.top) * scale + this.#y0 }, smooth);
    };
    canvas.addEventListener('pointerdown', (e) => {
      if (e.button !== 0) return;
      canvas.setPointerCapture(e.pointerId);
      to(e, true);
    });
    canvas.addEventListener('pointermove', (e) => { if (canvas.hasPointerCapture(e.pointerId)) to(e, false); });
  }

  /** show draws a chart as it is when nothing is known of it, each section in the colour of its middle. */
  show(chart: Chart, painter: Painter): void {
    const { box } = chart;
    this.#dpr = Math.min(2, devicePixelRatio || 1);
    [this.#canvas.width, this.#canvas.height] = [WIDTH * this.#dpr, HEIGHT * this.#dpr];
    const k = this.#k = Math.min((WIDTH - 2 * MARGIN) / (box.x1 - box.x0), (HEIGHT - 2 * MARGIN) / (box.y1 - box.y0)) * this.#dpr;
    this.#x0 = (box.x0 + box.x1) / 2 - this.#canvas.width / 2 / k;
    this.#y0 = (box.y0 + box.y1) / 2 - this.#canvas.height / 2 / k;
    const [house, ctx] = sheet(this.#canvas.width, this.#canvas.height);
    ctx.setTransform(k, 0, 0, k, -this.#x0 * k, -this.#y0 * k);
    ctx.fillStyle = painter.colors.stage;
    ctx.beginPath();
    chart.stage?.points?.forEach((p) => ctx.lineTo(p.x, p.y));
    ctx.fill();
    Object.assign(ctx, { lineWidth: Math.max(chart.slabWidth, 1 / k), lineCap: 'butt', lineJoin: 'round' });
    for (const s of chart.sections) {
      const middle = s.rows[s.rows.length >> 1].seats;
      ctx.strokeStyle = chart.categories[chart.category[middle[middle.length >> 1]]].color;
      ctx.beginPath();
      for (const line of s.slab) for (let p = 0; p < line.length; p += 2) (p ? ctx.lineTo : ctx.moveTo).call(ctx, line[p], line[p + 1]);
      ctx.stroke();
    }
    this.#house = house;
  }

  /** mark shows which part of the house is seen, and some seats, unless all of it is. */
  mark(view: View, own: number[], { chart, colors }: Painter): void {
    const hidden = view.k < view.whole().k * 1.15;
    this.#canvas.hidden = hidden;
    if (hidden || !this.#house) return;
    const ctx = this.#ctx;
    const { width, height } = this.#canvas;
    const b = view.box();
    const [x, y] = [(b.x0 - this.#x0) * this.#k, (b.y0 - this.#y0) * this.#k];
    const [w, h] = [(b.x1 - b.x0) * this.#k, (b.y1 - b.y0) * this.#k];
    ctx.clearRect(0, 0, width, height);
    ctx.globalAlpha = 0.4;
    ctx.drawImage(this.#house, 0, 0);
    ctx.save();
    ctx.beginPath();
    ctx.rect(x, y, w, h);
    ctx.clip();
    ctx.globalAlpha = 1;
    ctx.drawImage(this.#house, 0, 0);
    ctx.restore();
    ctx.strokeStyle = colors.ink;
    ctx.lineWidth = 1.5 * this.#dpr;
    ctx.strokeRect(x, y, w, h);
    for (const [r, color] of [[4, colors.slab], [2.75, colors.accent]] as const) {
      ctx.fillStyle = color;
      for (const i of own) {
        ctx.beginPath();
        ctx.arc((chart.x[i] - this.#x0) * this.#k, (chart.y[i] - this.#y0) * this.#k, r * this.#dpr, 0, 7);
        ctx.fill();
      }
    }
  }
}
