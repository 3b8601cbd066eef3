// Building and finding elements, without a framework.

/**
 * h makes an element. Attributes whose name starts with "on" are listeners,
 * booleans set or leave out the attribute, null and false children are left out.
 * @param {string} tag
 * @param {Object<string, any>} [attrs]
 * @param {...(Node|string|number|null|false)} children
 * @returns {HTMLElement}
 */
export function h(tag, attrs = {}, ...children) {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(attrs)) {
    if (name.startsWith('on')) el.addEventListener(name.slice(2), value);
    else if (value === true) el.setAttribute(name, '');
    else if (value !== false && value != null) el.setAttribute(name, String(value));
  }
  el.append(...children.filter((c) => c !== null && c !== false).map((c) => (c instanceof Node ? c : String(c))));
  return el;
}

/**
 * $ finds the one element of the page with this id.
 * @param {string} id
 * @returns {HTMLElement}
 */
export const $ = (id) => document.getElementById(id);

/**
 * tell writes a text where it is another: what is written anew is read out again.
 * @param {string} id
 * @param {string} text
 */
export function tell(id, text) {
  if ($(id).textContent !== text) $(id).textContent = text;
}

/**
 * holding changes the page, and gives the focus to rest if it hides what had it.
 * @param {HTMLElement} rest
 * @param {() => void} change
 */
export function holding(rest, change) {
  const had = document.activeElement;
  change();
  if (had?.closest('[hidden]')) rest.focus();
}

/**
 * swatch is a small dot of a colour that data gives: a style attribute would
 * be refused by the page's content policy.
 * @param {string} color CSS colour
 * @returns {HTMLElement}
 */
export function swatch(color) {
  const el = h('span', { class: 'swatch', 'aria-hidden': 'true' });
  el.style.setProperty('--swatch', color);
  return el;
}
