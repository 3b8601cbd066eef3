// The map of a stadium, to be measured from outside: load() draws it with SeatMap
// ("canvas") or Points ("webgl"), ready() prepares a step of a phase and step() takes
// it. Frames are asked for and drawn by hand, so that a step is all the script of one
// frame and nothing else.

import { Points } from './webgl.js';

const CHANGES = 1000;
const SIZE = [1280, 800];

const turn = window.requestAnimationFrame.bind(window);
const rest = () => new Promise((done) => { turn(() => turn(done)); });

let wanted = null; // the frame the map has asked for
window.requestAnimationFrame = (f) => { wanted = f; return 1; };
window.cancelAnimationFrame = () => { wanted = null; };

/** flush draws the frame that was asked for, if one was. */
function flush(at = performance.now()) {
  const f = wanted;
  wanted = null;
  f?.(at);
  return f !== null;
}

function surface() {
  const canvas = document.createElement('canvas');
  Object.assign(canvas.style, { position: 'fixed', inset: 0, width: `${SIZE[0]}px`, height: `${SIZE[1]}px` });
  [canvas.width, canvas.height] = SIZE;
  document.body.append(canvas);
  return canvas;
}

const nothing = { sells: (s) => ({ wanted: true, left: `${s.seats} free`, from: 'from €45' }), holds: () => ({ wanted: true, left: '', from: '' }) };

/** ours drives SeatMap by what a shopper does to its canvas. */
async function ours(use, state) {
  const [{ SeatMap }, { Filter }] = await Promise.all([use('map.js'), use('filter.js')]);
  const canvas = surface();
  const map = new SeatMap({ canvas, above: surface(), overview: surface() }, { events: { seat() {}, area() {}, hover() {}, here() {}, shapes() {} }, sells: nothing, filter: new Filter() });
  await rest(); // it learns its size
  return {
    show: () => { map.show(state); while (flush()); },
    changed: (seats) => { map.changed(seats, true); flush(); },
    near: (i) => { map.reveal(i); flush(); flush(performance.now() + 1000); },
    pan: (dx) => { canvas.dispatchEvent(new KeyboardEvent('keydown', { key: dx > 0 ? 'ArrowRight' : 'ArrowLeft' })); flush(); },
    zoom: (by) => { canvas.dispatchEvent(new WheelEvent('wheel', { deltaY: -Math.log(by) / 0.0022, clientX: SIZE[0] / 2, clientY: SIZE[1] / 2, cancelable: true })); flush(); },
    whole: () => { map.fit(); flush(); flush(performance.now() + 1000); while (flush(performance.now() + 3000)); },
  };
}

async function theirs(use, state) {
  const [legend, paint, { View }, { Labels }, { Rows }] = await Promise.all(['legend.js', 'paint.js', 'view.js', 'labels.js', 'rows.js'].map(use));
  const { chart } = state;
  const [canvas, words] = [surface(), surface()];
  const view = Object.assign(new View(), { width: SIZE[0], height: SIZE[1] });
  view.bounds(chart);
  let points;
  const to = (aim) => { view.set(aim); points.draw(view); };
  return {
    show: () => {
      const painter = new paint.Painter(chart, paint.theme(document.body));
      points = new Points(canvas, words, { chart, state, painter, legend, labels: new Labels(chart, painter), rows: new Rows(chart, painter), sells: nothing.sells });
      to(view.whole());
    },
    changed: () => { points.changed(); points.draw(view); },
    near: (i) => to({ x: chart.x[i], y: chart.y[i], k: 26 / chart.pitch }),
    pan: (dx) => to(view.panned(-dx, 0)),
    zoom: (by) => to(view.zoomed(SIZE[0] / 2, SIZE[1] / 2, by)),
    whole: () => to(view.whole()),
  };
}

/** frame is 1,000 changes as the server sends them: free seats of the list are held, held ones given back. */
function frame(state, seats) {
  const free = seats.filter((i) => state.status[i] === 0);
  const held = seats.filter((i) => state.status[i] === 1);
  return JSON.stringify({ n: 1, prev: 0, at: 1, reserved: free, released: held, booked: [], closed: [], areas: {} });
}

/** some are so many seats of a list, at random but the same in each run. */
function some(list, seed) {
  const picked = new Set();
  for (let s = seed; picked.size < Math.min(CHANGES, list.length); s = (s * 1664525 + 1013904223) % 4294967296) picked.add(list[s % list.length]);
  return [...picked];
}

/** load shows the map, and returns how long that took from when its chart was asked for, in milliseconds. */
export async function load(base, renderer) {
  const use = (name) => import(new URL(name, base));
  const [{ Chart }, { State }, { View }] = await Promise.all([use('chart.js'), use('state.js'), use('view.js')]);
  const began = performance.now();
  const json = await (await fetch('/v1/charts/c1.json')).json();
  const state = new State(new Chart('c1', json));
  state.snapshot({ n: 1, map: btoa('\0'.repeat(json.seats / 4)), areas: {} });
  const map = await (renderer === 'webgl' ? theirs : ours)(use, state);
  map.show();
  await rest();
  const first = performance.now() - began;

  const { chart } = state;
  const everywhere = [...Array(chart.size).keys()];
  const seat = chart.sections[0].rows[10].seats[10];
  const view = Object.assign(new View(), { width: SIZE[0], height: SIZE[1], x: chart.x[seat], y: chart.y[seat], k: 26 / chart.pitch });
  const around = [];
  chart.within(view.box(), (i) => around.push(i));
  const changes = (of) => (n) => {
    const text = frame(state, some(of, n + 1));
    return () => map.changed(state.delta(JSON.parse(text)));
  };
  const phases = {
    'frame far': { begin: map.whole, step: changes(everywhere) },
    'frame near': { begin: () => map.near(seat), step: changes(around) },
    'pan near': { begin: () => map.near(seat), step: (n) => () => map.pan(n % 20 < 10 ? 80 : -80) },
    'pan between': { begin: () => { map.near(seat); for (let n = 0; n < 6; n++) map.zoom(1 / 1.2); }, step: (n) => () => map.pan(n % 20 < 10 ? 80 : -80) },
    zoom: { begin: () => map.near(seat), step: (n) => () => map.zoom(n % 40 < 20 ? 1 / 1.2 : 1.2) },
    'frame far again': { begin: map.whole, step: changes(everywhere) }, // with all pictures that are kept
  };
  let next;
  window.ready = async (phase, n) => {
    if (n === 0) phases[phase].begin();
    next = phases[phase].step(n);
    await rest();
  };
  const { port1, port2 } = new MessageChannel(); // a browser counts what it calls itself, and not what a debugger runs
  window.step = () => new Promise((done) => {
    port1.onmessage = () => done(next());
    port2.postMessage(null);
  });
  return first;
}
