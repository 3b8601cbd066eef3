// The page of a line: your place, how long it may take, and when it is your turn.
// It is the same for everybody; what is yours comes from one call.

import { Api, Problem } from './api.js';
import { Clock } from './clock.js';
import { $ } from './dom.js';
import { Keep, range, shardOf } from './line.js';
import { Session } from './session.js';
import { count, number, sentence, when } from './words.js';

const event = decodeURIComponent(location.pathname.split('/')[2] ?? '');
const base = `/v1/queue/${encodeURIComponent(event)}`;
const api = new Api(new Clock(), new Session());
const keep = new Keep(event);

let zone = 'UTC';
let name = 'Seatcast';
let frame = null;
let mine = null; // what the server says this account has
let shown = Infinity; // how many were before it: never more again
let asking = false; // for a pass
let inside = false;

/** hear takes a frame in; one that is older than what we have says nothing. */
function hear(f) {
  if (frame && f.n <= frame.n) return;
  const drawn = f.draw?.state === 'drawn' && frame?.draw?.state !== 'drawn';
  frame = f;
  if (drawn && mine?.draw) learnRank();
  draw();
  if (mine && ready()) ask();
}

const ready = () => !inside && frame?.state === 'open' && mine.number > 0 && mine.number <= frame.serving;

async function join() {
  const kept = keep.place;
  try {
    const got = await api.call('POST', base, { body: kept?.place ? { place: kept.place } : {} });
    mine = got;
    const from = kept && kept.number === got.number ? kept.from : Math.max(1, (got.number ?? 0) - (frame?.serving ?? 0));
    if (got.place) keep.place = { place: got.place, number: got.number, from };
    if (got.draw && frame?.draw?.state === 'drawn') await learnRank();
    draw();
    if (got.insideUntil || ready()) ask();
  } catch (p) {
    failed(p, join);
  }
}

/** learnRank looks the place up in the published draw: nobody is asked who we are. */
async function learnRank() {
  try {
    const d = await api.get(`${base}/draw`);
    const shard = await api.get(`${base}/draw/shards/${shardOf(mine.ticket, d.tickets)}`);
    const found = shard.tickets.find(([ticket]) => ticket === mine.ticket);
    if (found) {
      mine = { ...mine, draw: false, number: found[2] };
      keep.place = { ...keep.place, number: mine.number, from: Math.max(1, mine.number - frame.serving) };
    }
    draw();
  } catch (p) {
    failed(p, learnRank);
  }
}

/** ask asks for the pass, again and again while it is our turn. */
async function ask() {
  if (asking) return;
  asking = true;
  try {
    for (;;) {
      const got = await api.call('POST', `${base}/pass`, { body: { place: keep.place?.place ?? '' } });
      if (got.pass) {
        enter(got);
        return;
      }
      if (got.number) return; // not called after all: a frame will say so
      await new Promise((done) => setTimeout(done, 1000 + 1000 * Math.random()));
    }
  } catch (p) {
    failed(p, ask);
  } finally {
    asking = false;
  }
}

function enter({ pass, expiresAt }) {
  keep.pass = pass;
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

function beep() {
  const audio = new AudioContext();
  const tone = audio.createOscillator();
  tone.connect(audio.destination);
  tone.start();
  tone.stop(audio.currentTime + 0.4);
}

/** failed says what went wrong, and tries again what may succeed a moment later. */
function failed(p, again) {
  if (!(p instanceof Problem)) throw p;
  if (p.code === 'no_place') {
    mine = null;
    keep.place = null;
  }
  draw();
  if (p.code !== 'token_missing') news(sentence(p));
  if (p.passing || p.retryAfter > 0) setTimeout(again, p.retryAfter || 3000);
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
  $('left').textContent = over ? '' : `${count(frame.seatsLeft, 'seat')} left, ${number(frame.waiting)} waiting`;
  $('join').hidden = Boolean(mine) || over;
  $('leave').hidden = !mine || inside || over;
  $('sound-label').hidden = !mine || inside || over;
}

function place() {
  shown = Math.min(shown, Math.max(0, mine.number - frame.serving));
  $('ahead').textContent = number(shown);
  $('ahead-text').textContent = shown === 1 ? 'is before you' : 'are before you';
  const from = Math.max(keep.place?.from ?? 1, 1);
  /** @type {HTMLProgressElement} */ ($('progress')).value = 100 * (1 - Math.min(1, shown / from));
  const r = frame.state === 'open' && shown > 0 ? range(shown, frame.eta) : null;
  $('wait').textContent = !r ? '' : r.to === null ? 'How long it takes nobody knows at the moment.'
    : r.from === r.to ? `About ${count(r.to, 'minute')}.` : `Between ${number(r.from)} and ${count(r.to, 'minute')}.`;
  if (!inside) document.title = `${number(shown)} before you: ${name}`;
}

async function leave() {
  try {
    await api.call('DELETE', `${base}/me`);
    keep.place = null;
    mine = null;
    shown = Infinity;
    document.title = name;
    draw();
  } catch (p) {
    failed(p, leave);
  }
}

/** watch follows the line; where streams do not work it is polled. */
function watch() {
  const stream = new EventSource(`${base}/live`);
  const on = (e) => hear(JSON.parse(e.data));
  stream.addEventListener('snapshot', on);
  stream.addEventListener('delta', on);
  stream.addEventListener('error', async () => {
    if (stream.readyState !== EventSource.CLOSED) return;
    await look();
    setTimeout(watch, (frame?.poll_after_ms ?? 5000) * (0.75 + Math.random() / 2));
  });
}

async function look() {
  try {
    hear(await api.get(base));
  } catch (p) {
    failed(p, look);
  }
}

async function main() {
  $('join').onclick = join;
  $('leave').onclick = leave;
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
  await look();
  if (keep.place) await join();
  watch();
}

main();
