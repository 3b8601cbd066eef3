import { t } from './lang.js';
import { inManner } from './locale.js';

function money(amount, { currency, decimals }) {
  const f = new Intl.NumberFormat(inManner(), { style: "currency", currency, minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  return f.format(amount / 10 ** (f.resolvedOptions().maximumFractionDigits ?? 0));
}
const plain = /* @__PURE__ */ new Map();
function price(amount, { currency, decimals }) {
  const key = `${inManner()} ${currency} ${decimals}`;
  let f = plain.get(key);
  if (!f) {
    f = new Intl.NumberFormat(inManner(), { style: "currency", currency, minimumFractionDigits: decimals, maximumFractionDigits: decimals, trailingZeroDisplay: "stripIfInteger" });
    plain.set(key, f);
  }
  return f.format(amount / 10 ** (f.resolvedOptions().maximumFractionDigits ?? 0));
}
const HOUR = { hour: "numeric", minute: "2-digit" };
const DAY = { weekday: "short", day: "numeric", month: "short" };
const WHEN = { ...DAY, year: "numeric", ...HOUR };
const when = (time, zone) => moment(time, zone, WHEN);
const hour = (time, zone) => moment(time, zone, HOUR);
const onDay = (time, day, zone) => (sameDay(time, day, zone) ? hour : when)(time, zone);
const alone = (time, day, zone) => written(time, sameDay(time, day, zone) ? HOUR : WHEN, zone);
const there = (time, zone) => `${written(time, WHEN, zone)} (${zone})`;
function moment(time, zone, as) {
  const day = written(time, DAY) === written(time, DAY, zone);
  const same = day && written(time, HOUR) === written(time, HOUR, zone);
  return `${written(time, as, zone)} (${same ? zone : `${zone}; ${t.page.yourTime(written(time, day ? HOUR : { ...DAY, ...HOUR }))}`})`;
}
const written = (time, how, timeZone) => new Intl.DateTimeFormat(inManner(), { ...how, timeZone }).format(new Date(time)).replace(/[ \u202f](?=[ap]m\b)/i, " ");
function sameDay(a, b, zone) {
  const day = new Intl.DateTimeFormat(inManner(), { dateStyle: "short", timeZone: zone });
  return day.format(new Date(a)) === day.format(new Date(b));
}
const dotted = (...words) => words.filter((w) => w).join(" · ");
function remaining({ known }, free, held, says) {
  if (!known) return "";
  if (free) return says(free);
  return held ? t.left.noneNow : t.left.soldOut;
}
function leftIn(state, area, says) {
  const left = state.areas.get(area) ?? 0;
  if (!state.known) return "";
  return left ? says(left) : t.left.full;
}
const declineWords = (reason, unheld) => `${own(t.declines, reason) ?? t.declines.card_declined} ${unheld ? t.panel.tryAgainUnheld : t.panel.tryAgain}`;
const { compare } = new Intl.Collator("en", { numeric: true });
const byPlace = (a, b) => Number(!a.section) - Number(!b.section) || compare(a.section ?? "", b.section ?? "") || compare(a.row ?? "", b.row ?? "") || compare(a.label ?? "", b.label ?? "");
const own = (says, name) => Object.hasOwn(says, name) ? says[name] : void 0;
const ticketWords = (status) => own(t.ticket.status, status) ?? status;
function sentence({ code = "", detail, reason = "" }) {
  return code === "seats_lost" && own(t.losses, reason) || own(t.problems, code) || detail || t.problems.internal;
}

export { alone, byPlace, declineWords, dotted, hour, leftIn, money, onDay, price, remaining, sameDay, sentence, there, ticketWords, when };
