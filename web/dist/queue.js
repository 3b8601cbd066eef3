import { Api, problem, Problem } from './api.js';
import { Check } from './check.js';
import { Clock, Countdown, mmss } from './clock.js';
import { $, holding, tell } from './dom.js';
import { shardOf, whole } from './draw.js';
import { prove } from './gate.js';
import { t } from './lang.js';
import { Keep } from './line.js';
import { number } from './locale.js';
import { translate } from './page.js';
import { OUT, called, before, waits, placed, view, trouble } from './place.js';
import { Session } from './session.js';
import { sentence, when } from './words.js';

const event = decodeURIComponent(location.pathname.split("/")[2] ?? "");
const base = `/v1/queue/${encodeURIComponent(event)}`;
const clock = new Clock();
const api = new Api(clock, new Session());
const keep = new Keep(event);
const check = new Check(base, keep);
let zone = "UTC";
let name = "Seatcast";
let frame = null;
let mine = OUT;
let turned = false;
const busy = /* @__PURE__ */ new Map();
const due = /* @__PURE__ */ new Map();
const troubles = /* @__PURE__ */ new Map();
function later(step, ms, byHand) {
  cancel(step);
  due.set(step, setTimeout(() => {
    due.delete(step);
    step(byHand);
  }, ms));
}
function cancel(step) {
  clearTimeout(due.get(step));
  due.delete(step);
}
function once(take) {
  const step = (byHand = false) => {
    if (!busy.has(step)) busy.set(step, go(byHand).finally(() => busy.delete(step)));
    return busy.get(step);
  };
  const go = async (byHand) => {
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
function failed(p, step, byHand) {
  if (p.code === "no_queue") {
    end();
    return;
  }
  troubles.delete(step);
  if (p.code === "no_place") {
    lost();
    return;
  }
  if (p.code === "queue_not_open" && mine.is === "back") {
    mine = OUT;
    return;
  }
  troubles.set(step, p);
  const passing = p.passing || p.retryAfter > 0;
  if (passing) later(step, p.retryAfter || 3e3, byHand);
  else if (mine.is === "back" && p.code !== "token_missing") mine = OUT;
}
function lost() {
  if (keep.waits) {
    mine = { is: "back", ticket: mine.ticket };
    later(join, 500 + 1e3 * Math.random());
  } else if (mine.is !== "out") {
    mine = keep.own ? { is: "out", why: keep.place ? "spent" : "lost" } : OUT;
  }
}
const steps = () => [join, find, ask, learnRank, leave];
function forget() {
  steps().forEach(cancel);
  steps().forEach((step) => troubles.delete(step));
}
const ready = () => called(frame, mine);
const drawn = () => mine.is === "listed" && frame?.draw?.state === "drawn";
function hear(f) {
  const first = !frame || frame.state === "none";
  if (frame?.state === "none") {
    cancel(seek);
    watch();
  } else if (frame && f.n <= frame.n) {
    return;
  }
  const other = f.room && keep.room && f.room !== keep.room;
  const missed = frame?.since && f.since && f.since !== frame.since;
  clock.heard(f.at);
  frame = f;
  if (f.room) keep.room = f.room;
  if (first || other) begin();
  if (mine.is === "placed") mine.ahead = Math.min(mine.ahead, before(mine.number, f.serving));
  if (missed && waits(mine)) later(join, 5e3 * Math.random());
  if (drawn() && !due.has(learnRank)) later(learnRank, 1e3 * Math.random());
  if (expiring(f)) join();
  draw();
  if (ready() && !due.has(ask)) ask();
}
let renewAt = null;
function begin() {
  forget();
  renewAt = null;
  proven = null;
  const until = Date.parse(keep.place?.until ?? "");
  if (keep.waits || until > clock.now()) {
    mine = { is: "back" };
    back();
  } else {
    mine = until && keep.own ? { is: "out", why: "spent" } : OUT;
  }
}
function expiring(f) {
  if (f.state !== "draw" || !f.closesAt || mine.is !== "listed") return false;
  const closes = Date.parse(f.closesAt);
  renewAt ??= closes - 15e3 - Math.random() * Math.min(12e4, (closes - f.at) / 2);
  if (f.at < renewAt) return false;
  renewAt = Infinity;
  return true;
}
const code = $("code");
const unproved = ["proof_required", "bad_proof", "proof_expired", "proof_used"];
let proven = null;
async function brought(afresh) {
  const place2 = keep.place?.place;
  const typed = code.value.trim();
  if (!typed && (afresh || frame?.asks === "proof" && !place2)) proven ??= await proof();
  return { ...place2 && { place: place2 }, ...typed && { code: typed }, ...!typed && proven };
}
async function proof() {
  const box = $("proof");
  const instead = $("proof-wait");
  const rather = new Promise((done) => {
    instead.onclick = () => done();
  });
  try {
    return await prove(api, base, (kind, part) => {
      box.hidden = false;
      holding($("news"), () => {
        instead.hidden = kind === "wait";
      });
      const quarters = kind === "wait" ? t.queue.proofWait : t.queue.proofWork;
      tell("proof-text", quarters[Math.min(4, Math.floor(part * 4))]);
      $("proof-bar").value = 100 * part;
    }, rather);
  } finally {
    holding($("news"), () => {
      box.hidden = true;
    });
  }
}
function wrong(text) {
  $("code-error").textContent = text;
  if (text) {
    code.setAttribute("aria-invalid", "true");
    draw();
    code.focus();
  } else {
    code.removeAttribute("aria-invalid");
  }
}
async function bring(byHand, afresh = false) {
  const room = byHand ? void 0 : frame?.room;
  try {
    const got = await api.call("POST", base, { body: { ...await brought(afresh), ...room && { room } }, quiet: !byHand });
    proven = null;
    return got;
  } catch (err) {
    if (!unproved.includes(problem(err).code)) throw err;
    proven = null;
    if (afresh || !byHand) throw err;
    return bring(byHand, true);
  }
}
async function brings(byHand) {
  wrong("");
  try {
    return await bring(byHand);
  } catch (err) {
    const p = problem(err);
    if (!["code_required", "bad_code", "code_used", "other_room"].includes(p.code)) throw p;
    if (mine.is === "back") mine = OUT;
    if (byHand) wrong(sentence(p));
    return null;
  }
}
const join = once(async (byHand) => {
  if (!byHand && (!keep.waits || busy.has(leave))) {
    if (mine.is === "back") mine = OUT;
    return;
  }
  let got = await brings(byHand);
  if (!got) return;
  if (keep.is(got.ticket) && keep.waits) got = await bring(byHand);
  has(got);
});
const find = once(async (byHand) => {
  const got = await api.call("GET", `${base}/me`, { quiet: !byHand });
  keep.is(got.ticket);
  has(got);
});
function has(got) {
  const { ticket, place: place2, number: n, insideUntil: until } = got;
  steps().forEach((step) => troubles.delete(step));
  const kept = keep.place;
  keep.joined();
  if (place2) keep.place = { place: place2, number: n, from: kept && kept.number === n ? kept.from : void 0 };
  if (place2 && got.draw) keep.give(ticket, place2, got.announcement);
  if (until && mine.is === "inside") mine = { ...mine, until };
  else if (until) mine = { is: "back", ticket };
  else if (n) stand(ticket, n);
  else mine = { is: "listed", ticket, leftOut: mine.leftOut };
  draw();
  if ((mine.is === "back" || ready()) && !due.has(ask)) ask();
  if (drawn()) learnRank();
}
function stand(ticket, n) {
  const kept = keep.waits;
  mine = placed(mine, { ticket, number: n }, frame?.serving ?? 0, kept?.number === n ? kept.from : void 0);
  if (kept) keep.place = { ...kept, number: mine.number, from: mine.from };
}
const learnRank = once(async () => {
  const me = mine;
  if (me.is !== "listed" || !drawn() || me.leftOut) return;
  const d = await api.get(`${base}/draw`);
  if (!("key" in d)) {
    later(learnRank, 2e3);
    return;
  }
  const shard = await api.get(`${base}/draw/shards/${shardOf(me.ticket, whole(d).tickets)}?key=${d.key}`);
  if (mine !== me) return;
  const found = shard.tickets.find(([ticket]) => ticket === me.ticket);
  if (found) {
    stand(me.ticket, found[2]);
  } else {
    mine = { ...me, leftOut: true };
    join();
  }
});
const ask = once(async () => {
  const waiting = () => mine.is === "placed" || mine.is === "back";
  while (waiting()) {
    let got;
    try {
      got = await api.call("POST", `${base}/pass`, { body: { place: keep.place?.place ?? "" }, quiet: true });
    } catch (err) {
      if (waiting()) throw err;
      return;
    }
    if (!waiting()) return;
    if ("pass" in got) {
      keep.enter(got.pass, got.expiresAt, clock.now());
      mine = { is: "inside", ticket: mine.ticket, until: got.expiresAt, leftOut: mine.leftOut };
      return;
    }
    if ("number" in got) {
      if (mine.is === "back") stand(mine.ticket, got.number);
      return;
    }
    await new Promise((done) => setTimeout(done, 1e3 + 1e3 * Math.random()));
  }
});
const leave = once(async (byHand) => {
  await busy.get(join);
  await api.call("DELETE", `${base}/me`, { quiet: !byHand });
  forget();
  keep.place = null;
  mine = OUT;
});
let audio = null;
function listen() {
  audio ??= new AudioContext();
  audio.resume();
}
function beep() {
  if (!audio || !$("sound").checked) return;
  const tone = audio.createOscillator();
  tone.connect(audio.destination);
  tone.start();
  tone.stop(audio.currentTime + 0.4);
}
const told = ["token_missing", "queue_paused", "queue_over", "not_drawn", "queue_closing"];
const NEAR = 36e5;
let next = null;
const countdown = new Countdown(clock, (left) => {
  $("count").hidden = left === 0 || left > NEAR;
  $("count-left").textContent = mmss(left);
});
function draw() {
  const now = clock.now();
  if (mine.is === "inside" && now >= Date.parse(mine.until)) mine = { is: "out", why: "spent" };
  const stranger = [...troubles.values()].some((p) => p.code === "token_missing");
  const joining = troubles.get(join)?.code === "queue_closing";
  show(frame && view(frame, mine, { now, zone, name, stranger, joining }));
  const until = mine.is === "inside" ? mine.until : null;
  const soon = Math.min(...[frame?.joinsAt, frame?.closesAt, frame?.opensAt, until].map((time) => Date.parse(time ?? "")).filter((time) => time > now));
  if (soon < Infinity) later(draw, Math.min(6e4, soon - now));
}
function show(v) {
  const last = [...troubles.values()].reverse().find((p) => !told.includes(p.code));
  tell("trouble", last ? trouble(last, mine) : "");
  $("trouble").hidden = !last;
  if (!v || !frame) return;
  const { asks } = frame;
  const enter = $("enter");
  enter.href = `/events/${encodeURIComponent(event)}`;
  if (v.enter) tell("enter", v.enter);
  tell("news", v.news);
  tell("left", v.left);
  if (v.place) place(v.place, v);
  if (v.join) tell("join", v.join);
  why();
  counts(v.until);
  holding(v.enter ? enter : $("news"), () => {
    enter.hidden = !v.enter;
    $("mine").hidden = !v.place;
    $("left-out").hidden = !mine.leftOut;
    $("join").hidden = !v.join;
    $("sign-in").hidden = !v.signIn;
    $("others").hidden = !v.over;
    $("code-field").hidden = !v.join || !asks && !code.hasAttribute("aria-invalid");
    for (const id of ["leave", "sound-label", "kept"]) $(id).hidden = !v.waits;
  });
  tell("code-label", asks === "proof" ? t.queue.codeIfAny : t.queue.code);
  document.title = v.title;
  const { ticket } = mine;
  check.offer(frame.room, frame.draw?.state === "drawn" && ticket !== void 0 ? { ...mine, ticket } : null);
  if (v.turn === turned) return;
  turned = v.turn;
  if (!turned) return;
  (v.enter ? enter : $("sign-in")).focus();
  beep();
}
function counts(until) {
  if (until) tell("count-says", until.says);
  else $("count").hidden = true;
  if (until?.at === next) return;
  next = until?.at ?? null;
  countdown.until(next);
}
function why() {
  const code2 = mine.is === "out" && !mine.why && frame?.state !== "none" && frame?.state !== "over" ? keep.why : null;
  tell("why", code2 ? [sentence({ code: code2 }), keep.chosen && t.queue.chosen].filter(Boolean).join(" ") : "");
  $("why").hidden = !code2;
}
function place({ ahead, from }, { wait, slowed }) {
  tell("ahead", number(ahead));
  $("progress").value = 100 * (1 - Math.min(1, ahead / from));
  tell("wait", wait);
  tell("slowed", slowed);
}
const SILENCE = 25e3;
let unwatch = () => {
};
function watch() {
  const stream = new EventSource(`${base}/live`);
  let silence = 0;
  unwatch = () => {
    stream.close();
    clearTimeout(silence);
  };
  const again = (ms) => {
    unwatch();
    later(watch, ms);
    look();
  };
  const heard = () => {
    clearTimeout(silence);
    silence = setTimeout(again, SILENCE * (1 + Math.random() / 2), 0);
  };
  const on = (e) => {
    heard();
    hear(JSON.parse(e.data));
  };
  stream.addEventListener("snapshot", on);
  stream.addEventListener("delta", on);
  stream.addEventListener("error", () => {
    if (stream.readyState === EventSource.CLOSED) again((frame?.poll_after_ms ?? 5e3) * (0.75 + Math.random() / 2));
  });
  heard();
}
const look = once(async () => hear(await api.get(base)));
const seek = () => {
  if (document.visibilityState === "visible") look();
};
function end() {
  unwatch();
  [watch, look].forEach(cancel);
  later(seek, 6e4 * (0.75 + Math.random() / 2));
  forget();
  frame = { state: "none" };
  mine = OUT;
}
const about = once(async () => {
  const e = await api.get(`/v1/events/${encodeURIComponent(event)}`);
  ({ name, zone } = e);
  tell("name", name);
  tell("where", t.queue.where(e.venue, when(e.startsAt, zone)));
});
function back(byHand = false) {
  const step = keep.waits ? join : find;
  step(byHand);
}
function act({ frame: f, mine: m = OUT, problem: p }) {
  frame = f;
  mine = m;
  if (p) troubles.set(look, new Problem(p));
  draw();
  cancel(draw);
  countdown.until(null);
}
async function main() {
  translate();
  const scene = new URLSearchParams(location.search).get("preview");
  if (scene !== null) {
    (await import('./preview.js')).preview(scene, act);
    return;
  }
  $("join").onclick = () => join(true);
  code.onkeydown = (e) => {
    if (e.key === "Enter") join(true);
  };
  $("sign-in").onclick = () => back(true);
  $("leave").onclick = () => leave(true);
  $("sound").onchange = listen;
  document.addEventListener("visibilitychange", async () => {
    if (document.visibilityState !== "visible") return;
    await look();
    if (waits(mine)) join();
    else if (mine.is === "inside") find();
  });
  addEventListener("storage", () => {
    if (waits(mine) && !keep.waits) find();
  });
  about();
  watch();
  look();
}
main();
