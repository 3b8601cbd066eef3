function money(amount, { currency, decimals }) {
  const f = new Intl.NumberFormat(void 0, { style: "currency", currency, minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  return f.format(amount / 10 ** (f.resolvedOptions().maximumFractionDigits ?? 0));
}
const plain = /* @__PURE__ */ new Map();
function price(amount, { currency, decimals }) {
  const key = `${currency} ${decimals}`;
  let f = plain.get(key);
  if (!f) {
    f = new Intl.NumberFormat(void 0, { style: "currency", currency, minimumFractionDigits: decimals, maximumFractionDigits: decimals, trailingZeroDisplay: "stripIfInteger" });
    plain.set(key, f);
  }
  return f.format(amount / 10 ** (f.resolvedOptions().maximumFractionDigits ?? 0));
}
function when(time, zone) {
  return new Intl.DateTimeFormat(void 0, {
    weekday: "short",
    day: "numeric",
    month: "long",
    year: "numeric",
    hour: "numeric",
    minute: "2-digit",
    timeZone: zone,
    timeZoneName: "short"
  }).format(new Date(time));
}
function hour(time, zone) {
  return new Intl.DateTimeFormat(void 0, { hour: "numeric", minute: "2-digit", timeZone: zone, timeZoneName: "short" }).format(new Date(time));
}
function sameDay(a, b, zone) {
  const day = new Intl.DateTimeFormat(void 0, { dateStyle: "short", timeZone: zone });
  return day.format(new Date(a)) === day.format(new Date(b));
}
const numbers = new Intl.NumberFormat();
const number = (n) => numbers.format(n);
const count = (n, one, many = `${one}s`) => `${number(n)} ${n === 1 ? one : many}`;
function remaining(free, held, word) {
  if (free) return `${number(free)} ${word}`;
  return held ? "none free now" : "sold out";
}
const sentences = {
  offline: "We cannot reach the box office. Check your connection; nothing you chose is lost.",
  origin_not_allowed: "The box office does not show its seats on this page. Whoever runs it can allow that for this site.",
  store_unavailable: "The box office is very busy right now. Try again in a moment; nothing you chose is lost.",
  internal: "Something failed on our side. Try again; nothing you chose is lost.",
  bad_json: "Your browser sent something we do not understand. Reload the page and try again.",
  bad_request: "Your browser sent something we do not understand. Reload the page and try again.",
  empty_booking: "Choose at least one seat first.",
  body_too_large: "That is too much for one order.",
  ticket_missing: "Sign in to see which seats are free.",
  ticket_invalid: "We could not show you which seats are free. Reload the page.",
  ticket_expired: "We could not show you which seats are free. Reload the page.",
  ticket_used: "We could not show you which seats are free. Reload the page.",
  not_operator: "Only the box office may do that.",
  token_missing: "Sign in to go on.",
  token_invalid: "Your sign-in is no longer valid. Sign in again.",
  token_expired: "You have been signed out. Sign in again; nothing you chose is lost.",
  sale_not_open: "The sale is not open at the moment.",
  event_cancelled: "This event is cancelled.",
  no_queue: "There is no waiting room for this event.",
  no_place: "You have no place in this line. Join it first.",
  queue_not_open: "It is not time yet. We try again in a moment.",
  queue_closing: "The list is being closed this very moment. We try again in a moment: you will be right behind it.",
  queue_paused: "Nobody is let in for the moment. Your place is kept.",
  code_required: "Type the code that came with your invitation.",
  bad_code: "This is not a code for this event. Check it letter by letter.",
  code_used: "Somebody has joined with this code from another account. Sign in to the account you joined with, or use another code.",
  no_proof: "Nothing needs to be checked here. Join the line.",
  proof_required: "Your browser has to be checked first. Join again.",
  bad_proof: "The check of your browser did not succeed. Join again.",
  proof_expired: "The check of your browser took too long. Join again.",
  proof_early: "The wait is not over yet. We try again in a moment.",
  proof_used: "The check of your browser was for another time. Join again.",
  queue_over: "Nobody is let in any more.",
  no_draw: "This line is in the order in which people came.",
  not_drawn: "The draw is not over yet.",
  pass_required: "People are let in one by one. Take a place in the line, and we tell you when it is your turn.",
  pass_invalid: "You are not let in with this. Take a place in the line.",
  pass_expired: "Your time to choose seats is over. Take another place in the line; what you hold stays yours.",
  pass_revoked: "Your time to choose seats is over. Take another place in the line to buy more.",
  not_your_booking: "This order belongs to another account.",
  unknown_event: "There is no such event.",
  unknown_booking: "This order is over. Choose your seats again.",
  unknown_chart: "The seat map has changed. Reload the page.",
  unknown_seat: "One of these seats is not part of this event any more. Choose another.",
  unknown_area: "This area is not part of this event any more.",
  not_found: "There is nothing here.",
  method_not_allowed: "Your browser sent something we do not understand. Reload the page and try again.",
  seats_and_best_available: "Choose seats yourself or have us choose, not both.",
  seats_taken: "Somebody was faster: the seats marked below are gone. The others are still chosen.",
  seats_lost: "Some of your seats were sold to somebody else. You have not been charged.",
  hold_expired: "The time to pay is over and your seats are free again. You can choose them once more if nobody took them.",
  payment_ended: "The time to pay is over and your seats are free again. You have not been charged. You can choose them once more if nobody took them.",
  payment_in_progress: "A payment of this order is under way. Wait for its answer.",
  booking_final: "This order is closed and cannot be changed any more.",
  too_many_seats: "That is more than one order may hold. Take some out.",
  too_many_requests: "Very many people are booking right now. Try again in a moment; nothing you chose is lost.",
  too_many_connections: "Very many people are looking at this right now. Try again in a moment; nothing you chose is lost.",
  too_many_held: "You hold as many seats as one account may. Pay for them or give some back.",
  too_many_bookings: "You hold seats in as many orders as one account may. Pay for one or give it back.",
  too_many_holds: "You have held seats very often within the hour. Wait a moment before you choose again; what you hold stays yours.",
  account_limit: "With the tickets you have, that would be more than one account may buy.",
  duplicate_seat: "A seat is in your order twice.",
  area_full: "There are not that many places left in this area.",
  idempotency_key_reused: "This order changed while it was being sent. Try again.",
  sold_out: "There is no seat left for that. Some may come back: people give seats back, or do not pay in time.",
  too_few_left: "There are not that many seats left. Ask for fewer.",
  best_taken: "Others were faster each time. Try again.",
  bad_wish: "The house cannot choose seats like that. Choose them on the map.",
  orphan_left: "That would leave a single seat beside yours, which this event does not allow. Take that seat too, or move by one.",
  booked_without_hold: "These seats were booked while seats could not be held, so they cannot be changed. Pay for them, or give them back and choose again.",
  payment_begun: "A payment of this order was tried already, so its seats stay as they are.",
  card_incomplete: "Something is missing in what you pay with: look at the fields above.",
  card_unreachable: "We cannot reach who takes the payments. Check your connection and try again; you have not been charged.",
  card_failed: "That could not be used to pay. Look at it again, or use another; you have not been charged.",
  booking_changed: "The seats of this order were changed while you paid. Nothing was charged: look at it, and pay again."
};
const ticketWords = {
  valid: "Valid",
  pending: "Confirming payment…",
  void: "Void",
  refunding: "Being refunded",
  refunded: "Refunded",
  refund_failed: "Refund failed: ask the box office"
};
const codes = Object.keys(sentences);
const UNHELD = "Seats cannot be held right now. They are yours when you have paid: whoever pays first has them, and nobody else is charged.";
const CANCELLED = "This event is cancelled. No more tickets are sold; what becomes of yours, your order says.";
const losses = {
  area_full: "There are not that many places left in this area. You have not been charged.",
  account_limit: "With the tickets you have, that is more than one account may buy. You have not been charged.",
  event_cancelled: "This event is cancelled. You have not been charged.",
  card_limit: "This card would have paid for more tickets than one card may. You have not been charged; another card will do, if the seats are still there.",
  capture_refused: "Your bank took its approval back. You have not been charged, and the seats are free again.",
  wrong_amount: "Your bank took another amount than was asked for. It goes back to you, and the seats are free again."
};
const reasons = Object.keys(losses);
function sentence({ code = "", detail, reason = "" }) {
  if (code === "seats_lost" && losses[reason]) return losses[reason];
  return sentences[code] ?? detail ?? sentences.internal;
}
const statusWords = ["available", "on hold", "sold", "not for sale"];

export { CANCELLED, UNHELD, codes, count, hour, money, number, price, reasons, remaining, sameDay, sentence, statusWords, ticketWords, when };
