import { boxOf } from './chart.js';
import { sheet } from './paint.js';

const LEADING = 1.18;
function letters(at, to, most, wide, lines = 1) {
  const px = Math.round(Math.min(most, Math.max(10, at.width / to.dpr / wide), at.height / to.dpr / (lines * LEADING + 0.35)));
  return px < (lines > 1 ? 11 : 9) ? 0 : px * to.dpr;
}
function outline(ctx, points, to) {
  ctx.beginPath();
  for (const p of points) ctx.lineTo((p.x - to.x0) * to.k, (p.y - to.y0) * to.k);
  ctx.closePath();
}
function centre(points, to) {
  const b = boxOf(points);
  return { x: ((b.x0 + b.x1) / 2 - to.x0) * to.k, y: ((b.y0 + b.y1) / 2 - to.y0) * to.k, width: (b.x1 - b.x0) * to.k, height: (b.y1 - b.y0) * to.k };
}
const PLATE = { usual: 0.7, tight: 0.35 };
function extent(painter, lines, px, plate = 0) {
  return {
    width: Math.ceil(Math.max(...lines.map((line, n) => painter.width(line, weight(n)) * small(n))) * px + px * (plate || 0.5)),
    height: Math.ceil(lines.length * px * LEADING + px * (plate ? plate * 0.7 : 0.3))
  };
}
const weight = (line) => line ? 500 : 700;
const small = (line) => line ? 0.84 : 1;
function caption(painter, lines, px, { ink, ground, plate = 0 }) {
  const key = [px, ink, ground, plate, ...lines].join("\n");
  const made = painter.captions.get(key);
  if (made) return made;
  const { colors } = painter;
  const { width, height } = extent(painter, lines, px, plate);
  const [canvas, ctx] = sheet(width, height);
  if (plate) lay(ctx, ground, colors.line, px);
  Object.assign(ctx, { textAlign: "center", textBaseline: "middle", lineJoin: "round", lineWidth: px * 0.32, strokeStyle: ground });
  lines.forEach((line, n) => {
    ctx.font = `${weight(n)} ${px * small(n)}px ${colors.font}`;
    const y = height / 2 + (n - (lines.length - 1) / 2) * px * LEADING;
    if (!plate) ctx.strokeText(line, width / 2, y);
    ctx.fillStyle = n ? colors.soft : ink;
    ctx.fillText(line, width / 2, y);
  });
  if (painter.captions.size > 1e3) painter.captions.clear();
  painter.captions.set(key, canvas);
  return canvas;
}
function lay(ctx, ground, line, px) {
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
function write(ctx, picture, at) {
  ctx.drawImage(picture, Math.round(at.x - picture.width / 2), Math.round(at.y - picture.height / 2));
}
function paintShapes(ctx, { chart, painter }, to) {
  const c = painter.colors;
  const shapes = [...chart.stage ? [chart.stage] : [], ...chart.shapes].filter((s) => s.points?.length);
  const ground = (s) => painter.tint(s.color, s === chart.stage ? c.stage : c.slab);
  for (const s of shapes) {
    if (s.color === "transparent") continue;
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
    if (s.label && px && at.width > 40 * to.dpr) write(ctx, caption(painter, [s.label], px, { ink: c.ink, ground: s.color === "transparent" ? c.paper : ground(s) }), at);
  }
}
function paintAreas(ctx, { chart, state, painter, holds }, to) {
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
function hatch(ctx, at, color, dpr, alpha) {
  const step = 9 * dpr;
  const r = Math.min(4e3, (at.width + at.height) / 2);
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

export { PLATE, caption, extent, paintAreas, paintShapes, write };
