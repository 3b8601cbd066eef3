// What the map says in words and outlines: the stage, and areas with what is left in
// them. Names of sections are in labels.ts, those of rows in rows.ts.

import { boxOf, type Chart, type Section } from './chart';
import { sheet, type Painter, type Pen, type Window } from './paint';
import type { State } from './state';
import type { Area, Point, Shape } from './wire';

/** Words are what is said of a section, or of an area. */
export interface Words {
  wanted: boolean; // something in it is
  left: string;
  from: string; // the price it begins at, or nothing
}

/** Scene is what is drawn. */
export interface Scene {
  chart: Chart;
  painter: Painter;
  state: State;
  sells(section: Section): Words;
  holds(area: Area): Words;
}

const LEADING = 1.18; // from line to line, in heights of letters

/** Drawn is where something lies on the canvas: its middle, and how large it is. */
interface Drawn extends Point { width: number; height: number }

/**
 * letters is how high those of a label are, in device pixels: more in what is wider, most at
 * most, and so few that its lines fit between the borders of what it names. 0 is where none do.
 */
function letters(at: Drawn, to: Window, most: number, wide: number, lines = 1): number {
  const px = Math.round(Math.min(most, Math.max(10, at.width / to.dpr / wide), at.height / to.dpr / (lines * LEADING + 0.35)));
  return px < (lines > 1 ? 11 : 9) ? 0 : px * to.dpr; // those of further lines are smaller
}

/** outline traces a polygon in device pixels. */
function outline(ctx: Pen, points: Point[], to: Window): void {
  ctx.beginPath();
  for (const p of points) ctx.lineTo((p.x - to.x0) * to.k, (p.y - to.y0) * to.k);
  ctx.closePath();
}

function centre(points: Point[], to: Window): Drawn {
  const b = boxOf(points);
  return { x: ((b.x0 + b.x1) / 2 - to.x0) * to.k, y: ((b.y0 + b.y1) / 2 - to.y0) * to.k, width: (b.x1 - b.x0) * to.k, height: (b.y1 - b.y0) * to.k };
}

/** PLATE is how much wider a plate is than its words, in heights of letters. */
export const PLATE = { usual: 0.7, tight: 0.35 };

/** Style is how a caption is written: in which ink, over a halo of the ground or on a plate of it, so much wider than its words. */
interface Style { ink: string; ground: string; plate?: number }

/** extent is how large a caption is with letters so high. */
export function extent(painter: Painter, lines: string[], px: number, plate = 0): { width: number; height: number } {
  return {
    width: Math.ceil(Math.max(...lines.map((line, n) => painter.width(line, weight(n)) * small(n))) * px + px * (plate || 0.5)),
    height: Math.ceil(lines.length * px * LEADING + px * (plate ? plate * 0.7 : 0.3)),
  };
}

const weight = (line: number) => (line ? 500 : 700);

const small = (line: number) => (line ? 0.84 : 1);

/** caption is a picture of centred lines, the first one bold. It is kept: text is the dearest thing on the map. */
export function caption(painter: Painter, lines: string[], px: number, { ink, ground, plate = 0 }: Style): HTMLCanvasElement {
  const key = [px, ink, ground, plate, ...lines].join('\n');
  const made = painter.captions.get(key);
  if (made) return made;
  const { colors } = painter;
  const { width, height } = extent(painter, lines, px, plate);
  const [canvas, ctx] = sheet(width, height);
  if (plate) lay(ctx, ground, colors.line, px);
  Object.assign(ctx, { textAlign: 'center', textBaseline: 'middle', lineJoin: 'round', lineWidth: px * 0.32, strokeStyle: ground });
  lines.forEach((line, n) => {
    ctx.font = `${weight(n)} ${px * small(n)}px ${colors.font}`;
    const y = height / 2 + (n - (lines.length - 1) / 2) * px * LEADING;
    if (!plate) ctx.strokeText(line, width / 2, y);
    ctx.fillStyle = n ? colors.soft : ink;
    ctx.fillText(line, width / 2, y);
  });
  if (painter.captions.size > 1000) painter.captions.clear(); // counts change for ever
  painter.captions.set(key, canvas);
  return canvas;
}

/** lay fills a canvas with a plate that lets a little through. */
function lay(ctx: Pen, ground: string, line: string, px: number): void {
  const { width, height } = ctx.canvas;
  ctx.beginPath();
  ctx.roundRect(0.5, 0.5, width - 1, height - 1, px * 0.42);
  ctx.fillStyle = ground;
  ctx.globalAlpha = 0.92;
  ctx.fill();
  ctx.globalAlpha = 1;
  ctx.strokeStyle = line;
  ctx.stroke();
}

/** write puts a caption around a point. */
export function write(ctx: Pen, picture: HTMLCanvasElement, at: Point): void {
  ctx.drawImage(picture, Math.round(at.x - picture.width / 2), Math.round(at.y - picture.height / 2));
}

/** paintShapes draws the stage, over it whatever outlines the chart has, and over both what they are called. */
export function paintShapes(ctx: Pen, { chart, painter }: Pick<Scene, 'chart' | 'painter'>, to: Window): void {
  const c = painter.colors;
  const shapes = [...(chart.stage ? [chart.stage] : []), ...chart.shapes].filter((s) => s.points?.length);
  const ground = (s: Shape) => painter.tint(s.color, s === chart.stage ? c.stage : c.slab);
  for (const s of shapes) {
    if (s.color === 'transparent') continue; // words alone
    outline(ctx, s.points, to);
    ctx.fillStyle = ground(s);
    ctx.fill();
    ctx.strokeStyle = painter.tint(s.color, c.line, 0.6);
    ctx.lineWidth = to.dpr;
    ctx.stroke();
  }
  for (const s of shapes) {
    const at = centre(s.points, to);
    const px = letters(at, to, 16, 9);
    if (s.label && px && at.width > 40 * to.dpr) write(ctx, caption(painter, [s.label], px, { ink: c.ink, ground: s.color === 'transparent' ? c.paper : ground(s) }), at);
  }
}

/** paintAreas draws general-admission areas, hatched, with the places left. */
export function paintAreas(ctx: Pen, { chart, state, painter, holds }: Scene, to: Window): void {
  const c = painter.colors;
  for (const a of chart.areas) {
    if (!a.points?.length) continue;
    const color = chart.categories.find((k) => k.name === a.category)?.color ?? c.accent;
    const { wanted, left, from } = holds(a);
    const offered = wanted && (state.areas.get(a.id) ?? 0) > 0;
    const at = centre(a.points, to);
    ctx.save();
    outline(ctx, a.points, to);
    ctx.globalAlpha = offered ? 0.16 : 0.06;
    ctx.fillStyle = color;
    ctx.fill();
    ctx.clip();
    hatch(ctx, at, color, to.dpr, offered ? 0.35 : 0.1);
    ctx.restore();
    outline(ctx, a.points, to);
    ctx.strokeStyle = offered ? color : c.line;
    ctx.lineWidth = 1.5 * to.dpr;
    ctx.stroke();
    const lines = [a.name, left, from].filter((l) => l);
    while (lines.length > 1 && !letters(at, to, 18, 10, lines.length)) lines.pop();
    const px = letters(at, to, 18, 10, lines.length);
    if (px && at.width > 60 * to.dpr) write(ctx, caption(painter, lines, px, { ink: wanted ? c.ink : c.soft, ground: c.paper }), at);
  }
}

function hatch(ctx: Pen, at: Drawn, color: string, dpr: number, alpha: number): void {
  const step = 9 * dpr;
  const r = Math.min(4000, (at.width + at.height) / 2);
  ctx.globalAlpha = alpha;
  ctx.strokeStyle = color;
  ctx.lineWidth = dpr;
  ctx.beginPath();
  for (let d = -r; d < r; d += step) {
    ctx.moveTo(at.x + d - r, at.y + r);
    ctx.lineTo(at.x + d + r, at.y - r);
  }
  ctx.stroke();
}
