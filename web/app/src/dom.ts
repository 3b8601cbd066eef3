// Building and finding elements, without a framework.

type Value = string | number | boolean | null | undefined;

type Listeners = { [K in keyof HTMLElementEventMap as `on${K}`]?: (e: HTMLElementEventMap[K]) => void };

/** Attrs are the attributes that this client sets, and listeners. */
export interface Attrs extends Listeners {
  [aria: `aria-${string}`]: Value;
  [data: `data-${string}`]: Value;
  class?: Value;
  dir?: Value;
  disabled?: Value;
  hidden?: Value;
  href?: Value;
  hreflang?: Value;
  id?: Value;
  lang?: Value;
  min?: Value;
  rel?: Value;
  required?: Value;
  role?: Value;
  src?: Value;
  step?: Value;
  tabindex?: Value;
  target?: Value;
  title?: Value;
  type?: Value;
  value?: Value;
}

/** Child is what an element is given to hold. */
export type Child = Node | string | number | null | false;

/**
 * h makes an element. Attributes whose name starts with "on" are listeners,
 * booleans set or leave out the attribute, null and false children are left out.
 */
export function h<K extends keyof HTMLElementTagNameMap>(tag: K, attrs: Attrs = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries<Value | EventListener>(attrs as Record<string, Value | EventListener>)) {
    if (typeof value === 'function') el.addEventListener(name.slice(2), value);
    else if (value === true) el.setAttribute(name, '');
    else if (value !== false && value != null) el.setAttribute(name, String(value));
  }
  el.append(...children.filter((c) => c !== null && c !== false).map((c) => (c instanceof Node ? c : String(c))));
  return el;
}

/** $ finds the one element of the page with this id, which is there and is a T. */
export const $ = <T extends HTMLElement = HTMLElement>(id: string): T => document.getElementById(id) as T;

/** tell writes a text where it is another: what is written anew is read out again. */
export function tell(id: string, text: string): void {
  if ($(id).textContent !== text) $(id).textContent = text;
}

/** unbroken is what a place is called, of which what follows a comma stays on one line: "seat 17". */
export function unbroken(place: string): Child[] {
  const [first, ...rest] = place.split(', ');
  return rest.reduce<Child[]>((all, part, n) => [...all, ' ', h('span', { class: 'whole' }, n < rest.length - 1 ? `${part},` : part)], [rest.length ? `${first},` : first]);
}

/** holding changes the page, and gives the focus to rest if it hides what had it. */
export function holding(rest: HTMLElement, change: () => void): void {
  const had = document.activeElement;
  change();
  if (had?.closest('[hidden]')) rest.focus();
}

/**
 * swatch is a small dot of a colour that data gives: a style attribute would
 * be refused by the page's content policy.
 */
export function swatch(color: string): HTMLElement {
  const el = h('span', { class: 'swatch', 'aria-hidden': 'true' });
  el.style.setProperty('--swatch', color);
  return el;
}
