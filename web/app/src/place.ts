// What an account has in a line, and what the page says of it. The page keeps nothing of
// what it says: all is worked out anew from the frame, from what the account has and
// from the time, so that nothing stays that was true once.

import type { Problem } from './api';
import { t } from './lang';
import { range, slower } from './line';
import type * as wire from './wire';
import { hour, sameDay, sentence, when } from './words';

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
  ahead: number; // so many are before it at most
  from: number; // and were at the beginning
}

/** Inside may choose seats. */
interface Inside extends Known { is: 'inside'; until: string }

/** OUT is what somebody has who never joined, or has left. */
export const OUT: Mine = Object.freeze({ is: 'out' });

/**
 * placed is a place by its number. Of the place that an account had, or a better one,
 * never more are said to be before it than there were; a higher number is another place.
 */
export function placed(was: Mine, { ticket, number: n }: { ticket: string; number: number }, serving: number, from?: number): Placed {
  const ahead = Math.max(0, n - serving);
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
}

/** View is what a page shows. */
export type View = ReturnType<typeof view>;

/** view works out what a page shows. */
export function view(frame: Room, mine: Mine, { now, zone, name, stranger }: Here) {
  const open = frame.state !== 'over' && frame.state !== 'none';
  const early = mine.is === 'out' && now < at(frame.joinsAt);
  const turn = mine.is === 'inside' || stranger && called(frame, mine);
  const place = open && mine.is === 'placed' && !turn ? mine : null;
  const moves = place && frame.state === 'open' && place.ahead > 0;
  return {
    turn,
    news: news(frame, mine, { now, zone, stranger, early }),
    title: [headline(frame, mine, turn), name].filter(Boolean).join(': '),
    place,
    wait: moves ? minutes(place.ahead, frame.eta) : '',
    slowed: moves ? slower(frame.slowed) : '',
    left: open && !early ? t.queue.left(frame.seatsLeft, frame.waiting) : '',
    join: open && mine.is === 'out' && !early,
    signIn: open && stranger && mine.is !== 'out' && mine.is !== 'inside',
    waits: open && waits(mine),
    enter: mine.is === 'inside' ? t.queue.enter : frame.state === 'none' ? t.queue.toEvent : '',
    over: frame.state === 'over' && mine.is !== 'inside',
  };
}

/** headline is what the title tells whoever looks at another tab. */
function headline(frame: Room, mine: Mine, turn: boolean): string {
  if (turn) return t.queue.titles.turn;
  if (frame.state === 'over') return t.queue.titles.over;
  if (mine.is === 'placed' && frame.state !== 'none') return t.queue.titles.ahead(mine.ahead);
  if (frame.state !== 'open' && frame.state !== 'paused' || mine.is !== 'out' || !mine.why) return '';
  return t.queue.titles[mine.why];
}

function news(frame: Room, mine: Mine, { now, zone, stranger, early }: Omit<Here, 'name'> & { early: boolean }): string {
  const tell = (time: string) => when(time, zone);
  if (mine.is === 'inside') return t.queue.until(hour(mine.until, zone));
  if (frame.state === 'none') return sentence({ code: 'no_queue' });
  if (frame.state === 'over') return [frame.seatsLeft === 0 && t.queue.soldOut, sentence({ code: 'queue_over' })].filter(Boolean).join(' ');
  if (mine.is === 'back') return stranger ? t.queue.signInToSee : t.queue.looking;
  if (early) return [t.queue.joinFrom(tell(frame.joinsAt)), frame.draw && t.queue.joinDraw].filter(Boolean).join(' ');
  const out = mine.is === 'out';
  switch (frame.state) {
    case 'draw': {
      const { closesAt } = frame;
      if (!closesAt) return out ? t.queue.joinNow : t.queue.listed;
      if (now >= at(closesAt)) return out ? t.queue.closingOut : t.queue.closingIn;
      if (out) return t.queue.joinBefore(tell(closesAt));
      return sameDay(closesAt, frame.opensAt, zone) ? t.queue.closesThenOpensAt(tell(closesAt), hour(frame.opensAt, zone)) : t.queue.closesThenOpens(tell(closesAt), tell(frame.opensAt));
    }
    case 'closed': {
      const drawing = frame.draw && frame.draw.state !== 'drawn';
      const opens = now < at(frame.opensAt) ? t.queue.opens(tell(frame.opensAt)) : drawing ? t.queue.opensWhenDrawn : t.queue.opensAnyMoment;
      return mine.is === 'listed' ? `${t.queue.listed} ${opens}` : opens;
    }
    case 'paused':
      return out ? t.queue.paused : t.queue.pausedKept;
  }
  if (mine.is === 'out') {
    if (mine.why === 'spent') return t.queue.spent;
    return mine.why === 'lost' ? t.queue.lost : t.queue.open;
  }
  if (mine.is === 'listed') return t.queue.drawn;
  return stranger && called(frame, mine) ? t.queue.turnSignIn : t.queue.stay;
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
