import { t } from './lang.js';
import { slower, range } from './line.js';
import { onDay, sentence, alone, sameDay } from './words.js';

const OUT = Object.freeze({ is: "out" });
const before = (n, serving) => Math.max(0, n - serving - 1);
function placed(was, { ticket, number: n }, serving, from) {
  const ahead = before(n, serving);
  const same = was.is === "placed" && was.ticket === ticket && n <= was.number;
  return { is: "placed", ticket, number: n, ahead: same ? Math.min(was.ahead, ahead) : ahead, from: from ?? Math.max(1, ahead), leftOut: was.leftOut };
}
const waits = (mine) => mine.is === "listed" || mine.is === "placed";
const called = (frame, mine) => frame?.state === "open" && mine.is === "placed" && mine.number <= frame.serving;
const at = (time) => Date.parse(time ?? "");
function view(frame, mine, { now, zone, name, stranger, joining }) {
  const open = frame.state !== "over" && frame.state !== "none";
  const early = mine.is === "out" && now < at(frame.joinsAt);
  const closing = frame.state === "draw" ? joining || now >= at(frame.closesAt) : frame.state === "closed" && frame.draw?.state === "announced";
  const turn = mine.is === "inside" || stranger && called(frame, mine);
  const place = open && mine.is === "placed" && !called(frame, mine) ? mine : null;
  const moves = place && frame.state === "open";
  return {
    turn,
    news: news(frame, mine, { now, zone, stranger, joining, early, closing }),
    title: [headline(frame, mine, turn), name].filter(Boolean).join(": "),
    place,
    until: until(frame, mine, { now, early }),
    wait: moves ? minutes(place.ahead + 1, frame.eta) : "",
    slowed: moves ? slower(frame.slowed) : "",
    left: open && !early ? left(frame, mine) : "",
    join: open && mine.is === "out" && !early && !closing ? frame.state === "draw" ? t.queue.joinList : t.queue.join : "",
    signIn: open && stranger && mine.is !== "out" && mine.is !== "inside",
    waits: open && waits(mine),
    enter: mine.is === "inside" ? t.queue.enter : frame.state === "none" ? t.queue.toEvent : "",
    over: frame.state === "over" && mine.is !== "inside"
  };
}
function left({ seatsLeft, waiting }, mine) {
  return waiting || !waits(mine) ? t.queue.left(seatsLeft, waiting) : t.queue.seatsLeft(seatsLeft);
}
function until(frame, mine, { now, early }) {
  const { until: says } = t.queue;
  const next = mine.is === "inside" ? { says: says.inside, at: at(mine.until) } : early ? { says: says.join, at: at(frame.joinsAt) } : frame.state === "draw" ? { says: says.close, at: at(frame.closesAt) } : frame.state === "closed" ? { says: says.open, at: at(frame.opensAt) } : null;
  return next && next.at > now ? next : null;
}
function headline(frame, mine, turn) {
  if (turn) return t.queue.titles.turn;
  if (frame.state === "over") return t.queue.titles.over;
  if (called(frame, mine)) return t.queue.titles.called;
  if (mine.is === "placed" && frame.state !== "none") return mine.ahead ? t.queue.titles.ahead(mine.ahead) : t.queue.titles.next;
  if (frame.state !== "open" && frame.state !== "paused" || mine.is !== "out" || !mine.why) return "";
  return t.queue.titles[mine.why];
}
function news(frame, mine, { now, zone, stranger, joining, early, closing }) {
  const tell = (time) => onDay(time, now, zone);
  if (mine.is === "inside") return t.queue.turn(tell(mine.until));
  if (frame.state === "none") return sentence({ code: "no_queue" });
  if (frame.state === "over") return [frame.seatsLeft === 0 && t.queue.soldOut, sentence({ code: "queue_over" })].filter(Boolean).join(" ");
  if (mine.is === "back") return stranger ? t.queue.signInToSee : t.queue.looking;
  if (early) return [t.queue.joinFrom(tell(frame.joinsAt)), frame.draw && t.queue.joinDraw].filter(Boolean).join(" ");
  const out = mine.is === "out";
  if (closing) return [mine.is === "listed" && t.queue.listed, t.queue.drawing, out && (joining ? t.queue.joining : t.queue.joinSoon)].filter(Boolean).join(" ");
  switch (frame.state) {
    case "draw": {
      const { closesAt } = frame;
      if (!closesAt) return out ? t.queue.joinNow : t.queue.listed;
      const closes = alone(closesAt, now, zone);
      const says = out ? t.queue.joinBefore(closes) : `${t.queue.listed} ${(sameDay(closesAt, now, zone) ? t.queue.closesAt : t.queue.closes)(closes)}`;
      return `${says} ${t.queue.opens(tell(frame.opensAt))}`;
    }
    case "closed": {
      const drawing = frame.draw && frame.draw.state !== "drawn";
      return [
        mine.is === "listed" && t.queue.listed,
        drawing && t.queue.drawing,
        out && (drawing ? t.queue.joinBehind : t.queue.joinAlready),
        now < at(frame.opensAt) ? t.queue.opens(tell(frame.opensAt)) : drawing ? t.queue.opensWhenDrawn : t.queue.opensAnyMoment
      ].filter(Boolean).join(" ");
    }
    case "paused":
      return out ? t.queue.paused : t.queue.pausedKept;
  }
  if (mine.is === "out") {
    if (mine.why === "spent") return t.queue.spent;
    return mine.why === "lost" ? t.queue.lost : t.queue.open;
  }
  if (mine.is === "listed") return t.queue.drawn;
  if (!called(frame, mine)) return t.queue.stay;
  return stranger ? t.queue.turnSignIn : t.queue.called;
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

export { OUT, before, called, placed, trouble, view, waits };
