import { ACCESSIBLE, COMPANION, BREAK } from './chart.js';

const SPACE = ACCESSIBLE | COMPANION;
function near(chart, chosen, free, orphans) {
  const byCategory = /* @__PURE__ */ new Map();
  for (const i of chosen) byCategory.set(chart.category[i], [...byCategory.get(chart.category[i]) ?? [], i]);
  const seats = [];
  let together = true;
  for (const group of byCategory.values()) {
    if (group.every(free)) {
      seats.push(...group);
      continue;
    }
    const beside = sideBySide(chart, group);
    const run = beside && !group.some((i) => chart.flags[i] & SPACE) ? nearestRun(chart, group, free, orphans) : null;
    const found = run ?? scattered(chart, group, free);
    if (!found) return null;
    together &&= !beside || run !== null || sideBySide(chart, found);
    seats.push(...found);
  }
  return { seats, together };
}
function sideBySide(chart, seats) {
  const row = chart.sections[chart.section[seats[0]]].rows.find((r) => r.seats.includes(seats[0])).seats;
  const at = seats.map((i) => row.indexOf(i)).sort((a, b) => a - b);
  return at[0] >= 0 && at.every((n, k) => k === 0 || n === at[k - 1] + 1 && !(chart.flags[row[n]] & BREAK));
}
function nearestRun(chart, like, free, orphans) {
  const category = chart.category[like[0]];
  const sections = new Set(like.map((i) => chart.section[i]));
  const x = like.reduce((sum, i) => sum + chart.x[i], 0) / like.length;
  const y = like.reduce((sum, i) => sum + chart.y[i], 0) / like.length;
  let best = null;
  for (const section of chart.sections) {
    for (const row of section.rows) {
      for (const open of stretches(chart, row.seats, free)) {
        for (let from = 0; from + like.length <= open.length; from++) {
          const seats = open.slice(from, from + like.length);
          if (seats.some((i) => chart.category[i] !== category)) continue;
          const [before, after] = [from, open.length - from - like.length];
          const orphan = orphans !== "allow" && (before === 1 || after === 1) && before + after > 1;
          if (orphan && orphans === "refuse") continue;
          const [a, b] = [seats[0], seats[seats.length - 1]];
          const distance = Math.hypot((chart.x[a] + chart.x[b]) / 2 - x, (chart.y[a] + chart.y[b]) / 2 - y);
          const cost = [sections.has(section.index) ? 0 : 1, orphan ? 1 : 0, distance];
          if (!best || less(cost, best.cost)) best = { seats, cost };
        }
      }
    }
  }
  return best?.seats ?? null;
}
function stretches(chart, row, free) {
  const all = [];
  let open = [];
  for (const i of row) {
    const usable = free(i) && !(chart.flags[i] & SPACE);
    if ((!usable || chart.flags[i] & BREAK) && open.length) {
      all.push(open);
      open = [];
    }
    if (usable) open.push(i);
  }
  return open.length ? [...all, open] : all;
}
function scattered(chart, like, free) {
  const found = like.filter(free);
  for (const lost of like.filter((i) => !free(i))) {
    let best = -1;
    let least = [];
    for (let i = 0; i < chart.size; i++) {
      if (chart.category[i] !== chart.category[lost] || chart.section[i] < 0 || !free(i) || (chart.flags[i] ^ chart.flags[lost]) & SPACE || found.includes(i)) continue;
      const cost = [chart.section[i] === chart.section[lost] ? 0 : 1, chart.distance(i, lost)];
      if (best < 0 || less(cost, least)) [best, least] = [i, cost];
    }
    if (best < 0) return null;
    found.push(best);
  }
  return found;
}
function less(a, b) {
  const n = a.findIndex((v, k) => v !== b[k]);
  return n >= 0 && a[n] < b[n];
}

export { near };
