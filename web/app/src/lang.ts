// Which language is spoken, and all that is said in it. There is one for a whole page at a
// time. What the languages are must say is checked by the compiler: all that English says,
// with all that is filled in there.

import { de } from './de';
import { en } from './en';
import { write } from './locale';

/** Said is T with whatever words. */
type Said<T> = T extends string ? string : T extends (...given: infer G) => string ? (...given: G) => string : { readonly [K in keyof T]: Said<T[K]> };

/** Catalogue is all that is said. */
export type Catalogue = Said<typeof en>;

/** Whole is T, or never where something is filled in in E and left out in T. */
type Whole<T, E> = E extends string ? T
  : E extends (...given: infer G) => string ? (T extends (...given: infer H) => string ? (H['length'] extends G['length'] ? T : never) : never)
  : { [K in keyof E]: K extends keyof T ? Whole<T[K], E[K]> : never };

/** languages are those there are, by their tags. */
export const languages: { en: Catalogue; de: Whole<typeof de, Catalogue> } = { en, de };

type Language = keyof typeof languages;

/** t is all that is said, in the language that is spoken. */
export let t: Catalogue = en;

/** languageOf is the language of a tag such as de-AT, if we have it. */
export function languageOf(tag: string): Language | null {
  const language = tag.split(/[-_]/)[0].toLowerCase();
  return Object.hasOwn(languages, language) ? language as Language : null;
}

/**
 * speak has all be said in the first of the wanted languages that there is, else in
 * English, and numbers, prices and times be written as the browser is used to in it.
 */
export function speak(wanted: readonly string[]): void {
  const language = wanted.map(languageOf).find((l) => l !== null) ?? 'en';
  t = languages[language];
  write([...wanted, ...navigator.languages].find((tag) => languageOf(tag) === language && /^\w+(-\w+)+$/.test(tag) && supported(tag)) ?? language);
}

/** supported says whether a tag is one that can be written in. */
function supported(tag: string): boolean {
  try {
    return Intl.NumberFormat.supportedLocalesOf(tag).length > 0;
  } catch {
    return false; // it is none
  }
}
