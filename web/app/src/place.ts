// What an account has in a line, and what the page says of it. The page keeps nothing of
// what it says: all is worked out anew from the frame, from what the account has and
// from the time, so that nothing stays that was true once.

import type { Problem } from './api';
import { t } from './lang';
import { range, slower } from './line';
import type * as wire from './wire';
import { alone, onDay, sameDay, sentence } from './words';

/** Room is what everybody is told, or that there is no room. */
export type Room = wire.Line | { state: 'none' } & { [K in Exclude<keyof wire.Line, 'state'>]?: undefined };

/** Mine is what an account has in a line. */
export type Mine = Out | Back | Listed | Placed | Inside;

interface Known {
  ticket?: string;
  leftOut?: boolean; // the list of the draw is without its ticket
}

/** Out has no place. It had one and its time inside is over (spent), or it is there no more (lost). */
interface Out extends Known { is: 'out'; why?: 'spent' | 'lost' }

/** Back is who asks the server what became of the place that this browser keeps. */
interface Back extends Known { is: 'back' }

/** Listed has a ticket on the list of the draw, and no number yet. */
interface Listed extends Known { is: 'listed'; ticket: string }

/** Placed has a number. */
export interface Placed extends Known {
  is: 'placed';
  ticket: string;
  number: number;
  ahead: number; // so many are before it at most, who are not called yet
  from: number; // and were at the beginning
}

/** Inside may choose seats. */
interface Inside extends Known { is: 'inside'; until: string }

/** OUT is what somebody has who never joined, or has left. */
export const OUT: Mine = Object.freeze({ is: 'out' });

/** before is how many numbers are called before one is, once those up to serving are. */
export const before = (n: number, serving: number): number => Math.max(0, n - serving - 1);

/**
 * placed is a place by its number. Of the place that an account had, or a better one,
 * never more are said to be before it than there were; a higher number is another place.
 */
export function placed(was: Mine, { ticket, number: n }: { ticket: string; number: number }, serving: number, from?: number): Placed {
  const ahead = before(n, serving);
  const same = was.is === 'placed' && was.ticket === ticket && n <= was.number;
  return { is: 'placed', ticket, number: n, ahead: same ? Math.min(was.ahead, ahead) : ahead, from: from ?? Math.max(1, ahead), leftOut: was.leftOut };
}

/** waits says that an account is in the line, or on the list of the draw. */
export const waits = (mine: Mine): boolean => mine.is === 'listed' || mine.is === 'placed';

/** called says that it is the turn of somebody who is not inside yet. */
export const called = (frame: Room | null, mine: Mine): boolean => frame?.state === 'open' && mine.is === 'placed' && mine.number <= frame.serving;

const at = (time: string | null | undefined) => Date.parse(time ?? ''); // NaN, which nothing is before or after, where there is none

interface Here {
  now: number; // the server's time
  zone: string;
  name: string;
  stranger: boolean; // has to sign in first
  joining: boolean; // has asked for a place while the list was being closed, and asks again
}

/** View is what a page shows. */
export type View = ReturnType<typeof view>;

/** view works out what a page shows. */
export function view(frame: Room, mine: Mine, { now, zone, name, stranger, joining }: Here) {
  const open = frame.state !== 'over' && frame.state !== 'none';
  const early = mine.is === 'out' && now < at(frame.joinsAt);
  const closing = frame.state === 'draw' ? joining || now >= at(frame.closesAt) : frame.state === 'closed' && frame.draw?.state === 'announced'; // or closed, and not frozen yet
  const turn = mine.is === 'inside' || stranger && called(frame, mine);
  const place = open && mine.is === 'placed' && !called(frame, mine) ? mine : null;
  const moves = place && frame.state === 'open';
  return {
    turn,
    news: news(frame, mine, { now, zone, stranger, joining, early, closing }),
    title: [headline(frame, mine, turn), name].filter(Boolean).join(': '),
    place,
    until: until(frame, mine, { now, early }),
    wait: moves ? minutes(place.ahead + 1, frame.eta) : '',
    slowed: moves ? slower(frame.slowed) : '',
    left: open && !early ? left(frame, mine) : '',
    join: open && mine.is === 'out' && !early && !closing ? frame.state === 'draw' ? t.queue.joinList : t.queue.join : '',
    signIn: open && stranger && mine.is !== 'out' && mine.is !== 'inside',
    waits: open && waits(mine),
    enter: mine.is === 'inside' ? t.queue.enter : frame.state === 'none' ? t.queue.toEvent : '',
    over: frame.state === 'over' && mine.is !== 'inside',
  };
}

/** left is how many seats are left, and how many people wait. Who waits is not told that nobody does. */
function left({ seatsLeft, waiting }: wire.Line, mine: Mine): string {
  return waiting || !waits(mine) ? t.queue.left(seatsLeft, waiting) : t.queue.seatsLeft(seatsLeft);
}

/** until is what is next, and when, in Unix milliseconds; null while nobody knows. */
function until(frame: Room, mine: Mine, { now, early }: { now: number; early: boolean }): { says: string; at: number } | null {
  const { until: says } = t.queue;
  const next = mine.is === 'inside' ? { says: says.inside, at: at(mine.until) }
    : early ? { says: says.join, at: at(frame.joinsAt) }
    : frame.state === 'draw' ? { says: says.close, at: at(frame.closesAt) }
    : frame.state === 'closed' ? { says: says.open, at: at(frame.opensAt) }
    : null;
  return next && next.at > now ? next : null;
}

/** headline is what the title tells whoever looks at another tab. */
function headline(frame: Room, mine: Mine, turn: boolean): string {
  if (turn) return t.queue.titles.turn;
  if (frame.state === 'over') return t.queue.titles.over;
  if (called(frame, mine)) return t.queue.titles.called;
  if (mine.is === 'placed' && frame.state !== 'none') return mine.ahead ? t.queue.titles.ahead(mine.ahead) : t.queue.titles.next;
  if (frame.state !== 'open' && frame.state !== 'paused' || mine.is !== 'out' || !mine.why) return '';
  return t.queue.titles[mine.why];
}

function news(frame: Room, mine: Mine, { now, zone, stranger, joining, early, closing }: Omit<Here, 'name'> & { early: boolean; closing: boolean }): string {
  const tell = (time: string) => onDay(time, now, zone);
  if (mine.is === 'inside') return t.queue.turn(tell(mine.until));
  if (frame.state === 'none') return sentence({ code: 'no_queue' });
  if (frame.state === 'over') return [frame.seatsLeft === 0 && t.queue.soldOut, sentence({ code: 'queue_over' })].filter(Boolean).join(' ');
  if (mine.is === 'back') return stranger ? t.queue.signInToSee : t.queue.looking;
  if (early) return [t.queue.joinFrom(tell(frame.joinsAt)), frame.draw && t.queue.joinDraw].filter(Boolean).join(' ');
  const out = mine.is === 'out';
  if (closing) return [mine.is === 'listed' && t.queue.listed, t.queue.drawing, out && (joining ? t.queue.joining : t.queue.joinSoon)].filter(Boolean).join(' ');
  switch (frame.state) {
    case 'draw': {
      const { closesAt } = frame;
      if (!closesAt) return out ? t.queue.joinNow : t.queue.listed;
      const closes = alone(closesAt, now, zone);
      const says = out ? t.queue.joinBefore(closes) : `${t.queue.listed} ${(sameDay(closesAt, now, zone) ? t.queue.closesAt : t.queue.closes)(closes)}`;
      return `${says} ${t.queue.opens(tell(frame.opensAt))}`;
    }
    case 'closed': {
      const drawing = frame.draw && frame.draw.state !== 'drawn';
      return [
        mine.is === 'listed' && t.queue.listed, drawing && t.queue.drawing, out && (drawing ? t.queue.joinBehind : t.queue.joinAlready),
        now < at(frame.opensAt) ? t.queue.opens(tell(frame.opensAt)) : drawing ? t.queue.opensWhenDrawn : t.queue.opensAnyMoment,
      ].filter(Boolean).join(' ');
    }
    case 'paused':
      return out ? t.queue.paused : t.queue.pausedKept;
  }
  if (mine.is === 'out') {
    if (mine.why === 'spent') return t.queue.spent;
    return mine.why === 'lost' ? t.queue.lost : t.queue.open;
  }
  if (mine.is === 'listed') return t.queue.drawn;
  if (!called(frame, mine)) return t.queue.stay;
  return stranger ? t.queue.turnSignIn : t.queue.called;
}

/** trouble says a problem to somebody in a line: what everybody meets in its own words. */
export function trouble(problem: Problem, mine: Mine): string {
  const { trouble: wrong, placeKept } = t.queue;
  if (!Object.hasOwn(wrong, problem.code)) return sentence(problem);
  const says = wrong[problem.code as keyof typeof wrong];
  return waits(mine) ? `${says} ${placeKept}` : says;
}

/** minutes says how long a wait may be. */
function minutes(ahead: number, eta: wire.Eta | null): string {
  const r = range(ahead, eta);
  if (!r) return '';
  if (r.to === null) return t.queue.nobodyKnows;
  return r.from === r.to ? t.queue.about(r.to) : t.queue.between(r.from, r.to);
}
