// Telling the shopper: a note on the screen that goes away, and the same words
// to a screen reader.

import { $, h } from './dom';

/** announce speaks to screen readers only. */
export function announce(text: string): void {
  const live = $('announcer');
  live.textContent = '';
  // The region must be seen to change, also when the same is said twice.
  requestAnimationFrame(() => { live.textContent = text; });
}

/** Kind is how a note looks. */
export type Kind = 'plain' | 'good' | 'bad';

/** note shows a sentence for a while, and announces it. */
export function note(text: string, kind: Kind = 'plain'): void {
  const box = $('notes');
  // Good news supersedes what went wrong before it.
  for (const old of box.querySelectorAll<HTMLElement>('.note')) if (kind === 'good' || old.dataset.text === text) old.remove();
  const el = h('div', { class: `note ${kind}`, 'data-text': text }, h('span', {}, text),
    h('button', { class: 'plain', 'aria-label': 'Dismiss', onclick: () => el.remove() }, '×'));
  box.append(el);
  while (box.children.length > 3) box.firstChild?.remove();
  setTimeout(() => el.remove(), kind === 'bad' ? 12000 : 6000);
  announce(text);
}
