// The order on a narrow screen, where it has the window to itself from the hold on, and
// the way back from it on any: to the map, with the order as it was. An order is one
// entry in the browser's history; nothing else is.

import type { Cart } from './cart';
import { h } from './dom';
import { t } from './lang';

/** Entry is what an entry of the history shows, and whether the one before it is of this page. */
interface Entry { view: 'map' | 'order'; pushed?: boolean }

/** Sheet shows the order or the map, and follows the back button. */
export class Sheet {
  readonly clock = h('span', { class: 'clock' });
  #cart: Cart;
  #bar = h('button', { class: 'primary to-order', onclick: () => this.#open() });
  #text = h('span', {});
  #resumed = false;
  #ordered = false;

  /** back is called when somebody has gone back to the map from an order that stands. */
  constructor(side: HTMLElement, cart: Cart, back: () => void) {
    this.#cart = cart;
    this.#bar.append(this.#text, this.clock);
    side.prepend(h('button', { class: 'plain to-map', onclick: () => this.#close() }, t.panel.toMap), this.#bar);
    cart.addEventListener('change', () => this.#follow());
    addEventListener('popstate', () => {
      if (this.#ordered && !this.#entry) this.#be({ view: 'map' });
      this.#show();
      if (this.#ordered && this.#entry?.view === 'map') back();
    });
    this.#show();
  }

  /** resumed says that from now on an order is one the shopper has just made. */
  resumed(): void {
    this.#resumed = true;
    if (this.#ordered && !this.#entry) this.#be({ view: 'order' });
    this.#show();
  }

  get #entry(): Entry | null {
    return history.state as Entry | null;
  }

  #be(entry: Entry): void {
    history.replaceState(entry, '');
  }

  #follow(): void {
    const ordered = this.#cart.stage !== 'picking';
    const turned = this.#resumed && ordered !== this.#ordered;
    this.#ordered = ordered;
    if (turned && ordered) this.#open();
    else if (turned && this.#entry?.view === 'order') this.#close();
    else this.#show();
  }

  #open(): void {
    if (this.#entry?.view !== 'order') history.pushState({ view: 'order', pushed: true } satisfies Entry, '');
    this.#show();
  }

  #close(): void {
    if (this.#entry?.pushed) return history.back();
    this.#be({ view: 'map' });
    this.#show();
  }

  #show(): void {
    const { stage } = this.#cart;
    document.body.dataset.order = stage;
    document.body.dataset.view = this.#ordered && this.#entry?.view === 'order' ? 'order' : 'map';
    this.#text.textContent = stage === 'picking' ? '' : t.panel.toOrder[stage];
    if (stage === 'sold') this.clock.textContent = '';
  }
}
