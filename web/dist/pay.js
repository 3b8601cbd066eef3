import { Problem } from './api.js';
import { h } from './dom.js';
import { t, languageOf } from './lang.js';
import { inManner } from './locale.js';

const STRIPE_DECIMALS = { ISK: 2, UGX: 2, MGA: 0 };
class Means {
  element = h("div", { class: "means" });
  ready = false;
  #api;
  #of;
  #changed;
  // is called when ready has changed
  #other;
  // is called when something else is chosen
  #config = null;
  #stripe = null;
  // Stripe's script, once asked for
  #elements = null;
  #amount = 0;
  // to be paid
  #token = null;
  // what the element was called last, until it says something else or was used
  #turn = 0;
  // counts what is shown
  constructor(api, of, { changed, other }) {
    this.#api = api;
    this.#of = of;
    this.#changed = changed;
    this.#other = other;
  }
  /** show asks for a means to pay an amount. */
  async show(amount) {
    if (this.#elements && amount !== this.#amount) this.#elements.update({ amount: this.#stripeAmount(amount) });
    this.#amount = amount;
    if (this.element.childElementCount) return;
    this.element.replaceChildren(h("p", { class: "soft" }, t.pay.moment));
    const turn = ++this.#turn;
    try {
      const config = await this.#ask();
      const stripe = inPage(config) && await this.#script();
      if (turn !== this.#turn) return;
      if (stripe) this.#mount(stripe, config);
      else if (config.provider === "sandbox") this.#cards();
      else this.element.replaceChildren(h("p", { class: "hint" }, t.pay.none));
    } catch {
      if (turn === this.#turn) this.#broken();
    }
  }
  /** hide forgets what was typed. */
  hide() {
    this.#turn++;
    this.#elements?.getElement("payment")?.destroy();
    this.#elements = null;
    this.#token = null;
    this.element.replaceChildren();
    this.#be(false);
  }
  /** used says that what was named last has made a payment: the next one has another name. */
  used() {
    this.#token = null;
  }
  /** name is what the house calls what the shopper pays with; or a Problem. */
  async name() {
    const card = this.element.querySelector("select");
    if (card) return card.value;
    if (this.#token) return this.#token;
    const stripe = await this.#script();
    const elements = this.#elements;
    const { error: wrong } = await elements.submit();
    if (wrong) throw said(wrong);
    const { error, confirmationToken } = await stripe.createConfirmationToken({
      elements,
      params: { return_url: location.origin + location.pathname }
    });
    if (error) throw said(error);
    this.#token = confirmationToken.id;
    return this.#token;
  }
  /** scripted says whether a step that has a secret is taken in the page. */
  async scripted() {
    return inPage(await this.#ask());
  }
  /**
   * step has the shopper take it there. Whatever came of it, only the house knows;
   * a Problem says that it was not taken.
   */
  async step(clientSecret) {
    const stripe = await this.#script();
    const { error } = await stripe.handleNextAction({ clientSecret });
    if (error?.type === "api_connection_error") throw said(error);
  }
  async #ask() {
    this.#config ??= await this.#api.get("/v1/payments/config");
    return this.#config;
  }
  #cards() {
    const cards = Object.entries(t.pay.cards);
    const option = ([number, what]) => h("option", { value: number }, `•••• ${number.slice(-4)} · ${what}`);
    const group = (label, of) => {
      const el = h("optgroup", {}, ...of.map(option));
      el.label = label;
      return el;
    };
    const does = h("p", { id: "card-does", class: "soft", "aria-live": "polite" });
    const explain = () => {
      const number = card.value;
      does.replaceChildren(h("code", {}, number.replace(/\d{4}(?=\d)/g, "$& ")), h("span", {}, t.pay.does[number]));
    };
    const card = h("select", { "data-key": "card", "aria-describedby": "card-does", onchange: () => {
      explain();
      this.#other();
    } }, group(t.pay.usual, cards.filter(usual)), group(t.pay.seldom, cards.filter((c) => !usual(c))));
    explain();
    this.element.replaceChildren(h("p", { class: "hint" }, t.pay.sandbox), h("label", {}, t.pay.card, card), does);
    this.#be(true);
  }
  #mount(stripe, config) {
    const box = h("div", {});
    this.element.replaceChildren(box);
    this.#elements = stripe.elements({
      mode: "payment",
      amount: this.#stripeAmount(this.#amount),
      currency: this.#of.currency.toLowerCase(),
      captureMethod: "manual",
      paymentMethodTypes: config.methods,
      appearance: { theme: matchMedia("(prefers-color-scheme: dark)").matches ? "night" : "stripe" }
    });
    const payment = this.#elements.create("payment");
    payment.on("ready", () => this.#be(true));
    payment.on("change", () => {
      this.#token = null;
      this.#other();
    });
    payment.on("loaderror", () => this.#broken());
    payment.mount(box);
  }
  /** script is Stripe's, which comes from Stripe alone. One that did not come is asked for again. */
  #script() {
    this.#stripe ??= this.#load().catch(() => {
      this.#stripe = null;
      throw new Problem({ code: "card_unreachable" });
    });
    return this.#stripe;
  }
  async #load() {
    const { script: src = "", publishableKey = "" } = await this.#ask();
    const script = h("script", { src });
    await new Promise((resolve, reject) => {
      script.onload = resolve;
      script.onerror = reject;
      document.head.append(script);
    }).catch((err) => {
      script.remove();
      throw err;
    });
    return Stripe(publishableKey, { locale: languageOf(inManner()) ?? "auto" });
  }
  #broken() {
    this.hide();
    this.element.replaceChildren(
      h("p", { class: "hint", role: "alert" }, t.pay.unreachable),
      h("button", { type: "button", "data-key": "means", onclick: () => {
        this.hide();
        this.#changed();
      } }, t.page.again)
    );
  }
  #be(ready) {
    if (ready === this.ready) return;
    this.ready = ready;
    this.#changed();
  }
  #stripeAmount(amount) {
    const { currency, decimals = 2 } = this.#of;
    return Math.round(amount * 10 ** ((STRIPE_DECIMALS[currency] ?? decimals) - decimals));
  }
}
const USUAL = ["4242424242424242", "4000000000000002", "4000000000003063", "4000000000003220"];
const usual = ([number]) => USUAL.includes(number);
const inPage = (config) => Boolean(config.script && config.publishableKey);
const said = (error) => new Problem({ code: FAILURES[error.type] ?? "card_failed" });
const FAILURES = { validation_error: "card_incomplete", api_connection_error: "card_unreachable" };

export { Means };
