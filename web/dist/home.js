import { Api, Problem } from './api.js';
import { Clock } from './clock.js';
import { h, $ } from './dom.js';
import { Session } from './session.js';
import { when, sentence } from './words.js';

const api = new Api(new Clock(), new Session());
function state(event) {
  if (event.state === "cancelled") return "Cancelled";
  if (event.open) return "On sale";
  return Date.parse(event.opensAt) > Date.now() ? `On sale ${when(event.opensAt, event.zone)}` : "Not on sale";
}
function card(event, first) {
  return h(
    "li",
    { class: `event${first && event.open ? " first" : ""}` },
    h(
      "a",
      { href: `/events/${encodeURIComponent(event.id)}` },
      h("span", { class: `badge${event.open ? " open" : ""}` }, state(event)),
      h("h2", {}, event.name),
      h("p", {}, event.venue),
      h("p", { class: "soft" }, when(event.startsAt, event.zone)),
      event.open ? h("span", { class: "go" }, "Choose seats") : null
    )
  );
}
async function main() {
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
