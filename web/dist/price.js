function allIn(prices, fees = []) {
  const sum = (all) => all.reduce((t, n) => t + n, 0);
  const of = {
    ticket: (f) => (f.amount ?? 0) * prices.length,
    percent: (f) => sum(prices.map((p) => Math.floor((p * (f.basisPoints ?? 0) + 5e3) / 1e4))),
    order: (f) => prices.length ? f.amount ?? 0 : 0
  };
  const told = fees.map((f) => ({ name: f.name, amount: of[f.per](f) }));
  return { total: sum(prices) + sum(told.map((f) => f.amount)), fees: told };
}

export { allIn };
