// The page of a line: your place, how long it may take, and when it is your turn.
// It is the same for everybody; what is yours comes from one call.

import { Api, problem } from './api';
import { Check } from './check';
import { Clock } from './clock';
import { $ } from './dom';
import { shardOf } from './draw';
import { prove } from './gate';
import { Keep, range, slower, type Mine } from './line';
import type { Scene } from './preview';
import { Session } from './session';
import type * as wire from './wire';
import { count, number, sentence, when } from './words';

const event = decodeURIComponent(location.pathname.split('/')[2] ?? '');
const base = `/v1/queue/${encodeURIComponent(event)}`;
const api = new Api(new Clock(), new Session());
const keep = new Keep(event);
const check = new Check(base, keep);

let zone = 'UTC';
let name = 'Seatcast';
let frame: wire.Line | null = null;
let mine: Mine | null = null; // what the server says this account has
let shown = Infinity; // how many were before it: never more again
let inside = false;
let leftOut = false; // of the list of the draw
let audio: AudioContext | null = null;

/** Step is something the page does, again and again where it must. */
type Step = () => unknown;

const busy = new Set<Step>(); // steps that are being taken
const due = new Map<Step, number>(); // steps that are taken again -> their timer

/** later takes a step again, once, whatever asks for it. */
function later(step: Step, ms: number): void {
  cancel(step);
  due.set(step, setTimeout(() => { due.delete(step); step(); }, ms));
}

function cancel(step: Step): void {
  clearTimeout(due.get(step));
  due.delete(step);
}

/** once makes a step that does nothing while it is taken. What failed is tried again when that may do. */
function once(take: () => Promise<void>): () => Promise<void> {
  const step = async () => {
    if (busy.has(step)) return;
    busy.add(step);
    cancel(step);
    try {
      await take();
      trouble(step, '');
    } catch (err) {
      failed(err, step);
    } finally {
      busy.delete(step);
    }
  };
  return step;
}

/** hear takes a frame in; one that is older than what we have says nothing. */
function hear(f: wire.Line): void {
  if (frame && f.n <= frame.n) return;
  const lost = frame?.since && f.since && f.since !== frame.since; // the server knows of us only what we bring
  frame = f;
  if (lost && mine && !inside) later(join, 5000 * Math.random()); // not all at once
  if (drawn() && !due.has(learnRank)) later(learnRank, 1000 * Math.random());
  if (expiring(f)) join();
  draw();
  if (ready() && !due.has(ask)) ask();
}

const ready = () => !inside && frame?.state === 'open' && placed() > 0 && placed() <= frame.serving;
const placed = () => mine?.number ?? 0; // 0: there is no number yet
const drawn = () => Boolean(mine?.draw) && frame?.draw?.state === 'drawn';

let renewAt: number | null = null;

/**
 * expiring says, once, that the list closes soon: what a server has lost of it since we
 * joined is on it again when we join again.
 */
function expiring(f: wire.Line): boolean {
  if (f.state !== 'draw' || !mine?.draw || !f.closesAt) return false;
  const closes = Date.parse(f.closesAt);
  renewAt ??= closes - 15000 - Math.random() * Math.min(120000, (closes - f.at) / 2); // a frame comes every ten seconds
  if (f.at < renewAt) return false;
  renewAt = Infinity;
  return true;
}

const code = $<HTMLInputElement>('code');

/** brought is what a join brings: the place that is kept, which may be another account's, a code, or a proof. */
async function brought(afresh: boolean): Promise<wire.Join> {
  const place = keep.place?.place;
  const typed = code.value.trim();
  const shown = !typed && (afresh || frame?.asks === 'proof' && !place) ? await proof() : {};
  return { ...(place && { place }), ...(typed && { code: typed }), ...shown };
}

/** proof has the browser do the work, or waits, and shows how far it is. */
async function proof(): Promise<wire.Join> {
  const box = $('proof');
  const instead = $('proof-wait');
  const rather = new Promise<void>((done) => { instead.onclick = () => done(); });
  const quarters = ['begun', 'a quarter done', 'half done', 'nearly done', 'done'];
  try {
    return await prove(api, base, (kind, part) => {
      box.hidden = false;
      instead.hidden = kind === 'wait';
      const now = quarters[Math.min(4, Math.floor(part * 4))];
      const text = kind === 'wait' ? `A moment's wait before you join: ${now}.` : `A short check that your browser does by itself: ${now}.`;
      if ($('proof-text').textContent !== text) $('proof-text').textContent = text; // it is read out
      $<HTMLProgressElement>('proof-bar').value = 100 * part;
    }, rather);
  } finally {
    box.hidden = true;
  }
}

/** wrong says why a code will not do; nothing when it is empty. */
function wrong(text: string): void {
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

const post = async (afresh: boolean) => api.call<wire.Place>('POST', base, { body: await brought(afresh) });

/** bring joins, and once more with a new proof when that is what was missing. */
async function bring(): Promise<wire.Place> {
  try {
    return await post(false);
  } catch (err) {
    if (!unproved.includes(problem(err).code)) throw err;
    return post(true);
  }
}

/** brings is bring of who may have typed a code: what is wrong with it is said at its field. */
async function brings(): Promise<wire.Place | null> {
  wrong('');
  try {
    return await bring();
  } catch (err) {
    const p = problem(err);
    if (!['code_required', 'bad_code', 'code_used'].includes(p.code)) throw p;
    wrong(sentence(p));
    return null;
  }
}

const join: () => Promise<void> = once(async () => {
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
const learnRank: () => Promise<void> = once(async () => {
  const me = mine;
  if (!me || !drawn() || leftOut) return;
  const d = await api.get<wire.Draw>(`${base}/draw`);
  if (!('key' in d)) { // it is a cache's, of before the draw
    later(learnRank, 2000);
    return;
  }
  const shard = await api.get<wire.Shard>(`${base}/draw/shards/${shardOf(me.ticket, d.tickets)}?key=${d.key}`);
  if (mine !== me) return;
  const found = shard.tickets.find(([ticket]) => ticket === me.ticket);
  if (!found) {
    leftOut = true;
    join();
  } else {
    const rank = found[2];
    mine = { ...me, draw: false, number: rank };
    keep.place = { ...keep.place, number: rank, from: Math.max(1, rank - (frame?.serving ?? 0)) };
  }
  draw();
});

/** ask asks for the pass, again and again while it is our turn. */
const ask: () => Promise<void> = once(async () => {
  while (mine && !inside) {
    const got = await api.call<wire.Turn>('POST', `${base}/pass`, { body: { place: keep.place?.place ?? '' } });
    if ('pass' in got && mine) enter(got);
    if ('pass' in got || 'number' in got) return; // not called after all: a frame will say so
    await new Promise((done) => setTimeout(done, 1000 + 1000 * Math.random()));
  }
});

function enter({ pass, expiresAt }: wire.Pass): void {
  keep.pass = pass;
  welcome(expiresAt);
}

function welcome(expiresAt: string): void {
  inside = true;
  const go = $<HTMLAnchorElement>('enter');
  go.href = `/events/${encodeURIComponent(event)}`;
  go.hidden = false;
  document.title = `It is your turn: ${name}`;
  news(`It is your turn. You have until ${when(expiresAt, zone)}.`);
  if ($<HTMLInputElement>('sound').checked) beep();
  draw();
  go.focus();
}

/** listen lets the page make a sound later: a browser wants to be asked by a hand. */
function listen(): void {
  audio ??= new AudioContext();
  audio.resume();
}

function beep(): void {
  if (!audio) return;
  const tone = audio.createOscillator();
  tone.connect(audio.destination);
  tone.start();
  tone.stop(audio.currentTime + 0.4);
}

/** failed says what went wrong, and tries again what may succeed a moment later. */
function failed(err: unknown, step: Step): void {
  const p = problem(err);
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

const troubles = new Map<Step, string>(); // step -> what is wrong with it

/** trouble says what is wrong with a step, until it is right. */
function trouble(step: Step, text: string): void {
  if (text) troubles.set(step, text);
  else troubles.delete(step);
  const [last = ''] = [...troubles.values()].reverse();
  $('trouble').hidden = !last;
  if ($('trouble').textContent !== last) $('trouble').textContent = last;
}

let said = '';

function news(text: string): void {
  if (text !== said) $('news').textContent = said = text;
}

const states: Record<wire.Line['state'], (f: wire.Line) => string> = {
  draw: () => (mine ? 'You take part in the draw.' : 'Whoever joins now takes part in the draw.'),
  closed: (f) => `The line opens ${when(f.opensAt, zone)}.`,
  open: () => (mine ? 'Stay here: we tell you when it is your turn.' : 'The line is open.'),
  paused: () => 'Nobody is let in for the moment. Your place is kept.',
  over: () => 'Nobody is let in any more.',
};

function draw(): void {
  if (!frame) return;
  if (!inside) news(states[frame.state](frame));
  const over = frame.state === 'over';
  const waits = placed() > 0 && !inside && !over;
  $('mine').hidden = !waits;
  if (waits) place(frame);
  $('left-out').hidden = !leftOut;
  $('left').textContent = over ? '' : `${count(frame.seatsLeft, 'seat')} left, ${number(frame.waiting)} waiting`;
  $('join').hidden = Boolean(mine) || over;
  $('code-field').hidden = Boolean(mine) || over || !frame.asks && !code.hasAttribute('aria-invalid');
  $('code-label').textContent = frame.asks === 'proof' ? 'Your code, if you have one' : 'Your code';
  $('leave').hidden = !mine || inside || over;
  $('sound-label').hidden = !mine || inside || over;
  check.offer(frame.draw?.state === 'drawn' ? mine : null);
}

function place(f: wire.Line): void {
  shown = Math.min(shown, Math.max(0, placed() - f.serving));
  $('ahead').textContent = number(shown);
  $('ahead-text').textContent = shown === 1 ? 'is before you' : 'are before you';
  const from = Math.max(mine?.from ?? keep.place?.from ?? 1, 1);
  $<HTMLProgressElement>('progress').value = 100 * (1 - Math.min(1, shown / from));
  const r = f.state === 'open' && shown > 0 ? range(shown, f.eta) : null;
  $('wait').textContent = !r ? '' : r.to === null ? 'How long it takes nobody knows at the moment.'
    : r.from === r.to ? `About ${count(r.to, 'minute')}.` : `Between ${number(r.from)} and ${count(r.to, 'minute')}.`;
  $('slowed').textContent = f.state === 'open' && shown > 0 ? slower(f.slowed) : '';
  if (!inside) document.title = `${number(shown)} before you: ${name}`;
}

const leave: () => Promise<void> = once(async () => {
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
function watch(): void {
  const stream = new EventSource(`${base}/live`);
  const again = (ms: number) => {
    stream.close();
    look();
    later(watch, ms);
  };
  let silence = 0;
  const heard = () => {
    clearTimeout(silence);
    silence = setTimeout(again, SILENCE * (1 + Math.random() / 2), 0);
  };
  const on = (e: MessageEvent<string>) => { heard(); hear(JSON.parse(e.data) as wire.Line); };
  stream.addEventListener('snapshot', on);
  stream.addEventListener('delta', on);
  stream.addEventListener('error', () => {
    if (stream.readyState !== EventSource.CLOSED) return;
    clearTimeout(silence);
    again((frame?.poll_after_ms ?? 5000) * (0.75 + Math.random() / 2));
  });
  heard();
}

const look = once(async () => hear(await api.get<wire.Line>(base)));

/** act shows an invented scene. */
function act({ frame: f, mine: m, until, problem: p }: Scene): void {
  frame = f;
  mine = m ?? null;
  draw();
  if (until) welcome(until);
  if (p) trouble(look, sentence(p));
}

async function main(): Promise<void> {
  const scene = new URLSearchParams(location.search).get('preview');
  if (scene !== null) {
    (await import('./preview')).preview(scene, act);
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
  api.get<wire.Event>(`/v1/events/${encodeURIComponent(event)}`).then((e) => {
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
