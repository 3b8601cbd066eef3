// What a page of ours says before anything is asked of the server: its language, and the
// words in its HTML, which are named there and come from the catalogue.

import { h } from './dom';
import { languageOf, languages, speak, t } from './lang';
import { inManner } from './locale';

const KEPT = 'seatcast.language';

/**
 * translate has the page speak the language that its address asks for (?lang=de), which
 * is remembered, else the one that is remembered, else the first of the browser's that
 * there is. An element with data-say has the words of that name, one with data-label is called so.
 */
export function translate(): void {
  const asked = new URLSearchParams(location.search).get('lang') ?? '';
  if (languageOf(asked)) localStorage.setItem(KEPT, asked);
  speak([localStorage.getItem(KEPT) ?? '', ...navigator.languages]);
  Object.assign(document.documentElement, { lang: inManner(), dir: t.dir });
  for (const el of document.querySelectorAll<HTMLElement>('[data-say]')) el.textContent = words(el.dataset.say!);
  for (const el of document.querySelectorAll<HTMLElement>('[data-label]')) el.setAttribute('aria-label', words(el.dataset.label!));
  document.querySelector('.top')?.append(others());
}

/** words are those of a name such as home.title. */
function words(name: string): string {
  const found = name.split('.').reduce((at: unknown, key) => (at as Record<string, unknown>)[key], t);
  if (typeof found !== 'string') throw new Error(`no words are called ${name}`);
  return found;
}

/** others are the languages that are not spoken, to change to. */
function others(): HTMLElement {
  const links = Object.entries(languages).filter(([, of]) => of !== t).map(([tag, of]) => {
    const there = new URL(location.href);
    there.searchParams.set('lang', tag);
    return h('a', { href: there.href, hreflang: tag, lang: tag }, of.name);
  });
  return h('nav', { class: 'languages', 'aria-label': t.page.language }, ...links);
}
