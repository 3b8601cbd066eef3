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
const place = (number) => ({ ticket: "", number, from: 31415 });
const SCENES = {
  soon: { says: "Before anybody can join", frame: frame("draw", 0, { ...DRAW, joinsAt: minutes(60), waiting: 0 }), problem: { code: "queue_not_open" } },
  join: { says: "Anybody can join the draw", frame: frame("draw", 0, DRAW) },
  code: { says: "Who joins needs a code", frame: frame("draw", 0, { ...DRAW, asks: "code" }) },
  drawing: { says: "Takes part in the draw", frame: frame("draw", 0, DRAW), mine: { ticket: "", draw: true } },
  drawn: { says: "The draw is held, the line not open", frame: frame("closed", 0, { opensAt: minutes(5) }), mine: place(31415) },
  far: { says: "Far back in the line", frame: frame("open", 9e3), mine: place(31415) },
  near: { says: "Nearly there", frame: frame("open", 31295), mine: place(31415) },
  paused: { says: "Nobody is let in for the moment", frame: frame("paused", 2e4), mine: place(31415) },
  slowed: { says: "It goes slower than it should", frame: frame("open", 2e4, { slowed: "checkout", eta: { slow: 400, fast: 2e3 } }), mine: place(31415) },
  stalled: { says: "Nobody was called for a minute", frame: frame("open", 2e4, { eta: { slow: 0, fast: 4e3 } }), mine: place(31415) },
  turn: { says: "It is the fan’s turn", frame: frame("open", 31500), mine: place(31415), until: minutes(5) },
  over: { says: "Sold out, or ended", frame: frame("over", 4e4, { seatsLeft: 0 }), mine: place(51415) },
  offline: { says: "The connection is gone", frame: frame("open", 2e4), mine: place(31415), problem: { code: "offline" } }
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
