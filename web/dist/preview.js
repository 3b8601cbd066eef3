import { h, $ } from './dom.js';

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
const at = (number, serving) => ({ is: "placed", ticket: "", number, ahead: number - serving, from: 31415 });
const SCENES = {
  soon: { says: "Before anybody can join", frame: frame("draw", 0, { ...DRAW, joinsAt: minutes(10), waiting: 0 }) },
  join: { says: "Anybody can join the draw", frame: frame("draw", 0, DRAW) },
  code: { says: "Who joins needs a code", frame: frame("draw", 0, { ...DRAW, asks: "code" }) },
  drawing: { says: "Takes part in the draw", frame: frame("draw", 0, DRAW), mine: { is: "listed", ticket: "" } },
  drawn: { says: "The draw is held, the line not open", frame: frame("closed", 0, { opensAt: minutes(5) }), mine: at(31415, 0) },
  far: { says: "Far back in the line", frame: frame("open", 9e3), mine: at(31415, 9e3) },
  near: { says: "Nearly there", frame: frame("open", 31295), mine: at(31415, 31295) },
  paused: { says: "Nobody is let in for the moment", frame: frame("paused", 2e4), mine: at(31415, 2e4) },
  slowed: { says: "It goes slower than it should", frame: frame("open", 2e4, { slowed: "checkout", eta: { slow: 400, fast: 2e3 } }), mine: at(31415, 2e4) },
  stalled: { says: "Nobody was called for a minute", frame: frame("open", 2e4, { eta: { slow: 0, fast: 4e3 } }), mine: at(31415, 2e4) },
  turn: { says: "It is the fan’s turn", frame: frame("open", 31500), mine: { is: "inside", ticket: "", until: minutes(5) } },
  signin: { says: "The fan’s turn, and the session is over", frame: frame("open", 31500), mine: at(31415, 31415), problem: { code: "token_missing" } },
  ended: { says: "The time to choose seats is over", frame: frame("open", 39e3), mine: { is: "out", why: "spent" } },
  over: { says: "Sold out, or ended", frame: frame("over", 4e4, { seatsLeft: 0 }), mine: at(51415, 4e4) },
  missing: { says: "The ticket is missing on the list of the draw", frame: frame("open", 2e4), mine: { ...at(51415, 2e4), leftOut: true } },
  offline: { says: "The connection is gone", frame: frame("open", 2e4), mine: at(31415, 2e4), problem: { code: "offline" } }
};
const NOTE = "Preview: all of this is invented. Nobody waits here, nothing can be joined or bought, and no place is given.";
function preview(name, show) {
  const scene = SCENES[name];
  document.body.prepend(h("p", { id: "preview", role: "note" }, NOTE, " ", h("a", { href: "?preview" }, "All states")));
  $("name").textContent = "An invented evening";
  $("where").textContent = "A house that does not exist";
  document.addEventListener("click", (e) => {
    const inert = e.target.closest("main button, main a:not(#scenes a)");
    if (!inert) return;
    e.preventDefault();
    e.stopImmediatePropagation();
  }, true);
  if (scene) show(scene);
  else $("news").textContent = "What fans see in each state of the line:";
  $("enter").removeAttribute("href");
  const list = h("ul", { id: "scenes" }, ...Object.entries(SCENES).map(([key, { says }]) => h("li", {}, h("a", { href: `?preview=${key}`, "aria-current": key === name && "page" }, says))));
  document.querySelector("main")?.append(h("nav", { "aria-label": "States of this preview" }, list));
  document.title = `Preview: ${scene?.says ?? "the states of a line"}`;
}

export { SCENES, preview };
