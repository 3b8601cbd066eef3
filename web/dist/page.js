import { h } from './dom.js';
import { languageOf, speak, t, languages } from './lang.js';
import { inManner } from './locale.js';

const KEPT = "seatcast.language";
function translate() {
  const asked = new URLSearchParams(location.search).get("lang") ?? "";
  if (languageOf(asked)) localStorage.setItem(KEPT, asked);
  speak([localStorage.getItem(KEPT) ?? "", ...navigator.languages]);
  Object.assign(document.documentElement, { lang: inManner(), dir: t.dir });
  for (const el of document.querySelectorAll("[data-say]")) el.textContent = words(el.dataset.say);
  for (const el of document.querySelectorAll("[data-label]")) el.setAttribute("aria-label", words(el.dataset.label));
  document.querySelector(".top")?.append(others());
}
function words(name) {
  const found = name.split(".").reduce((at, key) => at[key], t);
  if (typeof found !== "string") throw new Error(`no words are called ${name}`);
  return found;
}
function others() {
  const links = Object.entries(languages).filter(([, of]) => of !== t).map(([tag, of]) => {
    const there = new URL(location.href);
    there.searchParams.set("lang", tag);
    return h("a", { href: there.href, hreflang: tag, lang: tag }, of.name);
  });
  return h("nav", { class: "languages", "aria-label": t.page.language }, ...links);
}

export { translate };
