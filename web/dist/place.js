import { slower, range } from './line.js';
import { count, number, when, hour, sentence, sameDay } from './words.js';

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
    title: `${headline(frame, mine, turn)}${name}`,
    place,
    wait: moves ? minutes(place.ahead, frame.eta) : "",
    slowed: moves ? slower(frame.slowed) : "",
    left: open ? `${count(frame.seatsLeft, "seat")} left, ${number(frame.waiting)} waiting` : "",
    join: open && mine.is === "out" && !early,
    signIn: open && stranger && mine.is !== "out" && mine.is !== "inside",
    waits: open && waits(mine),
    enter: mine.is === "inside" ? "Choose your seats" : frame.state === "none" ? "To the event" : ""
  };
}
function headline(frame, mine, turn) {
  if (turn) return "It is your turn: ";
  if (frame.state === "over") return "Nobody is let in any more: ";
  if (mine.is === "placed" && frame.state !== "none") return `${number(mine.ahead)} before you: `;
  if (frame.state !== "open" && frame.state !== "paused" || mine.is !== "out" || !mine.why) return "";
  return { spent: "Your time is over: ", lost: "You are not in the line: " }[mine.why];
}
function news(frame, mine, { now, zone, stranger, early }) {
  const tell = (time) => when(time, zone);
  if (mine.is === "inside") return `It is your turn. You have until ${hour(mine.until, zone)}.`;
  if (frame.state === "none") return sentence({ code: "no_queue" });
  if (frame.state === "over") return sentence({ code: "queue_over" });
  if (mine.is === "back") return stranger ? "Sign in to see your place." : "One moment: we look for your place.";
  if (early) return `You can join from ${tell(frame.joinsAt)}.${frame.draw ? " It does not matter who is first: there is a draw." : ""}`;
  const out = mine.is === "out";
  switch (frame.state) {
    case "draw": {
      const closesAt = frame.closesAt;
      if (now >= at(closesAt)) return out ? "The list of the draw is being closed. Whoever joins now is right behind it." : "You are on the list of the draw, which is being closed.";
      return out ? `Whoever joins before ${tell(closesAt)} takes part in the draw.` : `You take part in the draw. The list closes ${tell(closesAt)}, and the line opens ${sameDay(closesAt, frame.opensAt, zone) ? `at ${hour(frame.opensAt, zone)}` : tell(frame.opensAt)}.`;
    }
    case "closed": {
      const drawing = frame.draw && frame.draw.state !== "drawn";
      const opens = now < at(frame.opensAt) ? `The line opens ${tell(frame.opensAt)}.` : drawing ? "The line opens once the draw is held." : "The line opens any moment.";
      return mine.is === "listed" ? `You take part in the draw. ${opens}` : opens;
    }
    case "paused":
      return out ? "Nobody is let in for the moment." : "Nobody is let in for the moment. Your place is kept.";
  }
  if (mine.is === "out") {
    if (mine.why === "spent") return "Your time to choose seats is over. Join again to choose others; what you hold stays yours.";
    return mine.why === "lost" ? "You have no place in this line any more." : "The line is open.";
  }
  if (mine.is === "listed") return "The draw is held: we look up your place.";
  return stranger && called(frame, mine) ? "It is your turn. Sign in to be let in." : "Stay here: we tell you when it is your turn.";
}
const wrong = {
  offline: "We cannot reach the box office. Check your connection.",
  store_unavailable: "The box office is very busy right now. We try again in a moment.",
  internal: "Something failed on our side.",
  too_many_requests: "Very many people are here right now. We try again in a moment."
};
function trouble(problem, mine) {
  const says = wrong[problem.code];
  return says ? `${says}${waits(mine) ? " Your place is kept." : ""}` : sentence(problem);
}
function minutes(ahead, eta) {
  const r = range(ahead, eta);
  if (!r) return "";
  if (r.to === null) return "How long it takes nobody knows at the moment.";
  return r.from === r.to ? `About ${count(r.to, "minute")}.` : `Between ${number(r.from)} and ${count(r.to, "minute")}.`;
}

export { OUT, called, placed, trouble, view, waits };
