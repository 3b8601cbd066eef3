// Telling the shopper: a note on the screen that goes away, and the same words
// to a screen reader.

import { h } from './dom';
import { t } from './lang';

/** Kind is how a note looks. */
export type Kind = 'plain' | 'good' | 'bad';

/** Speaker says things where its elements are. */
export class Speaker {
  readonly notes = h('section', { id: 'notes', class: 'notes', 'aria-label': t.page.notes });
  readonly announcer = h('div', { id: 'announcer', class: 'unseen', 'aria-live': 'polite' });

  /** announce speaks to screen readers only. */
  announce(text: string): void {
    this.announcer.textContent = '';
    // The region must be seen to change, also when the same is said twice.
    requestAnimationFrame(() => { this.announcer.textContent = text; });
  }

  /** shown announces what the page shows elsewhere. No note from before is news any more. */
  shown(text: string): void {
    this.notes.replaceChildren();
    this.announce(text);
  }

  /** note shows a sentence for a while, and announces it. */
  note(text: string, kind: Kind = 'plain'): void {
    // What is said later is newer; what went wrong is superseded by good news alone.
    for (const old of this.notes.querySelectorAll<HTMLElement>('.note')) if (kind === 'good' || !old.classList.contains('bad') || old.dataset.text === text) old.remove();
    const el = h('div', { class: `note ${kind}`, 'data-text': text }, h('span', {}, text),
      h('button', { class: 'plain', 'aria-label': t.page.dismiss, onclick: () => el.remove() }, '×'));
    this.notes.append(el);
    while (this.notes.children.length > 3) this.notes.firstChild?.remove();
    setTimeout(() => el.remove(), kind === 'bad' ? 12000 : 6000);
    this.announce(text);
  }
}
