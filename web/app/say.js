// Telling the shopper: a note on the screen that goes away, and the same words
// to a screen reader.

import { $, h } from './dom.js';

/**
 * announce speaks to screen readers only.
 * @param {string} text
 */
export function announce(text) {
  const live = $('announcer');
  live.textContent = '';
  // The region must be seen to change, also when the same is said twice.
  requestAnimationFrame(() => { live.textContent = text; });
}

/**
 * note shows a sentence for a while, and announces it.
 * @param {string} text
 * @param {'plain'|'good'|'bad'} [kind]
 */
export function note(text, kind = 'plain') {
  const box = $('notes');
  // Good news supersedes what went wrong before it.
  for (const old of [...box.children]) if (kind === 'good' || old.dataset.text === text) old.remove();
  const el = h('div', { class: `note ${kind}`, 'data-text': text }, h('span', {}, text),
    h('button', { class: 'plain', 'aria-label': 'Dismiss', onclick: () => el.remove() }, '×'));
  box.append(el);
  while (box.children.length > 3) box.firstChild.remove();
  setTimeout(() => el.remove(), kind === 'bad' ? 12000 : 6000);
  announce(text);
}
