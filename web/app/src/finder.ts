// The search for events: what is typed is looked for after a moment, page by page, and
// only the answer to the last question counts. It stays in the address, for a reload.

import { problem, type Api } from './api';
import { $ } from './dom';
import { t } from './lang';
import type { Found } from './wire';
import { sentence } from './words';

const PAUSE = 200; // ms after the last key
const MOST = 100; // bytes of what is looked for

/** Finder is the field of a page, what follows it when there is more, and what went wrong. */
export class Finder {
  #api: Api;
  #show: (found: Found, words: string, page: number) => void;
  #clear: () => void;
  #words = '';
  #page = 1;
  #next: number | null = null;
  #turn = 0;
  #timer = 0;

  /** show is given what was found, clear takes away what is no answer to what was asked. */
  constructor(api: Api, show: (found: Found, words: string, page: number) => void, clear: () => void) {
    this.#api = api;
    this.#show = show;
    this.#clear = clear;
    const field = $<HTMLInputElement>('words');
    field.placeholder = t.home.find;
    field.value = fits(new URLSearchParams(location.search).get('q') ?? '');
    field.oninput = () => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#typed(field.value), PAUSE);
    };
    $<HTMLFormElement>('find').onsubmit = (e) => {
      e.preventDefault();
      clearTimeout(this.#timer);
      this.#typed(field.value, true);
    };
    $('more').onclick = () => this.#ask(this.#next ?? 1);
    $('again').onclick = () => this.#ask(this.#page);
    this.#words = field.value.trim();
    this.#ask(1);
  }

  /** again asks the same once more. */
  again(): void {
    this.#ask(1);
  }

  #typed(text: string, anyway = false): void {
    const words = fits(text.trim());
    if (words === this.#words && !anyway) return;
    this.#words = words;
    const there = new URL(location.href);
    if (words) there.searchParams.set('q', words);
    else there.searchParams.delete('q');
    history.replaceState(null, '', there);
    this.#ask(1);
  }

  async #ask(page: number): Promise<void> {
    const turn = ++this.#turn;
    const words = this.#words;
    this.#page = page;
    $('events').setAttribute('aria-busy', 'true');
    try {
      const found = await this.#api.get<Found>(`/v1/events/search?${new URLSearchParams({ q: words, page: String(page) })}`, true);
      if (turn !== this.#turn) return;
      this.#next = found.next;
      this.#show(found, words, page);
      this.#trouble('');
    } catch (err) {
      const p = problem(err);
      if (turn !== this.#turn) return;
      if (page === 1) this.#clear();
      this.#trouble(sentence(p));
    }
    $('more').hidden = !$('trouble').hidden || this.#next === null;
    $('events').setAttribute('aria-busy', 'false');
  }

  #trouble(text: string): void {
    $('trouble').hidden = !text;
    $('trouble-text').textContent = text;
  }
}

/** fits cuts off what is too long to be looked for. */
function fits(text: string): string {
  let short = text;
  while (new TextEncoder().encode(short).length > MOST) short = short.slice(0, -1);
  return short;
}
