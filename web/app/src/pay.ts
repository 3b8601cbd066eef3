// How a shopper pays: with a card of the sandbox, or in the payment element of
// Stripe's own script, which is loaded only where the house says so. What is in
// that element no script of ours can read; the page sends the name Stripe gives it.

import { Problem, type Api } from './api';
import { h } from './dom';
import { languageOf, t } from './lang';
import { inManner } from './locale';
import type * as wire from './wire';

/** Decimals with which Stripe counts a currency, where they are not those of ISO 4217. */
const STRIPE_DECIMALS: Record<string, number> = { ISK: 2, UGX: 2, MGA: 0 };

/** Stripe is what is used of Stripe's script. */
interface Stripe {
  elements(options: object): Elements;
  createConfirmationToken(options: object): Promise<{ error?: Failure; confirmationToken: { id: string } }>;
  handleNextAction(options: { clientSecret: string }): Promise<{ error?: Failure }>;
}

interface Elements {
  create(kind: 'payment'): { on(event: 'ready' | 'change' | 'loaderror', heard: () => void): void; mount(box: HTMLElement): void };
  getElement(kind: 'payment'): { destroy(): void } | null;
  update(options: { amount: number }): void;
  submit(): Promise<{ error?: Failure }>;
}

interface Failure { type: string }

declare global {
  var Stripe: (publishableKey: string, options: { locale: string }) => Stripe; // once its script is there
}

/** Means is what a shopper pays with. Its element stays in the page while it shows one of Stripe's, which moving would empty. */
export class Means {
  element = h('div', { class: 'means' });
  ready = false;
  #api: Api;
  #of: wire.Currency;
  #changed: () => void; // is called when ready has changed
  #other: () => void; // is called when something else is chosen
  #config: wire.Payments | null = null;
  #stripe: Promise<Stripe> | null = null; // Stripe's script, once asked for
  #elements: Elements | null = null;
  #amount = 0; // to be paid
  #token: string | null = null; // what the element was called last, until it says something else or was used
  #turn = 0; // counts what is shown

  constructor(api: Api, of: wire.Currency, { changed, other }: { changed: () => void; other: () => void }) {
    this.#api = api;
    this.#of = of;
    this.#changed = changed;
    this.#other = other;
  }

  /** show asks for a means to pay an amount. */
  async show(amount: number): Promise<void> {
    if (this.#elements && amount !== this.#amount) this.#elements.update({ amount: this.#stripeAmount(amount) });
    this.#amount = amount;
    if (this.element.childElementCount) return;
    this.element.replaceChildren(h('p', { class: 'soft' }, t.pay.moment));
    const turn = ++this.#turn;
    try {
      const config = await this.#ask();
      const stripe = inPage(config) && await this.#script();
      if (turn !== this.#turn) return;
      if (stripe) this.#mount(stripe, config);
      else if (config.provider === 'sandbox') this.#cards();
      else this.element.replaceChildren(h('p', { class: 'hint' }, t.pay.none));
    } catch {
      if (turn === this.#turn) this.#broken();
    }
  }

  /** hide forgets what was typed. */
  hide(): void {
    this.#turn++;
    this.#elements?.getElement('payment')?.destroy();
    this.#elements = null;
    this.#token = null;
    this.element.replaceChildren();
    this.#be(false);
  }

  /** used says that what was named last has made a payment: the next one has another name. */
  used(): void {
    this.#token = null;
  }

  /** name is what the house calls what the shopper pays with; or a Problem. */
  async name(): Promise<string> {
    const card = this.element.querySelector('select');
    if (card) return card.value;
    if (this.#token) return this.#token;
    const stripe = await this.#script();
    const elements = this.#elements!; // who has no card to choose is shown them
    const { error: wrong } = await elements.submit();
    if (wrong) throw said(wrong);
    const { error, confirmationToken } = await stripe.createConfirmationToken({
      elements, params: { return_url: location.origin + location.pathname },
    });
    if (error) throw said(error);
    this.#token = confirmationToken.id;
    return this.#token;
  }

  /** scripted says whether a step that has a secret is taken in the page. */
  async scripted(): Promise<boolean> {
    return inPage(await this.#ask());
  }

  /**
   * step has the shopper take it there. Whatever came of it, only the house knows;
   * a Problem says that it was not taken.
   */
  async step(clientSecret: string): Promise<void> {
    const stripe = await this.#script();
    const { error } = await stripe.handleNextAction({ clientSecret });
    if (error?.type === 'api_connection_error') throw said(error);
  }

  async #ask(): Promise<wire.Payments> {
    this.#config ??= await this.#api.get<wire.Payments>('/v1/payments/config');
    return this.#config;
  }

  #cards(): void {
    const cards = Object.entries(t.pay.cards);
    const option = ([number, what]: [string, string]) => h('option', { value: number }, `•••• ${number.slice(-4)} · ${what}`);
    const group = (label: string, of: [string, string][]) => {
      const el = h('optgroup', {}, ...of.map(option));
      el.label = label;
      return el;
    };
    const does = h('p', { id: 'card-does', class: 'soft', 'aria-live': 'polite' });
    const explain = () => {
      const number = card.value as keyof typeof t.pay.does;
      does.replaceChildren(h('code', {}, number.replace(/\d{4}(?=\d)/g, '$& ')), h('span', {}, t.pay.does[number]));
    };
    const card = h('select', { 'data-key': 'card', 'aria-describedby': 'card-does', onchange: () => { explain(); this.#other(); } }, group(t.pay.usual, cards.filter(usual)), group(t.pay.seldom, cards.filter((c) => !usual(c))));
    explain();
    this.element.replaceChildren(h('p', { class: 'hint' }, t.pay.sandbox), h('label', {}, t.pay.card, card), does);
    this.#be(true);
  }

  #mount(stripe: Stripe, config: wire.Payments): void {
    const box = h('div', {});
    this.element.replaceChildren(box);
    this.#elements = stripe.elements({
      mode: 'payment', amount: this.#stripeAmount(this.#amount), currency: this.#of.currency.toLowerCase(), captureMethod: 'manual',
      paymentMethodTypes: config.methods, appearance: { theme: matchMedia('(prefers-color-scheme: dark)').matches ? 'night' : 'stripe' },
    });
    const payment = this.#elements.create('payment');
    payment.on('ready', () => this.#be(true));
    payment.on('change', () => { this.#token = null; this.#other(); });
    payment.on('loaderror', () => this.#broken());
    payment.mount(box);
  }

  /** script is Stripe's, which comes from Stripe alone. One that did not come is asked for again. */
  #script(): Promise<Stripe> {
    this.#stripe ??= this.#load().catch(() => {
      this.#stripe = null;
      throw new Problem({ code: 'card_unreachable' });
    });
    return this.#stripe;
  }

  async #load(): Promise<Stripe> {
    const { script: src = '', publishableKey = '' } = await this.#ask();
    const script = h('script', { src });
    await new Promise((resolve, reject) => {
      script.onload = resolve;
      script.onerror = reject;
      document.head.append(script);
    }).catch((err) => { script.remove(); throw err; });
    return Stripe(publishableKey, { locale: languageOf(inManner()) ?? 'auto' });
  }

  #broken(): void {
    this.hide();
    this.element.replaceChildren(
      h('p', { class: 'hint', role: 'alert' }, t.pay.unreachable),
      h('button', { type: 'button', 'data-key': 'means', onclick: () => { this.hide(); this.#changed(); } }, t.page.again));
  }

  #be(ready: boolean): void {
    if (ready === this.ready) return;
    this.ready = ready;
    this.#changed();
  }

  #stripeAmount(amount: number): number {
    const { currency, decimals = 2 } = this.#of;
    return Math.round(amount * 10 ** ((STRIPE_DECIMALS[currency] ?? decimals) - decimals));
  }
}

/** USUAL are the cards of the sandbox that do what most cards do. */
const USUAL = ['4242424242424242', '4000000000000002', '4000000000003063', '4000000000003220'];

const usual = ([number]: [string, string]) => USUAL.includes(number);

/** inPage says whether payments are taken in Stripe's element. */
const inPage = (config: wire.Payments) => Boolean(config.script && config.publishableKey);

/** said is a failure of Stripe's element in our words. */
const said = (error: Failure) => new Problem({ code: FAILURES[error.type] ?? 'card_failed' });

const FAILURES: Record<string, string> = { validation_error: 'card_incomplete', api_connection_error: 'card_unreachable' };
