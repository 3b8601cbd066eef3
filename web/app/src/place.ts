// What an account has in a line, and what the page says of it. The page keeps nothing of
// what it says: all is worked out anew from the frame, from what the account has and
// from the time, so that nothing stays that was true once.

import type { Problem } from './api';
import { range, slower } from './line';
import type * as wire from './wire';
import { count, hour, number, sameDay, sentence, when } from './words';

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
    title: `${headline(frame, mine, turn)}${name}`,
    place,
    wait: moves ? minutes(place.ahead, frame.eta) : '',
    slowed: moves ? slower(frame.slowed) : '',
    left: open ? `${count(frame.seatsLeft, 'seat')} left, ${number(frame.waiting)} waiting` : '',
    join: open && mine.is === 'out' && !early,
    signIn: open && stranger && mine.is !== 'out' && mine.is !== 'inside',
    waits: open && waits(mine),
    enter: mine.is === 'inside' ? 'Choose your seats' : frame.state === 'none' ? 'To the event' : '',
  };
}

/** headline is what the title tells whoever looks at another tab. */
function headline(frame: Room, mine: Mine, turn: boolean): string {
  if (turn) return 'It is your turn: ';
  if (frame.state === 'over') return 'Nobody is let in any more: ';
  if (mine.is === 'placed' && frame.state !== 'none') return `${number(mine.ahead)} before you: `;
  if (frame.state !== 'open' && frame.state !== 'paused' || mine.is !== 'out' || !mine.why) return '';
  return { spent: 'Your time is over: ', lost: 'You are not in the line: ' }[mine.why];
}

function news(frame: Room, mine: Mine, { now, zone, stranger, early }: Omit<Here, 'name'> & { early: boolean }): string {
  const tell = (time: string) => when(time, zone);
  if (mine.is === 'inside') return `It is your turn. You have until ${hour(mine.until, zone)}.`;
  if (frame.state === 'none') return sentence({ code: 'no_queue' });
  if (frame.state === 'over') return sentence({ code: 'queue_over' });
  if (mine.is === 'back') return stranger ? 'Sign in to see your place.' : 'One moment: we look for your place.';
  if (early) return `You can join from ${tell(frame.joinsAt)}.${frame.draw ? ' It does not matter who is first: there is a draw.' : ''}`;
  const out = mine.is === 'out';
  switch (frame.state) {
    case 'draw': {
      const closesAt = frame.closesAt!;
      if (now >= at(closesAt)) return out ? 'The list of the draw is being closed. Whoever joins now is right behind it.' : 'You are on the list of the draw, which is being closed.';
      return out ? `Whoever joins before ${tell(closesAt)} takes part in the draw.`
        : `You take part in the draw. The list closes ${tell(closesAt)}, and the line opens ${sameDay(closesAt, frame.opensAt, zone) ? `at ${hour(frame.opensAt, zone)}` : tell(frame.opensAt)}.`;
    }
    case 'closed': {
      const drawing = frame.draw && frame.draw.state !== 'drawn';
      const opens = now < at(frame.opensAt) ? `The line opens ${tell(frame.opensAt)}.` : drawing ? 'The line opens once the draw is held.' : 'The line opens any moment.';
      return mine.is === 'listed' ? `You take part in the draw. ${opens}` : opens;
    }
    case 'paused':
      return out ? 'Nobody is let in for the moment.' : 'Nobody is let in for the moment. Your place is kept.';
  }
  if (mine.is === 'out') {
    if (mine.why === 'spent') return 'Your time to choose seats is over. Join again to choose others; what you hold stays yours.';
    return mine.why === 'lost' ? 'You have no place in this line any more.' : 'The line is open.';
  }
  if (mine.is === 'listed') return 'The draw is held: we look up your place.';
  return stranger && called(frame, mine) ? 'It is your turn. Sign in to be let in.' : 'Stay here: we tell you when it is your turn.';
}

const wrong: Record<string, string> = {
  offline: 'We cannot reach the box office. Check your connection.',
  store_unavailable: 'The box office is very busy right now. We try again in a moment.',
  internal: 'Something failed on our side.',
  too_many_requests: 'Very many people are here right now. We try again in a moment.',
};

/** trouble says a problem to somebody in a line: what everybody meets in its own words. */
export function trouble(problem: Problem, mine: Mine): string {
  const says = wrong[problem.code];
  return says ? `${says}${waits(mine) ? ' Your place is kept.' : ''}` : sentence(problem);
}

/** minutes says how long a wait may be. */
function minutes(ahead: number, eta: wire.Eta | null): string {
  const r = range(ahead, eta);
  if (!r) return '';
  if (r.to === null) return 'How long it takes nobody knows at the moment.';
  return r.from === r.to ? `About ${count(r.to, 'minute')}.` : `Between ${number(r.from)} and ${count(r.to, 'minute')}.`;
}
