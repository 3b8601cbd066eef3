import { h } from './dom.js';
import { t } from './lang.js';
import { number } from './locale.js';

class Stepper {
  element;
  #n = 0;
  #less;
  #more;
  #shown = h("output", {});
  /** The buttons are called key and a sign. step is told the number that is wanted. */
  constructor(name, key, step) {
    this.#less = h("button", { "data-key": `${key}−`, "aria-label": t.stepper.less, onclick: () => step(this.#n - 1) }, "−");
    this.#more = h("button", { "data-key": `${key}+`, "aria-label": t.stepper.more, onclick: () => step(this.#n + 1) }, "+");
    this.element = h("span", { class: "stepper", role: "group", "aria-label": name }, this.#less, this.#shown, this.#more);
  }
  /** show is the number it is at, and from where to where it can go. */
  show(n, least, most) {
    this.#n = n;
    this.#shown.textContent = number(n);
    this.#less.disabled = n <= least;
    this.#more.disabled = n >= most;
    return this;
  }
}

export { Stepper };
