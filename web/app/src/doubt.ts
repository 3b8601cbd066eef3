// What is the matter with a map that is not as of now, in a bar over it.

import { h } from './dom';
import type { Mode } from './feed';
import { t } from './lang';
import { inManner } from './locale';

const PATIENCE = 5000; // ms that a connection may be away before a word of it

type Matter = keyof typeof t.doubt.of;

/** Doubt is the bar, from when it is made until signal. It is empty while there is nothing to say, and keeps what it said while that lasts. */
export class Doubt {
  readonly element = h('div', { class: 'doubt', role: 'status' });
  #asOf: () => number | null;
  #mode: Mode | null = null;
  #says: Matter | null = null;
  #timer = 0;

  constructor(asOf: () => number | null, signal: AbortSignal) {
    this.#asOf = asOf;
    const look = () => this.#look();
    addEventListener('online', look, { signal });
    addEventListener('offline', look, { signal });
    document.addEventListener('visibilitychange', look, { signal }); // a tab that nobody looked at had let go
    signal.addEventListener('abort', () => clearTimeout(this.#timer));
  }

  /** be follows how the map is doing. */
  be(mode: Mode): void {
    if (mode === this.#mode) return;
    this.#mode = mode;
    this.#look();
  }

  #look(): void {
    clearTimeout(this.#timer);
    const mode = this.#mode;
    if (mode === 'late' || mode === 'unheld') this.#say(mode);
    else if (mode !== 'waiting' && mode !== 'connecting') this.#say(null);
    else if (!navigator.onLine) this.#say('offline');
    else if (this.#says === 'offline' || this.#says === 'waiting') this.#say('waiting');
    else {
      this.#say(null);
      this.#timer = setTimeout(() => { if (!document.hidden) this.#say('waiting'); }, PATIENCE);
    }
  }

  #say(matter: Matter | null): void {
    if (matter === this.#says) return;
    this.#says = matter;
    if (!matter) {
      this.element.replaceChildren();
      return;
    }
    const asOf = this.#asOf();
    const known = matter === 'unheld' ? t.doubt.sold : asOf === null ? t.doubt.unknown : t.doubt.asOf(new Date(asOf).toLocaleTimeString(inManner()));
    this.element.replaceChildren(h('p', {}, h('strong', {}, t.doubt.of[matter]), ' ', known));
  }
}
