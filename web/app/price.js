// What a choice will cost, as the server will say when it is held.

/**
 * allIn adds an event's fees to the prices of tickets.
 * @param {number[]} prices minor units, one for each ticket
 * @param {{name: string, per: 'ticket'|'percent'|'order', amount?: number, basisPoints?: number}[]} [fees]
 * @returns {{total: number, fees: {name: string, amount: number}[]}}
 */
export function allIn(prices, fees = []) {
  const sum = (all) => all.reduce((t, n) => t + n, 0);
  const of = {
    ticket: (f) => (f.amount ?? 0) * prices.length,
    percent: (f) => sum(prices.map((p) => Math.floor((p * (f.basisPoints ?? 0) + 5000) / 10000))),
    order: (f) => (prices.length ? f.amount ?? 0 : 0),
  };
  const told = fees.map((f) => ({ name: f.name, amount: of[f.per](f) }));
  return { total: sum(prices) + sum(told.map((f) => f.amount)), fees: told };
}
