import { ACCESSIBLE, COMPANION, BREAK } from './chart.js';

const SPACE = ACCESSIBLE | COMPANION;
function near(chart, chosen, free, orphans) {
  const byCategory = /* @__PURE__ */ new Map();
  for (const i of chosen) byCategory.set(chart.category[i], [...byCategory.get(chart.category[i]) ?? [], i]);
  const seats = [];
  for (const group of byCategory.values()) {
    if (group.every(free)) {
      seats.push(...group);
      continue;
    }
    const run = runs(chart, group).length === 1 && !group.some((i) => chart.flags[i] & SPACE) ? nearestRun(chart, group, free, orphans) : null;
    const found = run ?? scattered(chart, group, free);
    if (!found) return null;
    seats.push(...found);
  }
  return { seats, together: haveRoom(runs(chart, chosen), runs(chart, seats)) };
}
function runs(chart, seats) {
  const rows = new Set(seats.flatMap((i) => chart.sections[chart.section[i]].rows.filter((r) => r.seats.includes(i))));
  const all = [];
  for (const row of rows) {
    let run = 0;
    for (const i of row.seats) {
      const ours = seats.includes(i);
      if (run && (!ours || chart.flags[i] & BREAK)) {
        all.push(run);
        run = 0;
      }
      if (ours) run++;
    }
    if (run) all.push(run);
  }
  return all.sort((a, b) => b - a);
}
function haveRoom(wanted, found) {
  const left = [...found];
  for (const run of wanted) {
    const k = left.findLastIndex((room) => room >= run);
    if (k < 0) return false;
    left[k] -= run;
    left.sort((a, b) => b - a);
  }
  return true;
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
