import { de } from './de.js';
import { en } from './en.js';
import { write } from './locale.js';

const languages = { en, de };
let t = en;
function languageOf(tag) {
  const language = tag.split(/[-_]/)[0].toLowerCase();
  return Object.hasOwn(languages, language) ? language : null;
}
function speak(wanted) {
  const language = wanted.map(languageOf).find((l) => l !== null) ?? "en";
  t = languages[language];
  write([...wanted, ...navigator.languages].find((tag) => languageOf(tag) === language && /^\w+(-\w+)+$/.test(tag) && supported(tag)) ?? language);
}
function supported(tag) {
  try {
    return Intl.NumberFormat.supportedLocalesOf(tag).length > 0;
  } catch {
    return false;
  }
}

export { languageOf, languages, speak, t };
