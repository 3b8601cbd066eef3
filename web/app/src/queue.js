// The page of a line: your place, how long it may take, and when it is your turn.
// It is the same for everybody; what is yours comes from one call.

import { Api, Problem } from './api.js';
import { Check } from './check.js';
import { Clock } from './clock.js';
import { $ } from './dom.js';
import { shardOf } from './draw.js';
import { prove } from './gate.js';
import { Keep, range, slower } from './line.js';
import { Session } from './session.js';
import { count, number, sentence, when } from './words.js';

const event = decodeURIComponent(location.pathname.split('/')[2] ?? '');
const base = `/v1/queue/${encodeURIComponent(event)}`;
const api = new Api(new Clock(), new Session());
const keep = new Keep(event);
const check = new Check(base, keep);

let zone = 'UTC';
let name = 'Seatcast';
let frame = null;
let mine = null; // what the server says this account has
let shown = Infinity; // how many were before it: never more again
let inside = false;
let leftOut = false; // of the list of the draw
let audio = null;

const busy = new Set(); // steps that are being taken
const due = new Map(); // steps that are taken again -> their timer

/** later takes a step again, once, whatever asks for it. */
function later(step, ms) {
  cancel(step);
  due.set(step, setTimeout(() => { due.delete(step); step(); }, ms));
}

function cancel(step) {
  clearTimeout(due.get(step));
  due.delete(step);
}

/** once makes a step that does nothing while it is taken. What failed is tried again when that may do. */
function once(take) {
  const step = async () => {
    if (busy.has(step)) return;
    busy.add(step);
    cancel(step);
    try {
      await take();
      trouble(step, '');
    } catch (p) {
      failed(p, step);
    } finally {
      busy.delete(step);
    }
  };
  return step;
}

/** hear takes a frame in; one that is older than what we have says nothing. */
function hear(f) {
  if (frame && f.n <= frame.n) return;
  const lost = frame?.since && f.since && f.since !== frame.since; // the server knows of us only what we bring
  frame = f;
  if (lost && mine && !inside) later(join, 5000 * Math.random()); // not all at once
  if (drawn() && !due.has(learnRank)) later(learnRank, 1000 * Math.random());
  if (expiring()) join();
  draw();
  if (ready() && !due.has(ask)) ask();
}

const ready = () => !inside && frame?.state === 'open' && mine?.number > 0 && mine.number <= frame.serving;
const drawn = () => Boolean(mine?.draw) && frame?.draw?.state === 'drawn';

let renewAt = null;

/**
 * expiring says, once, that the list closes soon: what a server has lost of it since we
 * joined is on it again when we join again.
 */
function expiring() {
  if (frame.state !== 'draw' || !mine?.draw) return false;
  const closes = Date.parse(frame.closesAt);
  renewAt ??= closes - 15000 - Math.random() * Math.min(120000, (closes - frame.at) / 2); // a frame comes every ten seconds
  if (frame.at < renewAt) return false;
  renewAt = Infinity;
  return true;
}

const code = /** @type {HTMLInputElement} */ ($('code'));

/** brought is what a join brings: the place that is kept, which may be another account's, a code, or a proof. */
async function brought(afresh) {
  const place = keep.place?.place;
  const typed = code.value.trim();
  const shown = !typed && (afresh || frame?.asks === 'proof' && !place) ? await proof() : {};
  return { ...(place && { place }), ...(typed && { code: typed }), ...shown };
}

/** proof has the browser do the work, or waits, and shows how far it is. */
async function proof() {
  const box = $('proof');
  const instead = $('proof-wait');
  const rather = new Promise((done) => { instead.onclick = () => done(); });
  const quarters = ['begun', 'a quarter done', 'half done', 'nearly done', 'done'];
  try {
    return await prove(api, base, (kind, part) => {
      box.hidden = false;
      instead.hidden = kind === 'wait';
      const now = quarters[Math.min(4, Math.floor(part * 4))];
      const text = kind === 'wait' ? `A moment's wait before you join: ${now}.` : `A short check that your browser does by itself: ${now}.`;
      if ($('proof-text').textContent !== text) $('proof-text').textContent = text; // it is read out
      /** @type {HTMLProgressElement} */ ($('proof-bar')).value = 100 * part;
    }, rather);
  } finally {
    box.hidden = true;
  }
}

/** wrong says why a code will not do; nothing when it is empty. */
function wrong(text) {
  $('code-error').textContent = text;
  if (text) {
    code.setAttribute('aria-invalid', 'true');
    $('code-field').hidden = false;
    code.focus();
  } else {
    code.removeAttribute('aria-invalid');
  }
}

const unproved = ['proof_required', 'bad_proof', 'proof_expired', 'proof_used'];

const post = async (afresh) => api.call('POST', base, { body: await brought(afresh) });

/** bring joins, and once more with a new proof when that is what was missing. */
async function bring() {
  try {
    return await post(false);
  } catch (p) {
    if (!unproved.includes(p.code)) throw p;
    return post(true);
  }
}

/** brings is bring of who may have typed a code: what is wrong with it is said at its field. */
async function brings() {
  wrong('');
  try {
    return await bring();
  } catch (p) {
    if (!['code_required', 'bad_code', 'code_used'].includes(p.code)) throw p;
    wrong(sentence(p));
    return null;
  }
}

const join = once(async () => {
  let got = await brings();
  if (!got) return;
  if (keep.is(got.ticket)) { // another account's place was shown
    shown = Infinity;
    if (keep.place) got = await bring();
  }
  mine = got;
  const kept = keep.place;
  const from = kept && kept.number === got.number ? kept.from : Math.max(1, (got.number ?? 0) - (frame?.serving ?? 0));
  if (got.place) keep.place = { place: got.place, number: got.number, from };
  if (got.place && got.draw) keep.give(got.ticket, got.place, got.announcement);
  draw();
  if (drawn()) learnRank();
  if (got.insideUntil || ready()) ask();
});

/** learnRank looks the place up in the published draw: nobody is asked who we are. */
const learnRank = once(async () => {
  const me = mine;
  if (!drawn() || leftOut) return;
  const d = await api.get(`${base}/draw`);
  if (!d.key) { // it is a cache's, of before the draw
    later(learnRank, 2000);
    return;
  }
  const shard = await api.get(`${base}/draw/shards/${shardOf(me.ticket, d.tickets)}?key=${d.key}`);
  if (mine !== me) return;
  const found = shard.tickets.find(([ticket]) => ticket === me.ticket);
  if (!found) {
    leftOut = true;
    join();
  } else {
    mine = { ...me, draw: false, number: found[2] };
    keep.place = { ...keep.place, number: mine.number, from: Math.max(1, mine.number - frame.serving) };
  }
  draw();
});

/** ask asks for the pass, again and again while it is our turn. */
const ask = once(async () => {
  while (mine && !inside) {
    const got = await api.call('POST', `${base}/pass`, { body: { place: keep.place?.place ?? '' } });
    if (got.pass && mine) enter(got);
    if (got.pass || got.number) return; // not called after all: a frame will say so
    await new Promise((done) => setTimeout(done, 1000 + 1000 * Math.random()));
  }
});

function enter({ pass, expiresAt }) {
  keep.pass = pass;
  welcome(expiresAt);
}

function welcome(expiresAt) {
  inside = true;
  const go = /** @type {HTMLAnchorElement} */ ($('enter'));
  go.href = `/events/${encodeURIComponent(event)}`;
  go.hidden = false;
  document.title = `It is your turn: ${name}`;
  news(`It is your turn. You have until ${when(expiresAt, zone)}.`);
  if (/** @type {HTMLInputElement} */ ($('sound')).checked) beep();
  draw();
  go.focus();
}

/** listen lets the page make a sound later: a browser wants to be asked by a hand. */
function listen() {
  audio ??= new AudioContext();
  audio.resume();
}

function beep() {
  const tone = audio.createOscillator();
  tone.connect(audio.destination);
  tone.start();
  tone.stop(audio.currentTime + 0.4);
}

/** failed says what went wrong, and tries again what may succeed a moment later. */
function failed(p, step) {
  if (!(p instanceof Problem)) throw p;
  if (p.code === 'no_place') {
    mine = null;
    if (keep.place) { // it is lost here, and we have it
      later(join, 500 + 1000 * Math.random());
      draw();
      return;
    }
  }
  draw();
  if (p.code !== 'token_missing' && !told.has(p.code)) trouble(step, sentence(p));
  if (p.passing || p.retryAfter > 0) later(step, p.retryAfter || 3000);
}

const told = new Set(['queue_paused', 'queue_over', 'not_drawn']); // by the frame

const troubles = new Map(); // step -> what is wrong with it

/** trouble says what is wrong with a step, until it is right. */
function trouble(step, text) {
  if (text) troubles.set(step, text);
  else troubles.delete(step);
  const [last = ''] = [...troubles.values()].reverse();
  $('trouble').hidden = !last;
  if ($('trouble').textContent !== last) $('trouble').textContent = last;
}

let said = '';

function news(text) {
  if (text !== said) $('news').textContent = said = text;
}

const states = {
  draw: () => (mine ? 'You take part in the draw.' : 'Whoever joins now takes part in the draw.'),
  closed: () => `The line opens ${when(frame.opensAt, zone)}.`,
  open: () => (mine ? 'Stay here: we tell you when it is your turn.' : 'The line is open.'),
  paused: () => 'Nobody is let in for the moment. Your place is kept.',
  over: () => 'Nobody is let in any more.',
};

function draw() {
  if (!frame) return;
  if (!inside) news(states[frame.state]());
  const over = frame.state === 'over';
  const placed = mine?.number > 0 && !inside && !over;
  $('mine').hidden = !placed;
  if (placed) place();
  $('left-out').hidden = !leftOut;
  $('left').textContent = over ? '' : `${count(frame.seatsLeft, 'seat')} left, ${number(frame.waiting)} waiting`;
  $('join').hidden = Boolean(mine) || over;
  $('code-field').hidden = Boolean(mine) || over || !frame.asks && !code.hasAttribute('aria-invalid');
  $('code-label').textContent = frame.asks === 'proof' ? 'Your code, if you have one' : 'Your code';
  $('leave').hidden = !mine || inside || over;
  $('sound-label').hidden = !mine || inside || over;
  check.offer(frame.draw?.state === 'drawn' ? mine : null);
}

function place() {
  shown = Math.min(shown, Math.max(0, mine.number - frame.serving));
  $('ahead').textContent = number(shown);
  $('ahead-text').textContent = shown === 1 ? 'is before you' : 'are before you';
  const from = Math.max(mine.from ?? keep.place?.from ?? 1, 1);
  /** @type {HTMLProgressElement} */ ($('progress')).value = 100 * (1 - Math.min(1, shown / from));
  const r = frame.state === 'open' && shown > 0 ? range(shown, frame.eta) : null;
  $('wait').textContent = !r ? '' : r.to === null ? 'How long it takes nobody knows at the moment.'
    : r.from === r.to ? `About ${count(r.to, 'minute')}.` : `Between ${number(r.from)} and ${count(r.to, 'minute')}.`;
  $('slowed').textContent = frame.state === 'open' && shown > 0 ? slower(frame.slowed) : '';
  if (!inside) document.title = `${number(shown)} before you: ${name}`;
}

const leave = once(async () => {
  await api.call('DELETE', `${base}/me`);
  for (const step of [join, ask, learnRank]) cancel(step);
  keep.place = null;
  mine = null;
  shown = Infinity;
  document.title = name;
  draw();
});

const SILENCE = 25000; // ms: a frame is due every ten seconds

/** watch follows the line; where streams do not work it is polled. A stream that says nothing is as good as none. */
function watch() {
  const stream = new EventSource(`${base}/live`);
  const again = (ms) => {
    stream.close();
    look();
    later(watch, ms);
  };
  let silence = 0;
  const heard = () => {
    clearTimeout(silence);
    silence = setTimeout(again, SILENCE * (1 + Math.random() / 2), 0);
  };
  const on = (e) => { heard(); hear(JSON.parse(e.data)); };
  stream.addEventListener('snapshot', on);
  stream.addEventListener('delta', on);
  stream.addEventListener('error', () => {
    if (stream.readyState !== EventSource.CLOSED) return;
    clearTimeout(silence);
    again((frame?.poll_after_ms ?? 5000) * (0.75 + Math.random() / 2));
  });
  heard();
}

const look = once(async () => hear(await api.get(base)));

/** act shows an invented scene. */
function act({ frame: f, mine: m = null, until, problem }) {
  frame = f;
  mine = m;
  draw();
  if (until) welcome(until);
  if (problem) trouble(act, sentence(problem));
}

async function main() {
  const scene = new URLSearchParams(location.search).get('preview');
  if (scene !== null) {
    (await import('./preview.js')).preview(scene, act);
    return;
  }
  $('join').onclick = join;
  code.onkeydown = (e) => { if (e.key === 'Enter') join(); };
  $('leave').onclick = leave;
  $('sound').onchange = listen;
  document.addEventListener('visibilitychange', async () => { // a phone that was asleep
    if (document.visibilityState !== 'visible') return;
    await look();
    if (mine && !inside) join();
  });
  api.get(`/v1/events/${encodeURIComponent(event)}`).then((e) => {
    ({ name, zone } = e);
    document.title = name;
    $('name').textContent = name;
    $('where').textContent = `${e.venue}, ${when(e.startsAt, zone)}`;
    draw();
  }, () => {}); // the line is what matters
  watch();
  await look();
  if (keep.place) join();
}

main();
