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
function caption(painter, lines, px, ink, ground, plate = false) {
  const key = [px, ink, ground, plate, ...lines].join("\n");
  const made = painter.captions.get(key);
  if (made) return made;
  const { colors } = painter;
  const font = (n) => `${n ? 500 : 700} ${px * (n ? 0.84 : 1)}px ${colors.font}`;
  const [canvas, ctx] = sheet(1, 1);
  canvas.width = Math.ceil(Math.max(...lines.map((line, n) => {
    ctx.font = font(n);
    return ctx.measureText(line).width;
  })) + px * (plate ? 0.7 : 0.5));
  canvas.height = Math.ceil(lines.length * px * LEADING + px * (plate ? 0.5 : 0.3));
  if (plate) lay(ctx, ground, colors.line, px);
  Object.assign(ctx, { textAlign: "center", textBaseline: "middle", lineJoin: "round", lineWidth: px * 0.32, strokeStyle: ground });
  lines.forEach((line, n) => {
    ctx.font = font(n);
    const y = canvas.height / 2 + (n - (lines.length - 1) / 2) * px * LEADING;
    if (!plate) ctx.strokeText(line, canvas.width / 2, y);
    ctx.fillStyle = n ? colors.soft : ink;
    ctx.fillText(line, canvas.width / 2, y);
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
    if (s.label && px && at.width > 40 * to.dpr) write(ctx, caption(painter, [s.label], px, c.ink, s.color === "transparent" ? c.paper : ground(s)), at);
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
    if (px && at.width > 60 * to.dpr) write(ctx, caption(painter, lines, px, wanted ? c.ink : c.soft, c.paper), at);
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
function paintSectionLabels(ctx, { chart, painter, sells }, to) {
  const r = chart.radius * to.k / to.dpr;
  if (r >= PICKABLE) return [];
  const c = painter.colors;
  const written = [];
  const usual = chart.sectionWidth * to.k / to.dpr;
  const px = Math.min(12.5, Math.max(9.5, usual / 4)) * to.dpr;
  const tag = (lines, wanted) => caption(painter, lines, px, wanted ? c.ink : c.soft, c.slab, true);
  const short = shortened(chart, to, (name) => tag([name], true).width);
  for (const s of chart.sections) {
    const at = { x: (s.label.x - to.x0) * to.k, y: (s.label.y - to.y0) * to.k };
    if (at.x < -80 || at.y < -40 || at.x > ctx.canvas.width + 80 || at.y > ctx.canvas.height + 40) continue;
    const name = short.has(family(s)) ? s.name.slice(family(s).length) : s.name;
    const { wanted, left, from } = sells(s);
    for (const lines of usual < COUNTS ? [[name]] : [[name, left, from], [name, left], [name]]) {
      const picture = tag(lines.filter((l) => l), wanted);
      const box = room(picture, at, written, s, to, lines.length) ?? (lines.length === 1 ? beside(ctx, picture, at, written, s, chart, to) : null);
      if (!box) continue;
      ctx.globalAlpha = wanted ? 1 : 0.6;
      write(ctx, picture, { x: (box.x0 + box.x1) / 2, y: at.y });
      written.push({ ...box, section: s });
      break;
    }
  }
  ctx.globalAlpha = 1;
  return written;
}
const COUNTS = 50;
const PICKABLE = 5;
const family = (section) => section.name.slice(0, section.name.lastIndexOf(" ") + 1);
function shortened(chart, to, width) {
  const count = /* @__PURE__ */ new Map();
  const cramped = /* @__PURE__ */ new Set();
  for (const s of chart.sections) {
    const f = family(s);
    count.set(f, (count.get(f) ?? 0) + 1);
    if (f && !cramped.has(f) && width(s.name) > roomy(s, to)) cramped.add(f);
  }
  for (const f of cramped) if (count.get(f) === 1) cramped.delete(f);
  return cramped;
}
const roomy = (section, to) => Math.max((section.box.x1 - section.box.x0) * to.k * 1.15, 26 * to.dpr);
const overlap = (a, b) => a.x0 < b.x1 && a.x1 > b.x0 && a.y0 < b.y1 && a.y1 > b.y0;
const around = ({ width: w, height: h }, x, y) => ({ x0: x - w / 2, y0: y - h / 2, x1: x + w / 2, y1: y + h / 2 });
function room(picture, at, taken, section, to, lines) {
  const { width: w, height: h } = picture;
  const high = (section.box.y1 - section.box.y0) * to.k;
  if (w > roomy(section, to) || h > Math.max(high * (lines > 1 ? 0.7 : 1.1), 22 * to.dpr)) return null;
  if (w * h > 0.75 * high * (section.box.x1 - section.box.x0) * to.k) return null;
  const box = around(picture, at.x, at.y);
  return taken.some((b) => overlap(b, box)) ? null : box;
}
function beside(ctx, picture, at, taken, section, chart, to) {
  const [x0, x1] = [section.box.x0, section.box.x1].map((x) => (x - to.x0) * to.k);
  const off = picture.width / 2 + chart.slabWidth / 2 * to.k + 2 * to.dpr;
  const sides = section.label.x < (chart.box.x0 + chart.box.x1) / 2 ? [x0 - off, x1 + off] : [x1 + off, x0 - off];
  for (const x of sides) {
    const box = around(picture, x, at.y);
    if (box.x0 < 0 || box.x1 > ctx.canvas.width || taken.some((b) => overlap(b, box))) continue;
    const on = { x0: box.x0 / to.k + to.x0, y0: box.y0 / to.k + to.y0, x1: box.x1 / to.k + to.x0, y1: box.y1 / to.k + to.y0 };
    if (!chart.sections.some((s) => s !== section && overlap(s.box, on))) return box;
  }
  return null;
}
function paintRowLabels(ctx, { chart, painter }, to) {
  const c = painter.colors;
  const px = Math.max(9.5 * to.dpr, chart.radius * to.k * 0.95);
  ctx.font = `600 ${px}px ${c.font}`;
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  ctx.fillStyle = c.soft;
  const m = chart.pitch * 2;
  for (const s of chart.sections) {
    if (s.box.x1 + m < to.box.x0 || s.box.x0 - m > to.box.x1 || s.box.y1 + m < to.box.y0 || s.box.y0 - m > to.box.y1) continue;
    for (const row of s.rows) {
      const n = row.seats.length;
      if (n < 2 || !row.label) continue;
      for (const [end, next] of [[row.seats[0], row.seats[1]], [row.seats[n - 1], row.seats[n - 2]]]) {
        const d = chart.distance(end, next) || 1;
        const out = chart.pitch * 0.82 / d;
        const x = chart.x[end] + (chart.x[end] - chart.x[next]) * out;
        const y = chart.y[end] + (chart.y[end] - chart.y[next]) * out;
        if (x < to.box.x0 - m || x > to.box.x1 + m || y < to.box.y0 - m || y > to.box.y1 + m) continue;
        ctx.fillText(row.label, (x - to.x0) * to.k, (y - to.y0) * to.k);
      }
    }
  }
}

export { PICKABLE, paintAreas, paintRowLabels, paintSectionLabels, paintShapes };
