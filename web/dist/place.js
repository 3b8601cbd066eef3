import { t } from './lang.js';
import { slower, range } from './line.js';
import { when, hour, sentence, sameDay } from './words.js';

const OUT = Object.freeze({ is: "out" });
function placed(was, { ticket, number: n }, serving, from) {
  const ahead = Math.max(0, n - serving);
  const same = was.is === "placed" && was.ticket === ticket && n <= was.number;
  return { is: "placed", ticket, number: n, ahead: same ? Math.min(was.ahead, ahead) : ahead, from: from ?? Math.max(1, ahead), leftOut: was.leftOut };
}
const waits = (mine) => mine.is === "listed" || mine.is === "placed";
const called = (frame, mine) => frame?.state === "open" && mine.is === "placed" && mine.number <= frame.serving;
const at = (time) => Date.parse(time ?? "");
function view(frame, mine, { now, zone, name, stranger }) {
  const open = frame.state !== "over" && frame.state !== "none";
  const early = mine.is === "out" && now < at(frame.joinsAt);
  const turn = mine.is === "inside" || stranger && called(frame, mine);
  const place = open && mine.is === "placed" && !turn ? mine : null;
  const moves = place && frame.state === "open" && place.ahead > 0;
  return {
    turn,
    news: news(frame, mine, { now, zone, stranger, early }),
    title: [headline(frame, mine, turn), name].filter(Boolean).join(": "),
    place,
    wait: moves ? minutes(place.ahead, frame.eta) : "",
    slowed: moves ? slower(frame.slowed) : "",
    left: open && !early ? t.queue.left(frame.seatsLeft, frame.waiting) : "",
    join: open && mine.is === "out" && !early,
    signIn: open && stranger && mine.is !== "out" && mine.is !== "inside",
    waits: open && waits(mine),
    enter: mine.is === "inside" ? t.queue.enter : frame.state === "none" ? t.queue.toEvent : "",
    over: frame.state === "over" && mine.is !== "inside"
  };
}
function headline(frame, mine, turn) {
  if (turn) return t.queue.titles.turn;
  if (frame.state === "over") return t.queue.titles.over;
  if (mine.is === "placed" && frame.state !== "none") return t.queue.titles.ahead(mine.ahead);
  if (frame.state !== "open" && frame.state !== "paused" || mine.is !== "out" || !mine.why) return "";
  return t.queue.titles[mine.why];
}
function news(frame, mine, { now, zone, stranger, early }) {
  const tell = (time) => when(time, zone);
  if (mine.is === "inside") return t.queue.until(hour(mine.until, zone));
  if (frame.state === "none") return sentence({ code: "no_queue" });
  if (frame.state === "over") return [frame.seatsLeft === 0 && t.queue.soldOut, sentence({ code: "queue_over" })].filter(Boolean).join(" ");
  if (mine.is === "back") return stranger ? t.queue.signInToSee : t.queue.looking;
  if (early) return [t.queue.joinFrom(tell(frame.joinsAt)), frame.draw && t.queue.joinDraw].filter(Boolean).join(" ");
  const out = mine.is === "out";
  switch (frame.state) {
    case "draw": {
      const { closesAt } = frame;
      if (!closesAt) return out ? t.queue.joinNow : t.queue.listed;
      if (now >= at(closesAt)) return out ? t.queue.closingOut : t.queue.closingIn;
      if (out) return t.queue.joinBefore(tell(closesAt));
      return sameDay(closesAt, frame.opensAt, zone) ? t.queue.closesThenOpensAt(tell(closesAt), hour(frame.opensAt, zone)) : t.queue.closesThenOpens(tell(closesAt), tell(frame.opensAt));
    }
    case "closed": {
      const drawing = frame.draw && frame.draw.state !== "drawn";
      const opens = now < at(frame.opensAt) ? t.queue.opens(tell(frame.opensAt)) : drawing ? t.queue.opensWhenDrawn : t.queue.opensAnyMoment;
      return mine.is === "listed" ? `${t.queue.listed} ${opens}` : opens;
    }
    case "paused":
      return out ? t.queue.paused : t.queue.pausedKept;
  }
  if (mine.is === "out") {
    if (mine.why === "spent") return t.queue.spent;
    return mine.why === "lost" ? t.queue.lost : t.queue.open;
  }
  if (mine.is === "listed") return t.queue.drawn;
  return stranger && called(frame, mine) ? t.queue.turnSignIn : t.queue.stay;
}
function trouble(problem, mine) {
  const { trouble: wrong, placeKept } = t.queue;
  if (!Object.hasOwn(wrong, problem.code)) return sentence(problem);
  const says = wrong[problem.code];
  return waits(mine) ? `${says} ${placeKept}` : says;
}
function minutes(ahead, eta) {
  const r = range(ahead, eta);
  if (!r) return "";
  if (r.to === null) return t.queue.nobodyKnows;
  return r.from === r.to ? t.queue.about(r.to) : t.queue.between(r.from, r.to);
}

export { OUT, called, placed, trouble, view, waits };
