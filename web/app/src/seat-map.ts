// <seat-map>: the house of an event as an element for pages of other sites. It shows,
// has seats chosen and holds them; orders, sign-in and payment are the page's.
// docs/embed.md says what it takes and tells.

import base from '../public/base.css?inline';
import dark from '../public/dark.css?inline';
import shown from '../public/map.css?inline';
import { Api, Problem, type Shopper } from './api';
import { Cart, type Stage } from './cart';
import { Clock, Deadline } from './clock';
import { h } from './dom';
import type { Mode } from './feed';
import { details, House } from './house';
import type { Kept } from './kept';
import { speak, t } from './lang';
import { inManner } from './locale';
import { Speaker } from './say';
import own from './seat-map.css?inline';
import type { State } from './state';
import type * as wire from './wire';
import { sentence } from './words';

const SOURCE = new URL(import.meta.url).origin; // where this script came from
const AGAIN = { first: 2000, most: 60000 }; // ms between tries to load

function sheet(css: string, media = ''): CSSStyleSheet {
  const made = new CSSStyleSheet({ media });
  made.replaceSync(css);
  return made;
}

const sheets = [own, base, shown].map((css) => sheet(css));

/** themes are the sheets there are beside those, by the attribute. */
const themes = { light: [], dark: [sheet(dark)], system: [sheet(dark, '(prefers-color-scheme: dark)')] };

/** Told are the events an element sends, by name, with what they carry. */
interface Told {
  select: { ticketIds: string[]; areas: { area: string; quantity: number }[]; total: number; currency: string; decimals: number };
  hold: wire.Booking;
  lost: { ticketIds: string[]; reason: string };
  mode: { mode: Mode; asOf: number | null };
}

const NOTHING = JSON.stringify([[], []]);

/** Visit is what an element shows from when it begins until it begins anew. */
class Visit {
  house: House | null = null;
  booking: wire.Order | null = null;
  #host: SeatMapElement;
  #root: ShadowRoot;
  #kept: Kept;
  #server: string;
  #api: Api;
  #clock = new Clock();
  #say = new Speaker();
  #says = h('div', { class: 'says', role: 'alert', hidden: true });
  #cart!: Cart; // beside the house
  #loading: Promise<void>;
  #trouble: Problem | null = null; // why there is no house yet
  #life = new AbortController();
  #wish: string[]; // to be chosen as soon as it is known what is free
  #known: State | null = null; // the one that says what is free
  #chosen = NOTHING; // as it was told last
  #mode: Mode | null = null;
  #stage: Stage = 'picking';
  #held: string[] | null = null; // seats of the hold
  #why: string | null = null; // it ended
  #deadline = new Deadline(this.#clock, () => {}, () => this.#cart.refresh());

  constructor(host: SeatMapElement, root: ShadowRoot, kept: Kept) {
    this.#host = host;
    this.#root = root;
    this.#kept = kept;
    this.#wish = host.selection;
    this.#server = new URL(host.getAttribute('server') ?? SOURCE, location.href).origin;
    this.#api = new Api(this.#clock, new Guest(host), { passFor: () => host.pass ?? null, backToLine: () => {} }, this.#server);
    this.#put(this.#says);
    this.#loading = this.#load();
  }

  /** stop ends all that goes on by itself. */
  stop(): void {
    this.#life.abort();
    this.#leave();
    this.#root.replaceChildren();
  }

  /** put shows parts, which are in the language that is spoken now, whatever that of the page is. */
  #put(...parts: HTMLElement[]): void {
    for (const el of parts) Object.assign(el, { lang: inManner(), dir: t.dir });
    this.#root.replaceChildren(...parts);
  }

  #leave(): void {
    this.#deadline.until(null);
    if (!this.house) return;
    this.house.stop();
    this.house = null;
    this.#cart.stop();
  }

  get #over(): boolean {
    return this.#life.signal.aborted;
  }

  /** load opens the house, again and again while it may yet be there, and says what is in the way. */
  async #load(): Promise<void> {
    for (let wait = AGAIN.first; !this.#over; wait = Math.min(AGAIN.most, wait * 2)) {
      try {
        await this.#open();
        this.#trouble = null;
        return;
      } catch (err) {
        this.#leave();
        const p = await this.#judge(err instanceof Problem ? err : new Problem({ code: 'internal' }));
        if (this.#over) return;
        this.#trouble = p;
        this.#says.replaceChildren(h('p', {}, sentence(p)), h('button', { onclick: () => this.#host.again() }, t.page.again));
        this.#says.hidden = false;
        if (!(err instanceof Problem)) throw err;
        if (!p.passing && p.code !== 'origin_not_allowed') return;
        await this.#pause(wait * (0.75 + Math.random() / 2));
      }
    }
  }

  /** pause ends early when the visit does. */
  #pause(ms: number): Promise<void> {
    return new Promise((done) => {
      const timer = setTimeout(done, ms);
      this.#life.signal.addEventListener('abort', () => {
        clearTimeout(timer);
        done();
      });
    });
  }

  /**
   * judge tells a server that is away, or something before it that answers in its place,
   * from one that does not let this page read its answers. Everybody may read the script.
   */
  async #judge(p: Problem): Promise<Problem> {
    if (p.code !== 'offline' || this.#server === location.origin) return p;
    const script = await fetch(this.#api.url('/seat-map.js'), { cache: 'no-store' }).catch(() => null);
    script?.body?.cancel();
    return script?.ok ? new Problem({ code: 'origin_not_allowed' }) : p;
  }

  async #open(): Promise<void> {
    const id = this.#host.getAttribute('event');
    if (!id) throw new Problem({ code: 'unknown_event' });
    const event = await details(this.#api, id, true);
    if (event.state === 'cancelled') throw new Problem({ code: 'event_cancelled' });
    if (this.#over) return;
    const stage = h('section', { id: 'stage', class: 'stage', 'aria-label': event.name });
    const legend = h('ul', { id: 'legend', class: 'legend', 'aria-label': t.event.prices });
    const live = h('div', { id: 'live', class: 'live', 'data-mode': 'connecting' });
    this.#put(stage, h('div', { class: 'foot' }, legend, live), this.#say.notes, this.#say.announcer, this.#says);
    const cart = this.#cart = new Cart(this.#api, event, this.#kept);
    const house = this.house = new House({
      event, cart, api: this.#api, clock: this.#clock, say: this.#say, stage, legend, live,
      watcher: {
        area: (area) => house.enter(area),
        chart: () => {},
        changed: () => this.#changed(),
        turned: () => {},
        mode: (mode) => this.#turned(mode),
      },
    });
    for (const name of ['max', 'readonly', 'view']) this.attend(name);
    cart.addEventListener('change', () => this.#settle());
    cart.addEventListener('problem', (e) => {
      if (this.#over) return;
      this.#why = e.detail.code;
      if (e.detail.code !== 'seats_taken') this.#say.note(sentence(e.detail), 'bad'); // which ones, lose says
    });
    await house.open();
    if (this.#over) return;
    document.addEventListener('visibilitychange', () => { if (!document.hidden) cart.refresh(); }, { signal: this.#life.signal });
    this.#says.hidden = true;
    await cart.resume();
    if (this.house === house && this.#known === house.state && this.#wish.length) this.choose(this.#wish);
  }

  /** attend follows an attribute that has changed. */
  attend(name: string): void {
    const { house } = this;
    if (!house) return;
    const value = this.#host.getAttribute(name);
    switch (name) {
      case 'view':
        house.view = value === 'list' ? 'list' : 'map';
        break;
      case 'readonly':
        house.readonly = value !== null;
        break;
      case 'theme':
        house.recolor();
        break;
      case 'max':
        this.#cart.max = value && Number(value) >= 0 ? Number(value) : Infinity;
        if (this.#known && !this.#cart.seeking) this.choose(this.chosen);
    }
  }

  /** chosen are the seats that are chosen, or held, by ticketId. */
  get chosen(): string[] {
    const cart = this.#cart;
    if (cart.stage !== 'picking') return (cart.order.seats ?? []).map((s) => s.ticketId);
    return [...cart.picked].map((i) => this.house!.state.chart.ticketId[i]);
  }

  /** choose takes these seats in place of those that are chosen, once it is known which are free, and that none are held. */
  choose(ids: string[]): void {
    if (!this.house || this.#known !== this.house.state || this.#cart.seeking) {
      this.#wish = ids;
      return;
    }
    this.#wish = [];
    if (this.#cart.stage === 'picking' && !this.#cart.busy) this.#lose(this.#cart.only(ids));
    this.#host.reflect(this.chosen);
  }

  /** act does something with the order, and returns the booking. What was in the way is thrown. */
  async act(work: (cart: Cart) => Promise<void>): Promise<wire.Order | null> {
    if (this.#trouble) throw this.#trouble;
    await this.#loading;
    if (!this.house) throw new Problem(NO_MAP);
    const cart = this.#cart;
    if (cart.busy) throw new Problem({ code: 'busy', detail: 'another call of this map is under way' });
    let thrown: Problem | null = null;
    const hear = (e: Event) => { thrown ??= (e as CustomEvent<Problem>).detail; };
    cart.addEventListener('problem', hear);
    await work(cart).finally(() => cart.removeEventListener('problem', hear));
    if (thrown) throw thrown;
    return this.booking;
  }

  /** release gives back what is held. */
  async release(cart: Cart): Promise<void> {
    const held = this.#held;
    this.#held = null; // it is not lost
    await cart.giveBack();
    if (cart.stage !== 'picking') this.#held = held;
  }

  #changed(): void {
    const { house } = this;
    if (!house) return;
    this.#known = house.state;
    if (this.#wish.length) this.choose(this.#wish);
    this.#settle();
  }

  #turned(mode: Mode): void {
    if (mode === this.#mode || !this.house) return;
    this.#mode = mode;
    this.#host.tell('mode', { mode, asOf: this.house.asOf });
  }

  /** settle tells what has become of the choice and of the hold, and takes seats out that somebody else has. */
  #settle(): void {
    const cart = this.#cart;
    this.booking = cart.booking;
    if (this.#over) return; // it was answered too late
    if (cart.stage !== this.#stage) return this.#step(cart.stage);
    const { booking } = cart;
    this.#deadline.until(booking?.expiresAt && booking.state !== 'sold' ? Date.parse(booking.expiresAt) : null);
    if (cart.busy || !this.house || this.#known !== this.house.state) return;
    if (cart.stage === 'picking') {
      const { chart } = this.house.state;
      const gone = [...cart.picked].filter((i) => !cart.free(i)).map((i) => chart.ticketId[i]);
      if (gone.length) {
        this.#lose(gone);
        cart.only(this.chosen); // without them, which brings us here again
        return;
      }
      this.#tellChoice();
    }
    this.#host.reflect(this.chosen);
  }

  /** step follows the order from one stage into another. */
  #step(stage: Stage): void {
    const held = this.#held;
    this.#stage = stage;
    if (stage === 'held') {
      this.#held = this.chosen;
      this.#host.tell('hold', this.#cart.order);
    } else if (stage !== 'paying') {
      this.#held = this.#why = null;
      this.#chosen = ''; // that nothing is chosen is told, whatever was
      if (stage === 'sold') return this.#cart.again(); // the next choice is another order
      if (held) queueMicrotask(() => this.#host.tell('lost', { ticketIds: held, reason: this.#why ?? 'released' })); // why is said behind this
      return this.#cart.clear();
    }
    this.#settle();
  }

  #lose(ticketIds: string[]): void {
    if (!ticketIds.length) return;
    this.#say.note(t.map.faster, 'bad');
    this.#host.tell('lost', { ticketIds, reason: 'seats_taken' });
  }

  #tellChoice(): void {
    const { event } = this.house!;
    const ticketIds = this.chosen;
    const areas = [...this.#cart.places].map(([area, quantity]) => ({ area, quantity }));
    const chosen = JSON.stringify([ticketIds, areas]);
    if (chosen === this.#chosen) return;
    this.#chosen = chosen;
    this.#host.tell('select', { ticketIds, areas, total: this.#cart.costs.total, currency: event.currency, decimals: event.decimals });
  }
}

/** Guest is who the page says that its shopper is. Nobody is asked to sign in here. */
class Guest implements Shopper {
  #host: SeatMapElement;

  constructor(host: SeatMapElement) {
    this.#host = host;
  }

  async token(): Promise<string> {
    let token;
    try {
      token = await this.#host.session?.();
    } catch (err) {
      reportError(err); // it is the page's
    }
    if (!token) throw new DOMException('the page gives no session', 'AbortError');
    return token;
  }

  forget(): void {} // the page is asked each time
}

/** Memory keeps which booking an element has for as long as there is the element. */
class Memory implements Kept {
  #all = new Map<string, string>();

  getItem(key: string): string | null {
    return this.#all.get(key) ?? null;
  }

  setItem(key: string, value: string): void {
    this.#all.set(key, value);
  }

  removeItem(key: string): void {
    this.#all.delete(key);
  }
}

/** spoken is the language of an element, which is that of the nearest around it that says one. */
function spoken(el: Element): string {
  for (let at: Element | null = el; at; at = (at.getRootNode() as Partial<ShadowRoot>).host ?? null) {
    const lang = at.closest('[lang]')?.getAttribute('lang');
    if (lang) return lang;
  }
  return '';
}

const NO_MAP = { code: 'no_map', detail: 'this element is not in a page' };

/** SeatMapElement is <seat-map>. */
export class SeatMapElement extends HTMLElement {
  static readonly observedAttributes = ['event', 'server', 'selection', 'max', 'readonly', 'theme', 'view', 'lang'];

  declare session?: (() => Promise<string> | string) | null; // gives a session token of the house
  declare pass?: string | null; // of an event with a waiting room

  #root = this.attachShadow({ mode: 'open' });
  #kept = new Memory();
  #visit: Visit | null = null;
  #due = false;
  #reflecting = false;

  constructor() {
    super();
    this.#color();
  }

  connectedCallback(): void {
    this.again();
  }

  disconnectedCallback(): void {
    this.again();
  }

  attributeChangedCallback(name: string, was: string | null, is: string | null): void {
    if (was === is || this.#reflecting) return;
    if (name === 'theme') this.#color();
    if (name === 'event' || name === 'server' || name === 'lang') {
      if (name !== 'lang' && this.#visit && !this.#due) this.reflect([]); // seats of another house
      this.again();
    } else if (!this.#due) { // or it is read when that begins
      if (name === 'selection') this.#visit?.choose(this.selection);
      else this.#visit?.attend(name);
    }
  }

  #color(): void {
    const theme = this.getAttribute('theme');
    this.#root.adoptedStyleSheets = [...sheets, ...themes[theme === 'light' || theme === 'dark' ? theme : 'system']];
  }

  /** again begins anew, or ends where the element is in no page, when all that changes at once has changed. */
  again(): void {
    if (this.#due) return;
    this.#due = true;
    queueMicrotask(() => {
      this.#due = false;
      this.#visit?.stop();
      speak([spoken(this), ...navigator.languages]);
      this.#visit = this.isConnected ? new Visit(this, this.#root, this.#kept) : null;
    });
  }

  /** selection are the ticketIds that are chosen, or held. */
  get selection(): string[] {
    return (this.getAttribute('selection') ?? '').split(/\s+/).filter(Boolean);
  }

  set selection(ids: string[]) {
    if (this.#visit && !this.#due) this.#visit.choose(ids);
    else this.reflect(ids);
  }

  /** reflect writes what is chosen into the attribute. */
  reflect(ids: string[]): void {
    const is = ids.join(' ');
    if (is === (this.getAttribute('selection') ?? '')) return;
    this.#reflecting = true;
    if (is) this.setAttribute('selection', is);
    else this.removeAttribute('selection');
    this.#reflecting = false;
  }

  /** tell sends an event. */
  tell<K extends keyof Told>(name: K, detail: Told[K]): void {
    this.dispatchEvent(new CustomEvent(name, { detail, bubbles: true, composed: true }));
  }

  /** booking is what is held, or null. */
  get booking(): wire.Booking | null {
    return this.#visit?.booking ?? null;
  }

  /** hold holds what is chosen, all of it or nothing. */
  hold(): Promise<wire.Booking | null> {
    return this.#act(async (cart) => { if (cart.stage === 'picking') await cart.hold(); });
  }

  /** best has the house choose so many seats, and holds them with the places that are chosen. */
  best(n: number): Promise<wire.Booking | null> {
    return this.#act(async (cart) => {
      if (!(n >= 1 && n <= cart.mostParty)) throw new Problem({ code: 'too_many_seats', detail: `so many can be had: 1 to ${cart.mostParty}` });
      if (cart.stage !== 'picking') return;
      cart.setParty(n);
      await cart.best();
    });
  }

  /** extend asks for more time. */
  extend(): Promise<wire.Booking | null> {
    return this.#act(async (cart) => {
      if (cart.stage !== 'held') throw new Problem({ code: 'no_booking', detail: 'nothing is held here' });
      await cart.extend();
    });
  }

  /** release gives back what is held. */
  async release(): Promise<void> {
    await this.#act(async (cart, visit) => { if (cart.stage === 'held') await visit.release(cart); });
  }

  async #act(work: (cart: Cart, visit: Visit) => Promise<void>): Promise<wire.Booking | null> {
    const visit = this.#visit;
    if (!visit) throw new Problem(NO_MAP);
    return visit.act((cart) => work(cart, visit));
  }

  /** fit shows the whole map. */
  fit(): void {
    this.#visit?.house?.fit();
  }

  /** reveal goes to a seat on the map. */
  reveal(ticketId: string): void {
    const house = this.#visit?.house;
    const i = house?.state?.chart.byTicketId.get(ticketId);
    if (i !== undefined) house!.reveal(i);
  }
}

if (!customElements.get('seat-map')) customElements.define('seat-map', SeatMapElement);
