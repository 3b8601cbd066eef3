import { h } from './dom.js';
import { t } from './lang.js';

class Sheet {
  clock = h("span", { class: "clock" });
  #cart;
  #bar = h("button", { class: "primary to-order", onclick: () => this.#open() });
  #text = h("span", {});
  #resumed = false;
  #ordered = false;
  /** back is called when somebody has gone back to the map from an order that stands. */
  constructor(side, cart, back) {
    this.#cart = cart;
    this.#bar.append(this.#text, this.clock);
    side.prepend(h("button", { class: "plain to-map", onclick: () => this.#close() }, t.panel.toMap), this.#bar);
    cart.addEventListener("change", () => this.#follow());
    addEventListener("popstate", () => {
      if (this.#ordered && !this.#entry) this.#be({ view: "map" });
      this.#show();
      if (this.#ordered && this.#entry?.view === "map") back();
    });
    this.#show();
  }
  /** resumed says that from now on an order is one the shopper has just made. */
  resumed() {
    this.#resumed = true;
    if (this.#ordered && !this.#entry) this.#be({ view: "order" });
    this.#show();
  }
  get #entry() {
    return history.state;
  }
  #be(entry) {
    history.replaceState(entry, "");
  }
  #follow() {
    const ordered = this.#cart.stage !== "picking";
    const turned = this.#resumed && ordered !== this.#ordered;
    this.#ordered = ordered;
    if (turned && ordered) this.#open();
    else if (turned && this.#entry?.view === "order") this.#close();
    else this.#show();
  }
  #open() {
    if (this.#entry?.view !== "order") history.pushState({ view: "order", pushed: true }, "");
    this.#show();
  }
  #close() {
    if (this.#entry?.pushed) return history.back();
    this.#be({ view: "map" });
    this.#show();
  }
  #show() {
    const { stage } = this.#cart;
    document.body.dataset.order = stage;
    document.body.dataset.view = this.#ordered && this.#entry?.view === "order" ? "order" : "map";
    this.#text.textContent = stage === "picking" ? "" : t.panel.toOrder[stage];
    if (stage === "sold") this.clock.textContent = "";
  }
}

export { Sheet };
