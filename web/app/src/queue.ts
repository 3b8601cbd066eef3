// The page of a line: your place, how long it may take, and when it is your turn.
// It is the same for everybody; what is yours comes from one call. Nobody joins, and is
// asked to sign in, but by their own hand.

import { Api, Problem, problem } from './api';
import { Check } from './check';
import { Clock, Countdown, mmss } from './clock';
import { $, holding, tell } from './dom';
import { shardOf, whole } from './draw';
import { prove } from './gate';
import { t } from './lang';
import { Keep } from './line';
import { number } from './locale';
import { translate } from './page';
import { before, called, OUT, placed, trouble, view, waits, type Mine, type Placed, type Room, type View } from './place';
import type { Scene } from './preview';
import { Session } from './session';
import type * as wire from './wire';
import { sentence, when } from './words';

const event = decodeURIComponent(location.pathname.split('/')[2] ?? '');
const base = `/v1/queue/${encodeURIComponent(event)}`;
const clock = new Clock();
const api = new Api(clock, new Session());
const keep = new Keep(event);
const check = new Check(base, keep);

let zone = 'UTC';
let name = 'Seatcast';
let frame: Room | null = null;
let mine: Mine = OUT;
let turned = false; // its turn has been told

/** Step is something the page does, again and again where it must. By hand: somebody wants it, who may be asked to sign in. */
type Step = (byHand?: boolean) => unknown;

const busy = new Map<Step, Promise<unknown>>(); // steps that are being taken -> until then
const due = new Map<Step, number>(); // steps that are taken again -> their timer
const troubles = new Map<Step, Problem>(); // steps -> what is wrong with them, until it is right

/** later takes a step again, once, whatever asks for it. */
function later(step: Step, ms: number, byHand?: boolean): void {
  cancel(step);
  due.set(step, setTimeout(() => { due.delete(step); step(byHand); }, ms));
}

function cancel(step: Step): void {
  clearTimeout(due.get(step));
  due.delete(step);
}

/** once makes a step that does nothing while it is taken. What failed is tried again when that may do. */
function once(take: (byHand: boolean) => Promise<void>): Step {
  const step: Step = (byHand = false) => {
    if (!busy.has(step)) busy.set(step, go(byHand).finally(() => busy.delete(step)));
    return busy.get(step);
  };
  const go = async (byHand: boolean) => {
    cancel(step);
    try {
      await take(byHand);
      troubles.delete(step);
    } catch (err) {
      failed(problem(err), step, byHand);
    }
    draw();
  };
  return step;
}

/** failed notes what went wrong, and tries again what may succeed a moment later. */
function failed(p: Problem, step: Step, byHand: boolean): void {
  if (p.code === 'no_queue') {
    end();
    return;
  }
  troubles.delete(step);
  if (p.code === 'no_place') {
    lost();
    return;
  }
  if (p.code === 'queue_not_open' && mine.is === 'back') { // nobody has a place yet: what is kept is of an earlier line
    mine = OUT;
    return;
  }
  troubles.set(step, p);
  const passing = p.passing || p.retryAfter > 0;
  if (passing) later(step, p.retryAfter || 3000, byHand);
  else if (mine.is === 'back' && p.code !== 'token_missing') mine = OUT;
}

/** lost is called when the server does not know of a place. One that is kept here it is shown. */
function lost(): void {
  if (keep.waits) {
    mine = { is: 'back', ticket: mine.ticket };
    later(join, 500 + 1000 * Math.random());
  } else if (mine.is !== 'out') {
    mine = keep.own ? { is: 'out', why: keep.place ? 'spent' : 'lost' } : OUT;
  }
}

const steps = () => [join, find, ask, learnRank, leave]; // of what is ours

/** forget ends what is asked of a place, and what was wrong with it. */
function forget(): void {
  steps().forEach(cancel);
  steps().forEach((step) => troubles.delete(step));
}

const ready = () => called(frame, mine);
const drawn = () => mine.is === 'listed' && frame?.draw?.state === 'drawn';

/** hear takes a frame in; one that is older than what we have says nothing. */
function hear(f: wire.Line): void {
  const first = !frame || frame.state === 'none';
  if (frame?.state === 'none') { // there is one again
    cancel(seek);
    watch();
  } else if (frame && f.n <= frame.n) {
    return;
  }
  const other = f.room && keep.room && f.room !== keep.room;
  const missed = frame?.since && f.since && f.since !== frame.since; // the server knows of us only what we bring
  clock.heard(f.at);
  frame = f;
  if (f.room) keep.room = f.room;
  if (first || other) begin();
  if (mine.is === 'placed') mine.ahead = Math.min(mine.ahead, before(mine.number, f.serving));
  if (missed && waits(mine)) later(join, 5000 * Math.random()); // not all at once
  if (drawn() && !due.has(learnRank)) later(learnRank, 1000 * Math.random());
  if (expiring(f)) join();
  draw();
  if (ready() && !due.has(ask)) ask();
}

let renewAt: number | null = null;

/**
 * begin is called as a room is heard of that there was not before. What this browser
 * has kept of it is brought back; what it has of an earlier one counts for nothing.
 */
function begin(): void {
  forget();
  renewAt = null;
  proven = null;
  const until = Date.parse(keep.place?.until ?? '');
  if (keep.waits || until > clock.now()) {
    mine = { is: 'back' };
    back();
  } else {
    mine = until && keep.own ? { is: 'out', why: 'spent' } : OUT;
  }
}

/**
 * expiring says, once, that the list closes soon: what a server has lost of it since we
 * joined is on it again when we join again.
 */
function expiring(f: wire.Line): boolean {
  if (f.state !== 'draw' || !f.closesAt || mine.is !== 'listed') return false;
  const closes = Date.parse(f.closesAt);
  renewAt ??= closes - 15000 - Math.random() * Math.min(120000, (closes - f.at) / 2); // a frame comes every ten seconds
  if (f.at < renewAt) return false;
  renewAt = Infinity;
  return true;
}

const code = $<HTMLInputElement>('code');

const unproved = ['proof_required', 'bad_proof', 'proof_expired', 'proof_used'];

let proven: wire.Join | null = null; // what shows that somebody has taken the trouble, until the server has judged it

/** brought is what a join brings: the place that is kept, which may be another account's, a code, or a proof. */
async function brought(afresh: boolean): Promise<wire.Join> {
  const place = keep.place?.place;
  const typed = code.value.trim();
  if (!typed && (afresh || frame?.asks === 'proof' && !place)) proven ??= await proof();
  return { ...(place && { place }), ...(typed && { code: typed }), ...(!typed && proven) };
}

/** proof has the browser do the work, or waits, and shows how far it is. */
async function proof(): Promise<wire.Join> {
  const box = $('proof');
  const instead = $('proof-wait');
  const rather = new Promise<void>((done) => { instead.onclick = () => done(); });
  try {
    return await prove(api, base, (kind, part) => {
      box.hidden = false;
      holding($('news'), () => { instead.hidden = kind === 'wait'; });
      const quarters = kind === 'wait' ? t.queue.proofWait : t.queue.proofWork;
      tell('proof-text', quarters[Math.min(4, Math.floor(part * 4))]);
      $<HTMLProgressElement>('proof-bar').value = 100 * part;
    }, rather);
  } finally {
    holding($('news'), () => { box.hidden = true; });
  }
}

/** wrong says why a code will not do; nothing when it is empty. */
function wrong(text: string): void {
  $('code-error').textContent = text;
  if (text) {
    code.setAttribute('aria-invalid', 'true');
    draw();
    code.focus();
  } else {
    code.removeAttribute('aria-invalid');
  }
}

/** bring joins, with another proof when that is what was missing. Unasked it joins the room there is now, or none. */
async function bring(byHand: boolean, afresh = false): Promise<wire.Place> {
  const room = byHand ? undefined : frame?.room;
  try {
    const got = await api.call<wire.Place>('POST', base, { body: { ...await brought(afresh), ...(room && { room }) }, quiet: !byHand });
    proven = null;
    return got;
  } catch (err) {
    if (!unproved.includes(problem(err).code)) throw err;
    proven = null;
    if (afresh || !byHand) throw err;
    return bring(byHand, true);
  }
}

/** brings is bring of who may have typed a code: what is wrong with it is said at its field. Another room the next frame tells of. */
async function brings(byHand: boolean): Promise<wire.Place | null> {
  wrong('');
  try {
    return await bring(byHand);
  } catch (err) {
    const p = problem(err);
    if (!['code_required', 'bad_code', 'code_used', 'other_room'].includes(p.code)) throw p;
    if (mine.is === 'back') mine = OUT;
    if (byHand) wrong(sentence(p));
    return null;
  }
}

/** join gets a place, or the one that is kept. Who has none joins by hand alone. */
const join: Step = once(async (byHand) => {
  if (!byHand && (!keep.waits || busy.has(leave))) {
    if (mine.is === 'back') mine = OUT;
    return;
  }
  let got = await brings(byHand);
  if (!got) return;
  if (keep.is(got.ticket) && keep.waits) got = await bring(byHand); // another account's place was shown
  has(got);
});

/** find asks what this account has, and changes nothing. */
const find: Step = once(async (byHand) => {
  const got = await api.call<wire.Place>('GET', `${base}/me`, { quiet: !byHand });
  keep.is(got.ticket);
  has(got);
});

/** has takes in what the server says this account has. */
function has(got: wire.Place): void {
  const { ticket, place, number: n, insideUntil: until } = got;
  steps().forEach((step) => troubles.delete(step));
  const kept = keep.place;
  keep.joined();
  if (place) keep.place = { place, number: n, from: kept && kept.number === n ? kept.from : undefined };
  if (place && got.draw) keep.give(ticket, place, got.announcement);
  if (until && mine.is === 'inside') mine = { ...mine, until };
  else if (until) mine = { is: 'back', ticket };
  else if (n) stand(ticket, n);
  else mine = { is: 'listed', ticket, leftOut: mine.leftOut };
  draw();
  if ((mine.is === 'back' || ready()) && !due.has(ask)) ask();
  if (drawn()) learnRank();
}

/** stand is in the line at a number. */
function stand(ticket: string, n: number): void {
  const kept = keep.waits;
  mine = placed(mine, { ticket, number: n }, frame?.serving ?? 0, kept?.number === n ? kept.from : undefined);
  if (kept) keep.place = { ...kept, number: mine.number, from: mine.from };
}

/** learnRank looks the place up in the published draw: nobody is asked who we are. */
const learnRank: Step = once(async () => {
  const me = mine;
  if (me.is !== 'listed' || !drawn() || me.leftOut) return;
  const d = await api.get<wire.Draw>(`${base}/draw`);
  if (!('key' in d)) { // it is a cache's, of before the draw
    later(learnRank, 2000);
    return;
  }
  const shard = await api.get<wire.Shard>(`${base}/draw/shards/${shardOf(me.ticket, whole(d).tickets)}?key=${d.key}`);
  if (mine !== me) return;
  const found = shard.tickets.find(([ticket]) => ticket === me.ticket);
  if (found) {
    stand(me.ticket, found[2]);
  } else {
    mine = { ...me, leftOut: true };
    join();
  }
});

/** ask asks for the pass, again and again while it is our turn. */
const ask: Step = once(async () => {
  const waiting = () => mine.is === 'placed' || mine.is === 'back';
  while (waiting()) {
    let got;
    try {
      got = await api.call<wire.Turn>('POST', `${base}/pass`, { body: { place: keep.place?.place ?? '' }, quiet: true });
    } catch (err) {
      if (waiting()) throw err;
      return;
    }
    if (!waiting()) return;
    if ('pass' in got) {
      keep.enter(got.pass, got.expiresAt, clock.now());
      mine = { is: 'inside', ticket: mine.ticket, until: got.expiresAt, leftOut: mine.leftOut };
      return;
    }
    if ('number' in got) { // not called after all: a frame will say so
      if (mine.is === 'back') stand(mine.ticket!, got.number);
      return;
    }
    await new Promise((done) => setTimeout(done, 1000 + 1000 * Math.random()));
  }
});

const leave: Step = once(async (byHand) => {
  await busy.get(join); // or it would be answered after we have left
  await api.call('DELETE', `${base}/me`, { quiet: !byHand });
  forget();
  keep.place = null;
  mine = OUT;
});

let audio: AudioContext | null = null;

/** listen lets the page make a sound later: a browser wants to be asked by a hand. */
function listen(): void {
  audio ??= new AudioContext();
  audio.resume();
}

function beep(): void {
  if (!audio || !$<HTMLInputElement>('sound').checked) return;
  const tone = audio.createOscillator();
  tone.connect(audio.destination);
  tone.start();
  tone.stop(audio.currentTime + 0.4);
}

const told = ['token_missing', 'queue_paused', 'queue_over', 'not_drawn', 'queue_closing']; // by what is shown

const NEAR = 3600000; // ms before something from which it is counted down to

let next: number | null = null; // what is counted down to

const countdown = new Countdown(clock, (left) => {
  $('count').hidden = left === 0 || left > NEAR;
  $('count-left').textContent = mmss(left);
});

/** draw shows what is so now, and once more when time alone changes it. */
function draw(): void {
  const now = clock.now();
  if (mine.is === 'inside' && now >= Date.parse(mine.until)) mine = { is: 'out', why: 'spent' };
  const stranger = [...troubles.values()].some((p) => p.code === 'token_missing');
  const joining = troubles.get(join)?.code === 'queue_closing';
  show(frame && view(frame, mine, { now, zone, name, stranger, joining }));
  const until = mine.is === 'inside' ? mine.until : null;
  const soon = Math.min(...[frame?.joinsAt, frame?.closesAt, frame?.opensAt, until].map((time) => Date.parse(time ?? '')).filter((time) => time > now));
  if (soon < Infinity) later(draw, Math.min(60000, soon - now));
}

/** show puts a view on the screen; null while there is no frame. */
function show(v: View | null): void {
  const last = [...troubles.values()].reverse().find((p) => !told.includes(p.code));
  tell('trouble', last ? trouble(last, mine) : '');
  $('trouble').hidden = !last;
  if (!v || !frame) return;
  const { asks } = frame;
  const enter = $<HTMLAnchorElement>('enter');
  enter.href = `/events/${encodeURIComponent(event)}`;
  if (v.enter) tell('enter', v.enter);
  tell('news', v.news);
  tell('left', v.left);
  if (v.place) place(v.place, v);
  if (v.join) tell('join', v.join);
  why();
  counts(v.until);
  holding(v.enter ? enter : $('news'), () => {
    enter.hidden = !v.enter;
    $('mine').hidden = !v.place;
    $('left-out').hidden = !mine.leftOut;
    $('join').hidden = !v.join;
    $('sign-in').hidden = !v.signIn;
    $('others').hidden = !v.over;
    $('code-field').hidden = !v.join || !asks && !code.hasAttribute('aria-invalid');
    for (const id of ['leave', 'sound-label', 'kept']) $(id).hidden = !v.waits;
  });
  tell('code-label', asks === 'proof' ? t.queue.codeIfAny : t.queue.code);
  document.title = v.title;
  const { ticket } = mine;
  check.offer(frame.room, frame.draw?.state === 'drawn' && ticket !== undefined ? { ...mine, ticket } : null);
  if (v.turn === turned) return;
  turned = v.turn;
  if (!turned) return;
  (v.enter ? enter : $('sign-in')).focus();
  beep();
}

/** counts counts down to what is next. */
function counts(until: View['until']): void {
  if (until) tell('count-says', until.says);
  else $('count').hidden = true;
  if (until?.at === next) return;
  next = until?.at ?? null;
  countdown.until(next);
}

/** why says to whoever was led here why, until they have joined. */
function why(): void {
  const code = mine.is === 'out' && !mine.why && frame?.state !== 'none' && frame?.state !== 'over' ? keep.why : null;
  tell('why', code ? [sentence({ code }), keep.chosen && t.queue.chosen].filter(Boolean).join(' ') : '');
  $('why').hidden = !code;
}

function place({ ahead, from }: Placed, { wait, slowed }: View): void {
  tell('ahead', number(ahead));
  $<HTMLProgressElement>('progress').value = 100 * (1 - Math.min(1, ahead / from));
  tell('wait', wait);
  tell('slowed', slowed);
}

const SILENCE = 25000; // ms: a frame is due every ten seconds

let unwatch = () => {};

/** watch follows the line; where streams do not work it is polled. A stream that says nothing is as good as none. */
function watch(): void {
  const stream = new EventSource(`${base}/live`);
  let silence = 0;
  unwatch = () => {
    stream.close();
    clearTimeout(silence);
  };
  const again = (ms: number) => {
    unwatch();
    later(watch, ms);
    look();
  };
  const heard = () => {
    clearTimeout(silence);
    silence = setTimeout(again, SILENCE * (1 + Math.random() / 2), 0);
  };
  const on = (e: MessageEvent<string>) => { heard(); hear(JSON.parse(e.data) as wire.Line); };
  stream.addEventListener('snapshot', on);
  stream.addEventListener('delta', on);
  stream.addEventListener('error', () => {
    if (stream.readyState === EventSource.CLOSED) again((frame?.poll_after_ms ?? 5000) * (0.75 + Math.random() / 2));
  });
  heard();
}

const look = once(async () => hear(await api.get(base)));

/** seek looks whether there is a waiting room by now; who has the page out of sight looks once they see it. */
const seek: Step = () => { if (document.visibilityState === 'visible') look(); };

/** end is called where there is no waiting room: there is nothing to watch, and now and then it is looked for. */
function end(): void {
  unwatch();
  [watch, look].forEach(cancel);
  later(seek, 60000 * (0.75 + Math.random() / 2));
  forget();
  frame = { state: 'none' };
  mine = OUT;
}

/** about learns what the line is for. */
const about = once(async () => {
  const e = await api.get<wire.Event>(`/v1/events/${encodeURIComponent(event)}`);
  ({ name, zone } = e);
  tell('name', name);
  tell('where', t.queue.where(e.venue, when(e.startsAt, zone)));
});

/** back says again what this browser has kept, and whether there was anything. */
function back(byHand = false): void {
  const step = keep.waits ? join : find;
  step(byHand);
}

/** act shows an invented scene. */
function act({ frame: f, mine: m = OUT, problem: p }: Scene): void {
  frame = f;
  mine = m;
  if (p) troubles.set(look, new Problem(p));
  draw();
  cancel(draw); // it stands still
  countdown.until(null);
}

async function main(): Promise<void> {
  translate();
  const scene = new URLSearchParams(location.search).get('preview');
  if (scene !== null) {
    (await import('./preview')).preview(scene, act);
    return;
  }
  $('join').onclick = () => join(true);
  code.onkeydown = (e) => { if (e.key === 'Enter') join(true); };
  $('sign-in').onclick = () => back(true);
  $('leave').onclick = () => leave(true);
  $('sound').onchange = listen;
  document.addEventListener('visibilitychange', async () => { // a phone that was asleep
    if (document.visibilityState !== 'visible') return;
    await look();
    if (waits(mine)) join();
    else if (mine.is === 'inside') find();
  });
  addEventListener('storage', () => { if (waits(mine) && !keep.waits) find(); }); // another tab has left, or was let in
  about();
  watch();
  look();
}

main();
