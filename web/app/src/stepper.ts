// A number that is chosen by one less and one more.

import { h } from './dom';
import { t } from './lang';
import { number } from './locale';

/** Stepper is two buttons with a number between them. */
export class Stepper {
  readonly element: HTMLElement;
  #n = 0;
  #less: HTMLButtonElement;
  #more: HTMLButtonElement;
  #shown = h('output', {});

  /** The buttons are called key and a sign. step is told the number that is wanted. */
  constructor(name: string, key: string, step: (to: number) => void) {
    this.#less = h('button', { 'data-key': `${key}−`, 'aria-label': t.stepper.less, onclick: () => step(this.#n - 1) }, '−');
    this.#more = h('button', { 'data-key': `${key}+`, 'aria-label': t.stepper.more, onclick: () => step(this.#n + 1) }, '+');
    this.element = h('span', { class: 'stepper', role: 'group', 'aria-label': name }, this.#less, this.#shown, this.#more);
  }

  /** show is the number it is at, and from where to where it can go. */
  show(n: number, least: number, most: number): this {
    this.#n = n;
    this.#shown.textContent = number(n);
    this.#less.disabled = n <= least;
    this.#more.disabled = n >= most;
    return this;
  }
}
