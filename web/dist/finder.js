import { problem } from './api.js';
import { $ } from './dom.js';
import { t } from './lang.js';
import { sentence } from './words.js';

const PAUSE = 200;
const MOST = 100;
class Finder {
  #api;
  #show;
  #clear;
  #words = "";
  #page = 1;
  #next = null;
  #turn = 0;
  #timer = 0;
  /** show is given what was found, clear takes away what is no answer to what was asked. */
  constructor(api, show, clear) {
    this.#api = api;
    this.#show = show;
    this.#clear = clear;
    const field = $("words");
    field.placeholder = t.home.find;
    field.value = fits(new URLSearchParams(location.search).get("q") ?? "");
    field.oninput = () => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#typed(field.value), PAUSE);
    };
    $("find").onsubmit = (e) => {
      e.preventDefault();
      clearTimeout(this.#timer);
      this.#typed(field.value, true);
    };
    $("more").onclick = () => this.#ask(this.#next ?? 1);
    $("again").onclick = () => this.#ask(this.#page);
    this.#words = field.value.trim();
    this.#ask(1);
  }
  /** again asks the same once more. */
  again() {
    this.#ask(1);
  }
  #typed(text, anyway = false) {
    const words = fits(text.trim());
    if (words === this.#words && !anyway) return;
    this.#words = words;
    const there = new URL(location.href);
    if (words) there.searchParams.set("q", words);
    else there.searchParams.delete("q");
    history.replaceState(null, "", there);
    this.#ask(1);
  }
  async #ask(page) {
    const turn = ++this.#turn;
    const words = this.#words;
    this.#page = page;
    $("events").setAttribute("aria-busy", "true");
    try {
      const found = await this.#api.get(`/v1/events/search?${new URLSearchParams({ q: words, page: String(page) })}`, true);
      if (turn !== this.#turn) return;
      this.#next = found.next;
      this.#show(found, words, page);
      this.#trouble("");
    } catch (err) {
      const p = problem(err);
      if (turn !== this.#turn) return;
      if (page === 1) this.#clear();
      this.#trouble(sentence(p));
    }
    $("more").hidden = !$("trouble").hidden || this.#next === null;
    $("events").setAttribute("aria-busy", "false");
  }
  #trouble(text) {
    $("trouble").hidden = !text;
    $("trouble-text").textContent = text;
  }
}
function fits(text) {
  let short = text;
  while (new TextEncoder().encode(short).length > MOST) short = short.slice(0, -1);
  return short;
}

export { Finder };
