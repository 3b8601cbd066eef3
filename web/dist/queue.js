import { Api, problem } from './api.js';
import { Check } from './check.js';
import { Clock } from './clock.js';
import { $ } from './dom.js';
import { shardOf } from './draw.js';
import { prove } from './gate.js';
import { Keep, range, slower } from './line.js';
import { Session } from './session.js';
import { sentence, when, count, number } from './words.js';

const event = decodeURIComponent(location.pathname.split("/")[2] ?? "");
const base = `/v1/queue/${encodeURIComponent(event)}`;
const api = new Api(new Clock(), new Session());
const keep = new Keep(event);
const check = new Check(base, keep);
let zone = "UTC";
let name = "Seatcast";
let frame = null;
let mine = null;
let shown = Infinity;
let inside = false;
let leftOut = false;
let audio = null;
const busy = /* @__PURE__ */ new Set();
const due = /* @__PURE__ */ new Map();
function later(step, ms) {
  cancel(step);
  due.set(step, setTimeout(() => {
    due.delete(step);
    step();
  }, ms));
}
function cancel(step) {
  clearTimeout(due.get(step));
  due.delete(step);
}
function once(take) {
  const step = async () => {
    if (busy.has(step)) return;
    busy.add(step);
    cancel(step);
    try {
      await take();
      trouble(step, "");
    } catch (err) {
      failed(err, step);
    } finally {
      busy.delete(step);
    }
  };
  return step;
}
function hear(f) {
  if (frame && f.n <= frame.n) return;
  const lost = frame?.since && f.since && f.since !== frame.since;
  frame = f;
  if (lost && mine && !inside) later(join, 5e3 * Math.random());
  if (drawn() && !due.has(learnRank)) later(learnRank, 1e3 * Math.random());
  if (expiring(f)) join();
  draw();
  if (ready() && !due.has(ask)) ask();
}
const ready = () => !inside && frame?.state === "open" && placed() > 0 && placed() <= frame.serving;
const placed = () => mine?.number ?? 0;
const drawn = () => Boolean(mine?.draw) && frame?.draw?.state === "drawn";
let renewAt = null;
function expiring(f) {
  if (f.state !== "draw" || !mine?.draw || !f.closesAt) return false;
  const closes = Date.parse(f.closesAt);
  renewAt ??= closes - 15e3 - Math.random() * Math.min(12e4, (closes - f.at) / 2);
  if (f.at < renewAt) return false;
  renewAt = Infinity;
  return true;
}
const code = $("code");
async function brought(afresh) {
  const place2 = keep.place?.place;
  const typed = code.value.trim();
  const shown2 = !typed && (afresh || frame?.asks === "proof" && !place2) ? await proof() : {};
  return { ...place2 && { place: place2 }, ...typed && { code: typed }, ...shown2 };
}
async function proof() {
  const box = $("proof");
  const instead = $("proof-wait");
  const rather = new Promise((done) => {
    instead.onclick = () => done();
  });
  const quarters = ["begun", "a quarter done", "half done", "nearly done", "done"];
  try {
    return await prove(api, base, (kind, part) => {
      box.hidden = false;
      instead.hidden = kind === "wait";
      const now = quarters[Math.min(4, Math.floor(part * 4))];
      const text = kind === "wait" ? `A moment's wait before you join: ${now}.` : `A short check that your browser does by itself: ${now}.`;
      if ($("proof-text").textContent !== text) $("proof-text").textContent = text;
      $("proof-bar").value = 100 * part;
    }, rather);
  } finally {
    box.hidden = true;
  }
}
function wrong(text) {
  $("code-error").textContent = text;
  if (text) {
    code.setAttribute("aria-invalid", "true");
    $("code-field").hidden = false;
    code.focus();
  } else {
    code.removeAttribute("aria-invalid");
  }
}
const unproved = ["proof_required", "bad_proof", "proof_expired", "proof_used"];
const post = async (afresh) => api.call("POST", base, { body: await brought(afresh) });
async function bring() {
  try {
    return await post(false);
  } catch (err) {
    if (!unproved.includes(problem(err).code)) throw err;
    return post(true);
  }
}
async function brings() {
  wrong("");
  try {
    return await bring();
  } catch (err) {
    const p = problem(err);
    if (!["code_required", "bad_code", "code_used"].includes(p.code)) throw p;
    wrong(sentence(p));
    return null;
  }
}
const join = once(async () => {
  let got = await brings();
  if (!got) return;
  if (keep.is(got.ticket)) {
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
const learnRank = once(async () => {
  const me = mine;
  if (!me || !drawn() || leftOut) return;
  const d = await api.get(`${base}/draw`);
  if (!("key" in d)) {
    later(learnRank, 2e3);
    return;
  }
  const shard = await api.get(`${base}/draw/shards/${shardOf(me.ticket, d.tickets)}?key=${d.key}`);
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
const ask = once(async () => {
  while (mine && !inside) {
    const got = await api.call("POST", `${base}/pass`, { body: { place: keep.place?.place ?? "" } });
    if ("pass" in got && mine) enter(got);
    if ("pass" in got || "number" in got) return;
    await new Promise((done) => setTimeout(done, 1e3 + 1e3 * Math.random()));
  }
});
function enter({ pass, expiresAt }) {
  keep.pass = pass;
  welcome(expiresAt);
}
function welcome(expiresAt) {
  inside = true;
  const go = $("enter");
  go.href = `/events/${encodeURIComponent(event)}`;
  go.hidden = false;
  document.title = `It is your turn: ${name}`;
  news(`It is your turn. You have until ${when(expiresAt, zone)}.`);
  if ($("sound").checked) beep();
  draw();
  go.focus();
}
function listen() {
  audio ??= new AudioContext();
  audio.resume();
}
function beep() {
  if (!audio) return;
  const tone = audio.createOscillator();
  tone.connect(audio.destination);
  tone.start();
  tone.stop(audio.currentTime + 0.4);
}
function failed(err, step) {
  const p = problem(err);
  if (p.code === "no_place") {
    mine = null;
    if (keep.place) {
      later(join, 500 + 1e3 * Math.random());
      draw();
      return;
    }
  }
  draw();
  if (p.code !== "token_missing" && !told.has(p.code)) trouble(step, sentence(p));
  if (p.passing || p.retryAfter > 0) later(step, p.retryAfter || 3e3);
}
const told = /* @__PURE__ */ new Set(["queue_paused", "queue_over", "not_drawn"]);
const troubles = /* @__PURE__ */ new Map();
function trouble(step, text) {
  if (text) troubles.set(step, text);
  else troubles.delete(step);
  const [last = ""] = [...troubles.values()].reverse();
  $("trouble").hidden = !last;
  if ($("trouble").textContent !== last) $("trouble").textContent = last;
}
let said = "";
function news(text) {
  if (text !== said) $("news").textContent = said = text;
}
const states = {
  draw: () => mine ? "You take part in the draw." : "Whoever joins now takes part in the draw.",
  closed: (f) => `The line opens ${when(f.opensAt, zone)}.`,
  open: () => mine ? "Stay here: we tell you when it is your turn." : "The line is open.",
  paused: () => "Nobody is let in for the moment. Your place is kept.",
  over: () => "Nobody is let in any more."
};
function draw() {
  if (!frame) return;
  if (!inside) news(states[frame.state](frame));
  const over = frame.state === "over";
  const waits = placed() > 0 && !inside && !over;
  $("mine").hidden = !waits;
  if (waits) place(frame);
  $("left-out").hidden = !leftOut;
  $("left").textContent = over ? "" : `${count(frame.seatsLeft, "seat")} left, ${number(frame.waiting)} waiting`;
  $("join").hidden = Boolean(mine) || over;
  $("code-field").hidden = Boolean(mine) || over || !frame.asks && !code.hasAttribute("aria-invalid");
  $("code-label").textContent = frame.asks === "proof" ? "Your code, if you have one" : "Your code";
  $("leave").hidden = !mine || inside || over;
  $("sound-label").hidden = !mine || inside || over;
  check.offer(frame.draw?.state === "drawn" ? mine : null);
}
function place(f) {
  shown = Math.min(shown, Math.max(0, placed() - f.serving));
  $("ahead").textContent = number(shown);
  $("ahead-text").textContent = shown === 1 ? "is before you" : "are before you";
  const from = Math.max(mine?.from ?? keep.place?.from ?? 1, 1);
  $("progress").value = 100 * (1 - Math.min(1, shown / from));
  const r = f.state === "open" && shown > 0 ? range(shown, f.eta) : null;
  $("wait").textContent = !r ? "" : r.to === null ? "How long it takes nobody knows at the moment." : r.from === r.to ? `About ${count(r.to, "minute")}.` : `Between ${number(r.from)} and ${count(r.to, "minute")}.`;
  $("slowed").textContent = f.state === "open" && shown > 0 ? slower(f.slowed) : "";
  if (!inside) document.title = `${number(shown)} before you: ${name}`;
}
const leave = once(async () => {
  await api.call("DELETE", `${base}/me`);
  for (const step of [join, ask, learnRank]) cancel(step);
  keep.place = null;
  mine = null;
  shown = Infinity;
  document.title = name;
  draw();
});
const SILENCE = 25e3;
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
  const on = (e) => {
    heard();
    hear(JSON.parse(e.data));
  };
  stream.addEventListener("snapshot", on);
  stream.addEventListener("delta", on);
  stream.addEventListener("error", () => {
    if (stream.readyState !== EventSource.CLOSED) return;
    clearTimeout(silence);
    again((frame?.poll_after_ms ?? 5e3) * (0.75 + Math.random() / 2));
  });
  heard();
}
const look = once(async () => hear(await api.get(base)));
function act({ frame: f, mine: m, until, problem: p }) {
  frame = f;
  mine = m ?? null;
  draw();
  if (until) welcome(until);
  if (p) trouble(look, sentence(p));
}
async function main() {
  const scene = new URLSearchParams(location.search).get("preview");
  if (scene !== null) {
    (await import('./preview.js')).preview(scene, act);
    return;
  }
  $("join").onclick = join;
  code.onkeydown = (e) => {
    if (e.key === "Enter") join();
  };
  $("leave").onclick = leave;
  $("sound").onchange = listen;
  document.addEventListener("visibilitychange", async () => {
    if (document.visibilityState !== "visible") return;
    await look();
    if (mine && !inside) join();
  });
  api.get(`/v1/events/${encodeURIComponent(event)}`).then((e) => {
    ({ name, zone } = e);
    document.title = name;
    $("name").textContent = name;
    $("where").textContent = `${e.venue}, ${when(e.startsAt, zone)}`;
    draw();
  }, () => {
  });
  watch();
  await look();
  if (keep.place) join();
}
main();
