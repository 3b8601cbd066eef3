// The panel beside the map: what is chosen, the hold with its clock, payment,
// tickets. It is drawn anew from the cart whenever that changes.

import type { Api } from './api';
import type { Cart, Stage } from './cart';
import type { Chart } from './chart';
import { Deadline, mmss, type Clock } from './clock';
import { h, swatch, unbroken } from './dom';
import { t } from './lang';
import { Means } from './pay';
import { remarks } from './list';
import { qr } from './qr';
import type { Speaker } from './say';
import type { State } from './state';
import { Stepper } from './stepper';
import type * as wire from './wire';
import { byPlace, declineWords, dotted, leftIn, money, there, ticketWords } from './words';

const WARN = [120, 60, 30] as const; // seconds before the end, when it is said: WCAG 2.2.1 wants twenty to act in

/** Panel shows a cart. */
export class Panel {
  #root: HTMLElement;
  #cart: Cart;
  #event: wire.Event;
  #clock: Clock;
  #say: Speaker;
  #reveal: (i: number) => void;
  #state: State | null = null;
  #deadline: Deadline;
  #armed = ''; // for what, and until when
  #said = new Set<number>(); // warnings of this deadline
  #ticking: HTMLElement; // shows the same time elsewhere in the page
  #soon = false; // the time is nearly up
  #from: HTMLElement | null = null; // had the focus before it was asked whether more time is wanted
  #offered = false; // other seats, for those that are gone
  #declined: string | null = null; // as it was drawn
  #wish: string | null = null; // what has the focus again when it is there
  #means: Means;
  #button = h('button', { class: 'primary', 'data-key': 'pay' });
  #pay: HTMLElement; // the form, which stays in the page while the means is shown
  #codes = new Map<string, HTMLElement>(); // text → canvas

  constructor(root: HTMLElement, { api, cart, event, clock, say, ticking, reveal }: { api: Api; cart: Cart; event: wire.Event; clock: Clock; say: Speaker; ticking: HTMLElement; reveal: (i: number) => void }) {
    this.#root = root;
    this.#cart = cart;
    this.#event = event;
    this.#clock = clock;
    this.#say = say;
    this.#reveal = reveal;
    this.#ticking = ticking;
    this.#deadline = new Deadline(clock, (left) => this.#tick(left), async () => { if (cart.stage === 'held') await cart.refresh(); });
    this.#means = new Means(api, event, { changed: () => this.draw(), other: () => cart.other() });
    const pay = (e: Event) => {
      e.preventDefault();
      say.shown(t.panel.paying);
      cart.pay(() => this.#means.name());
    };
    this.#pay = h('form', { class: 'pay', onsubmit: pay },
      this.#means.element, h('div', { class: 'actions' }, this.#button));
    cart.addEventListener('change', () => this.draw());
    document.addEventListener('keydown', (e) => {
      if (!e.altKey || e.ctrlKey || e.metaKey || e.code !== 'KeyE' || !this.#more) return; // with Ctrl it is AltGr, which writes €
      e.preventDefault();
      cart.extend();
    });
    cart.addEventListener('told', (e) => {
      if (e.detail.what === 'asked') this.#step(e.detail.go);
      if (e.detail.what === 'extended') this.#return();
    });
  }

  /** on follows a chart and its state. */
  on(state: State): void {
    this.#state = state;
    this.draw();
  }

  /** draw shows the cart as it is. The focus stays where it was, or waits at the head for what it was on. */
  draw(): void {
    const state = this.#state;
    if (!state) return;
    const active = document.activeElement;
    const at = active instanceof HTMLElement && this.#root.contains(active) ? active.dataset.key : null;
    const offered = !this.#cart.busy && this.#cart.offer !== null;
    const focus = at && offered && !this.#offered ? 'instead' : at === 'head' && this.#wish || at; // what may be taken instead is one key away
    if (!this.#cart.busy) this.#offered = offered;
    const stages: Record<Stage, () => HTMLElement[]> = { picking: () => this.#picking(state), held: () => this.#held(state.chart), paying: () => this.#paying(state.chart), sold: () => this.#sold() };
    this.#show(stages[this.#cart.stage]());
    this.#root.dataset.stage = this.#cart.stage;
    this.#root.setAttribute('aria-busy', String(this.#cart.busy));
    if (focus) this.#focus(focus);
    const { declined } = this.#cart;
    if (declined !== null && this.#declined === null) this.#root.querySelector('.hint.bad')?.scrollIntoView({ block: 'nearest' });
    this.#declined = declined;
    this.#arm();
  }

  /** show puts parts in place of what is shown. The form to pay stays where it is. */
  #show(parts: HTMLElement[]): void {
    const at = parts.indexOf(this.#pay);
    if (at < 0 || this.#pay.parentNode !== this.#root) this.#root.replaceChildren(...parts);
    else {
      for (const el of [...this.#root.children]) if (el !== this.#pay) el.remove();
      this.#pay.before(...parts.slice(0, at));
      this.#pay.after(...parts.slice(at + 1));
    }
    const { stage, busy, costs, trying } = this.#cart;
    this.#button.disabled = stage !== 'held' || busy || !this.#means.ready;
    this.#pay.hidden = stage !== 'held';
    if (at < 0) return this.#means.hide();
    this.#button.textContent = trying ? t.panel.paying : t.panel.pay(this.#money(costs.total));
    this.#button.classList.toggle('working', trying);
    if (stage === 'held') this.#means.show(costs.total);
    else this.#means.used();
  }

  #focus(key: string): void {
    const el = this.#root.querySelector<HTMLElement>(`[data-key="${CSS.escape(key)}"]:not(:disabled, [hidden] *)`);
    this.#wish = el ? null : key;
    (el ?? this.#root.querySelector<HTMLElement>('[data-key=head]'))?.focus({ preventScroll: true });
  }

  /** arm starts the countdown of a stage that has one, and anew when its end has moved. */
  #arm(): void {
    const { stage, order } = this.#cart;
    const ends = stage === 'held' || stage === 'paying' ? order.expiresAt : null;
    if (`${stage} ${ends}` !== this.#armed) {
      this.#armed = `${stage} ${ends}`;
      this.#said.clear();
    }
    this.#deadline.until(ends ? Date.parse(ends) : null);
    if (ends) this.#tick(Date.parse(ends) - this.#clock.now(), true);
  }

  #tick(left: number, quiet = false): void {
    for (const el of [this.#root.querySelector('.clock'), this.#ticking]) {
      if (!el) continue;
      el.textContent = mmss(left);
      el.classList.toggle('hurry', left < 60000);
    }
    const soon = left <= WARN[0] * 1000 && this.#cart.stage === 'held';
    const warning = this.#root.querySelector<HTMLElement>('.soon');
    if (warning) {
      const text = left === 0 ? t.panel.over : this.#more ? t.panel.soon : t.panel.last;
      if (warning.textContent !== text) warning.textContent = text;
      warning.hidden = !soon;
    }
    this.#root.classList.toggle('hurried', soon);
    if (!this.#cart.busy) { // or its button cannot be pressed yet
      if (soon && !this.#soon) this.#urge();
      this.#soon = soon;
    }
    if (quiet) return;
    const due = WARN.findLast((s) => left <= s * 1000 && left > s * 1000 - 2000);
    if (due && !this.#said.has(due)) {
      this.#said.add(due);
      this.#say.announce(this.#more ? `${t.panel.warn[due]} ${t.panel.moreByKey}` : t.panel.warn[due]);
    }
  }

  /** urge puts more time under the next key, unless something is being filled in. */
  #urge(): void {
    const active = document.activeElement;
    const button = this.#root.querySelector<HTMLButtonElement>('[data-key=extend]:not(:disabled, .hidden)');
    if (!button || active?.matches('input, select, textarea, iframe') || this.#pay.contains(active)) return;
    this.#from = active instanceof HTMLElement && active !== document.body ? active : null;
    button.focus({ preventScroll: true });
  }

  /** return puts the focus back where it was before that. */
  #return(): void {
    if (this.#from?.isConnected) this.#from.focus({ preventScroll: true });
    this.#from = null;
  }

  #action(text: string, key: string, onclick: () => void, kind = ''): HTMLElement {
    return h('button', { 'data-key': key, class: kind, disabled: this.#cart.busy, onclick }, text);
  }

  #money(amount: number): string {
    return money(amount, this.#event);
  }

  #total(): HTMLElement {
    const { total, fees } = this.#cart.costs;
    return h('div', { class: 'total' }, h('span', {}, t.panel.total, fees.length ? h('small', {}, ` ${t.panel.withFees}`) : null), h('strong', {}, this.#money(total)));
  }

  /** fees are what of the total is none of the prices above. */
  #fees(): HTMLElement[] {
    const { fees } = this.#cart.costs;
    return fees.length === 0 ? [] : [h('ul', { class: 'lines fees' }, ...fees.map((f) => h('li', {}, h('span', { class: 'place', dir: 'auto' }, f.name), h('span', { class: 'price' }, this.#money(f.amount)))))];
  }

  #picking(state: State): HTMLElement[] {
    const cart = this.#cart;
    const parts: HTMLElement[] = [head(t.panel.yourSeats)];
    if (this.#event.state === 'cancelled') return [...parts, h('p', { class: 'soft' }, t.panel.noOrder)];
    if (cart.seeking) return [...parts, h('p', { class: 'soft working' }, t.panel.seeking)];
    if (cart.size) parts.push(this.#total());
    if (!cart.picked.size) parts.push(h('p', { class: 'soft' }, this.#event.holds ? t.panel.chooseToHold : t.panel.chooseToBook));
    if (!cart.picked.size && cart.mostParty > 0 && state.chart.size > 0) parts.push(this.#best());
    parts.push(h('ul', { class: 'lines' }, ...state.chart.inOrder(cart.picked).map((i) => this.#seat(state.chart, i))));
    if (cart.lost.length && !cart.busy) parts.push(this.#instead(state.chart));
    if (this.#event.areas.length) parts.push(h('div', { class: 'areas' }, ...this.#event.areas.map((a) => this.#area(state, a))));
    if (!cart.size) return parts;
    const n = cart.wanted.length + cart.size - cart.picked.size;
    const all = n === cart.size;
    const { hold, holdOf, holding, book, bookOf, booking } = t.panel;
    const says = this.#event.holds ? { all: hold, some: holdOf, busy: holding } : { all: book, some: bookOf, busy: booking };
    if (!this.#event.holds) parts.push(h('p', { class: 'hint' }, t.event.unheld));
    parts.push(...this.#fees(), h('div', { class: 'actions' },
      h('button', { 'data-key': 'hold', class: 'primary', disabled: cart.busy || n === 0 || !this.#event.open, onclick: () => cart.hold() },
        cart.busy ? says.busy : all ? says.all(n) : says.some(n, cart.size)),
      this.#action(t.panel.clear, 'clear', () => cart.clear(), 'plain')));
    if (!this.#event.open) parts.push(h('p', { class: 'soft' }, t.panel.notOpen));
    return parts;
  }

  /** instead says what is gone, and offers the next best. */
  #instead(chart: Chart): HTMLElement {
    const { lost, offer } = this.#cart;
    const box = h('div', { class: 'instead', role: 'group', 'aria-label': t.panel.instead }, h('p', {}, t.panel.gone(chart.places(lost))));
    if (!offer) box.append(h('p', {}, t.panel.nothingNear));
    else {
      box.append(h('p', {}, offer.together ? t.panel.near : t.panel.nearApart, ' ', h('strong', { dir: 'auto' }, chart.places(offer.seats))),
        h('button', { 'data-key': 'instead', class: 'choose', disabled: !this.#event.open, onclick: () => this.#cart.instead() },
          (this.#event.holds ? t.panel.holdInstead : t.panel.bookInstead)(offer.seats.length)));
    }
    return box;
  }

  /** best lets the house choose. */
  #best(): HTMLElement {
    const cart = this.#cart;
    const n = Math.min(cart.party, cart.mostParty);
    const stepper = new Stepper(t.panel.party, 'best', (to) => cart.setParty(to));
    return h('div', { class: 'best' },
      h('span', { class: 'place' }, t.panel.best, h('small', {}, among(cart.wish))),
      cart.busy ? stepper.show(n, n, n).element : stepper.show(n, 1, cart.mostParty).element,
      h('button', { 'data-key': 'best', class: 'choose', disabled: cart.busy || !this.#event.open, onclick: () => cart.best() },
        cart.busy ? t.panel.choosing : this.#event.holds ? t.panel.holdBest(n) : t.panel.bookBest(n)));
  }

  /** hints are what a shopper may want to know of the seats that are held. */
  #hints(chart: Chart): HTMLElement[] {
    const { together, warnings = [] } = this.#cart.order;
    const single = warnings.filter((w) => w.code === 'orphan_left').flatMap((w) => w.seats)
      .map((id) => chart.byTicketId.get(id)).filter((i) => i !== undefined).map((i) => chart.place(i));
    return [
      together === false && t.panel.apart,
      single.length > 0 && t.panel.single(single.join('; ')),
    ].filter((text) => text !== false).map((text) => h('p', { class: 'hint' }, text));
  }

  #seat(chart: Chart, i: number): HTMLElement {
    const free = this.#cart.free(i);
    const color = chart.categories[chart.category[i]].color;
    return h('li', { class: free ? '' : 'gone' },
      swatch(color),
      h('button', { class: 'plain place', 'data-key': `seat${i}`, onclick: () => this.#reveal(i), dir: 'auto', title: t.panel.reveal },
        ...unbroken(chart.place(i)), free ? null : h('em', {}, ` ${t.panel.taken}`), remarked(chart, i)),
      h('span', { class: 'price' }, this.#money(this.#cart.price(i))),
      h('button', { class: 'plain', 'data-key': `drop${i}`, 'aria-label': t.panel.remove(chart.place(i)), onclick: () => this.#cart.toggle(i) }, '×'));
  }

  #area(state: State, a: wire.PricedArea): HTMLElement {
    const cart = this.#cart;
    const n = cart.places.get(a.area) ?? 0;
    const left = state.areas.get(a.area) ?? 0;
    const stepper = new Stepper(t.stepper.placesIn(a.name), a.area, (to) => cart.setPlaces(a.area, to));
    return h('div', { class: 'area', id: `area-${a.area}` },
      h('span', { class: 'place' }, h('span', { dir: 'auto' }, a.name), h('small', {}, dotted(this.#money(cart.alones.get(a.category) ?? 0), leftIn(state, a.area, t.left.left)))),
      cart.busy ? stepper.show(n, n, n).element : stepper.show(n, 0, left).element);
  }

  #lines(chart: Chart): HTMLElement {
    const b = this.#cart.order;
    const areas = new Map(this.#event.areas.map((a) => [a.area, a.name]));
    return h('ul', { class: 'lines' },
      ...(b.seats ?? []).toSorted(byPlace).map((s) => h('li', {}, h('span', { class: 'place', dir: 'auto' }, ...unbroken(t.seat.place(s.section, s.row, s.label)), remarked(chart, chart.byTicketId.get(s.ticketId))), h('span', { class: 'price' }, this.#money(s.price)))),
      ...(b.areas ?? []).map((a) => h('li', {}, h('span', { class: 'place', dir: 'auto' }, `${a.quantity} × ${areas.get(a.area) ?? a.area}`), h('span', { class: 'price' }, this.#money(a.price * a.quantity)))));
  }

  /** more says that there is more time to be had. */
  get #more(): boolean {
    const { stage, booking } = this.#cart;
    if (stage !== 'held' || !booking) return false;
    const { cap, expiresAt = '' } = booking;
    return !cap || Date.parse(cap) - Date.parse(expiresAt) > 1000;
  }

  #held(chart: Chart): HTMLElement[] {
    const cart = this.#cart;
    const { declined } = cart;
    return [
      h('div', { class: 'hold' }, head(cart.unheld ? t.panel.bookedNotHeld : t.panel.heldForYou), h('span', { class: 'clock', role: 'timer' }, ''),
        h('button', { 'data-key': 'extend', 'aria-keyshortcuts': 'Alt+E', class: this.#more ? '' : 'hidden', disabled: cart.busy, onclick: () => cart.extend() }, t.panel.moreTime),
        h('p', { class: 'soon', hidden: true })),
      ...(cart.unheld ? [h('p', { class: 'hint' }, `${t.event.unheld} ${t.panel.orderStands}`)] : []),
      this.#total(), this.#lines(chart), ...this.#fees(), ...this.#hints(chart),
      ...(declined === null ? [] : [h('p', { class: 'hint bad' }, declineWords(declined, cart.unheld))]),
      this.#pay,
      h('div', { class: 'actions' },
        this.#action(t.panel.giveBack, 'back', () => cart.giveBack(), 'plain')),
    ];
  }

  #paying(chart: Chart): HTMLElement[] {
    const { action, stepping, unheld, elsewhere } = this.#cart;
    const ours = action && !stepping; // the next step: the bank waits for the shopper
    return [
      h('div', { class: 'hold' }, head(t.panel.paying), h('span', { class: 'clock', role: 'timer' }, '')),
      this.#total(), this.#lines(chart), ...this.#fees(), this.#pay,
      ...(ours ? [
        h('p', { class: 'hint' }, t.event.asked),
        h('div', { class: 'actions' }, h('button', { 'data-key': 'approve', class: 'primary', onclick: () => this.#step(true) }, t.panel.approve)),
      ] : []),
      ours
        ? h('p', { class: 'soft' }, unheld ? t.panel.toApproveUnheld : t.panel.toApprove)
        : h('p', { class: 'soft working' }, elsewhere ? t.panel.bankElsewhere : unheld ? t.panel.bankUnheld : t.panel.bank),
      h('div', { class: 'actions' }, this.#action(t.panel.cancelPayment, 'cancel', () => this.#cart.giveBack(), 'plain')),
    ];
  }

  /**
   * step has the shopper take the step a payment waits for: in the page, or at the
   * bank's. It goes there only when told; who came back from there, or reloads, stays.
   */
  #step(go: boolean): void {
    const { action } = this.#cart;
    if (!action) return;
    this.#cart.step(async () => {
      if (action.clientSecret && await this.#means.scripted()) await this.#means.step(action.clientSecret);
      else if (go && action.url) location.assign(away(action.url));
    });
  }

  /** code is the QR code of a ticket, drawn once. */
  #code(text: string): HTMLElement {
    const drawn = this.#codes.get(text);
    if (drawn) return drawn;
    const code = qr(text, t.ticket.code);
    this.#codes.set(text, code);
    return code;
  }

  #sold(): HTMLElement[] {
    const { order: b } = this.#cart;
    const ticket = (one: wire.Ticket) => h('article', { class: `ticket ${one.status}` },
      h('div', {}, h('strong', { dir: 'auto' }, this.#event.name), h('small', { dir: 'auto' }, `${this.#event.venue} · ${there(this.#event.startsAt, this.#event.zone)}`)),
      one.area
        ? h('dl', {}, ...pair(t.ticket.area, this.#event.areas.find((a) => a.area === one.area)?.name ?? one.area))
        : h('dl', {}, ...pair(t.ticket.section, one.section), ...pair(t.ticket.row, one.row), ...pair(t.ticket.seat, one.label)),
      one.qr ? this.#code(one.qr) : null,
      h('footer', {}, h('code', {}, one.id), h('span', { class: 'state' }, ticketWords(one.status))));
    const refunded = b.state === 'refunded';
    return [
      head(refunded ? t.panel.refunded : t.panel.sold),
      h('p', { class: 'soft' }, refunded ? t.panel.refundedHow : t.panel.paid(this.#money(b.total.amount))),
      h('div', { class: 'tickets' }, ...(b.tickets ?? []).toSorted(byPlace).map(ticket)),
      h('div', { class: 'actions' }, this.#action(t.panel.more, 'again', () => this.#cart.again())),
    ];
  }
}

/** among says of which seats the house chooses. */
function among({ categories, accessible }: Cart['wish']): string {
  const of = categories?.join(', ');
  if (accessible) return of ? t.panel.specialOf(of) : t.panel.specialOfAll;
  return of ? t.panel.bestOf(of) : t.panel.bestOfAll;
}

/** remarked is a line that says what a shopper should know of a seat, if there is anything. */
function remarked(chart: Chart, i: number | undefined): HTMLElement | null {
  const words = i === undefined ? '' : remarks(chart, i).join(', ');
  return words ? h('small', { class: 'remark' }, words) : null;
}

/** away is a page of the bank's; one of this site is told where to lead back to. */
function away(url: string): string {
  const to = new URL(url, location.href);
  if (to.origin === location.origin) to.searchParams.set('return', location.pathname);
  return to.href;
}

const head = (text: string) => h('h2', { 'data-key': 'head', tabindex: -1 }, text);

const pair = (name: string, value = '') => [h('dt', {}, name), h('dd', { dir: 'auto' }, value)];
