import { h } from './dom.js';
import { t } from './lang.js';
import { inManner } from './locale.js';

const PATIENCE = 5e3;
class Doubt {
  element = h("div", { class: "doubt", role: "status" });
  #asOf;
  #mode = null;
  #says = null;
  #timer = 0;
  constructor(asOf, signal) {
    this.#asOf = asOf;
    const look = () => this.#look();
    addEventListener("online", look, { signal });
    addEventListener("offline", look, { signal });
    document.addEventListener("visibilitychange", look, { signal });
    signal.addEventListener("abort", () => clearTimeout(this.#timer));
  }
  /** be follows how the map is doing. */
  be(mode) {
    if (mode === this.#mode) return;
    this.#mode = mode;
    this.#look();
  }
  #look() {
    clearTimeout(this.#timer);
    const mode = this.#mode;
    if (mode === "late" || mode === "unheld") this.#say(mode);
    else if (mode !== "waiting" && mode !== "connecting") this.#say(null);
    else if (!navigator.onLine) this.#say("offline");
    else if (this.#says === "offline" || this.#says === "waiting") this.#say("waiting");
    else {
      this.#say(null);
      this.#timer = setTimeout(() => {
        if (!document.hidden) this.#say("waiting");
      }, PATIENCE);
    }
  }
  #say(matter) {
    if (matter === this.#says) return;
    this.#says = matter;
    if (!matter) {
      this.element.replaceChildren();
      return;
    }
    const asOf = this.#asOf();
    const known = matter === "unheld" ? t.doubt.sold : asOf === null ? t.doubt.unknown : t.doubt.asOf(new Date(asOf).toLocaleTimeString(inManner()));
    this.element.replaceChildren(h("p", {}, h("strong", {}, t.doubt.of[matter]), " ", known));
  }
}

export { Doubt };
