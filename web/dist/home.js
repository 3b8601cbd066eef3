import { Api, Problem } from './api.js';
import { Clock } from './clock.js';
import { h, $ } from './dom.js';
import { t } from './lang.js';
import { translate } from './page.js';
import { Session } from './session.js';
import { when, sentence } from './words.js';

const api = new Api(new Clock(), new Session());
function state(event) {
  if (event.state === "cancelled") return t.home.cancelled;
  if (event.open) return t.home.onSale;
  return Date.parse(event.opensAt) > Date.now() ? t.home.onSaleFrom(when(event.opensAt, event.zone)) : t.home.notOnSale;
}
function card(event, first) {
  return h(
    "li",
    { class: `event${first && event.open ? " first" : ""}` },
    h(
      "a",
      { href: `/events/${encodeURIComponent(event.id)}` },
      h("span", { class: `badge${event.open ? " open" : ""}` }, state(event)),
      h("h2", { dir: "auto" }, event.name),
      h("p", { dir: "auto" }, event.venue),
      h("p", { class: "soft" }, when(event.startsAt, event.zone)),
      event.open ? h("span", { class: "go" }, t.home.choose) : null
    )
  );
}
async function main() {
  translate();
  const list = $("events");
  try {
    const { events } = await api.get("/v1/events/search");
    const sorted = events.toSorted((a, b) => Number(b.open) - Number(a.open));
    list.replaceChildren(...sorted.map((e, n) => card(e, n === 0)));
    $("empty").hidden = events.length > 0;
  } catch (err) {
    $("empty").hidden = false;
    $("empty").textContent = sentence(err instanceof Problem ? err : {});
  }
}
main();
