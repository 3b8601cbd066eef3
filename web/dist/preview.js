import { h, $ } from './dom.js';
import { t } from './lang.js';
import { before } from './place.js';

const minutes = (n) => new Date(Date.now() + n * 6e4).toISOString();
const frame = (state, serving, more = {}) => ({
  n: 1,
  prev: 0,
  at: Date.now(),
  state,
  serving,
  rate: 4e3,
  pace: 4e3,
  slowed: null,
  waiting: 61234,
  inside: 18200,
  seatsLeft: 21034,
  eta: { slow: 3650, fast: 4e3 },
  joinsAt: minutes(-120),
  closesAt: minutes(-20),
  opensAt: minutes(-15),
  draw: { state: "drawn", tickets: 5e4 },
  since: 1,
  poll_after_ms: 5e3,
  ...more
});
const DRAW = { closesAt: minutes(25), opensAt: minutes(30), draw: { state: "announced", tickets: 41200 } };
const at = (number, serving) => ({ is: "placed", ticket: "", number, ahead: before(number, serving), from: 31415 });
const SCENES = {
  soon: { frame: frame("draw", 0, { ...DRAW, joinsAt: minutes(10), waiting: 0 }) },
  join: { frame: frame("draw", 0, DRAW) },
  code: { frame: frame("draw", 0, { ...DRAW, asks: "code" }) },
  drawing: { frame: frame("draw", 0, DRAW), mine: { is: "listed", ticket: "" } },
  drawn: { frame: frame("closed", 0, { opensAt: minutes(5) }), mine: at(31415, 0) },
  far: { frame: frame("open", 9e3), mine: at(31415, 9e3) },
  near: { frame: frame("open", 31295), mine: at(31415, 31295) },
  paused: { frame: frame("paused", 2e4), mine: at(31415, 2e4) },
  slowed: { frame: frame("open", 2e4, { slowed: "checkout", eta: { slow: 400, fast: 2e3 } }), mine: at(31415, 2e4) },
  stalled: { frame: frame("open", 2e4, { eta: { slow: 0, fast: 4e3 } }), mine: at(31415, 2e4) },
  turn: { frame: frame("open", 31500), mine: { is: "inside", ticket: "", until: minutes(5) } },
  signin: { frame: frame("open", 31500), mine: at(31415, 31415), problem: { code: "token_missing" } },
  ended: { frame: frame("open", 39e3), mine: { is: "out", why: "spent" } },
  over: { frame: frame("over", 4e4, { seatsLeft: 0 }), mine: at(51415, 4e4) },
  missing: { frame: frame("open", 2e4), mine: { ...at(51415, 2e4), leftOut: true } },
  offline: { frame: frame("open", 2e4), mine: at(31415, 2e4), problem: { code: "offline" } }
};
function preview(name, show) {
  const { preview: words } = t;
  const known = Object.hasOwn(SCENES, name) ? name : null;
  document.body.prepend(h("aside", { id: "preview" }, words.note, " ", h("a", { href: "?preview" }, words.all)));
  $("name").textContent = words.name;
  $("where").textContent = words.venue;
  document.addEventListener("click", (e) => {
    const inert = e.target.closest("main button, main a:not(#scenes a)");
    if (!inert) return;
    e.preventDefault();
    e.stopImmediatePropagation();
  }, true);
  if (known) show(SCENES[known]);
  else $("news").textContent = words.which;
  $("enter").removeAttribute("href");
  const list = h("ul", { id: "scenes" }, ...Object.entries(words.scenes).map(([key, says]) => h("li", {}, h("a", { href: `?preview=${key}`, "aria-current": key === name && "page" }, says))));
  document.querySelector("main")?.append(h("nav", { "aria-label": words.states }, list));
  document.title = words.title(known ? words.scenes[known] : words.none);
}

export { SCENES, preview };
