// What a choice will cost, as the server will say when it is held.

import type { Fee, QuotedFee } from './wire';

/** Costs are what a choice comes to: all in, and what of it is which fee. */
export interface Costs { total: number; fees: QuotedFee[] }

/** allIn adds an event's fees to the prices of tickets, one for each. */
export function allIn(prices: number[], fees: Fee[] = []): Costs {
  const sum = (all: number[]) => all.reduce((t, n) => t + n, 0);
  const of = {
    ticket: (f: Fee) => (f.amount ?? 0) * prices.length,
    percent: (f: Fee) => sum(prices.map((p) => Math.floor((p * (f.basisPoints ?? 0) + 5000) / 10000))),
    order: (f: Fee) => (prices.length ? f.amount ?? 0 : 0),
  };
  const told = fees.map((f) => ({ name: f.name, amount: of[f.per](f) }));
  return { total: sum(prices) + sum(told.map((f) => f.amount)), fees: told };
}
