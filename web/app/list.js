// The same seats as a list: sections, their rows, their seats, as buttons. For
// the keyboard, for screen readers, and for whoever dislikes maps. Rows and
// seats exist only while they are opened: 60,000 buttons are no list.

import { ACCESSIBLE, COMPANION, RESTRICTED } from './chart.js';
import { h } from './dom.js';
import { AVAILABLE } from './state.js';
import { count, money, number, remaining, statusWords } from './words.js';

/** SeatList shows a State as a list. */
export class SeatList {
  #root;
  #cart;
  #event;
  #pick;
  #open = new Map(); // section → its body, for sections opened so far
  #rows = new Map(); // row key → function that updates it
  #due = 0;

  /**
   * @param {HTMLElement} root
   * @param {{cart: import('./cart.js').Cart, event: object, pick: (i: number) => void}} o
   */
  constructor(root, { cart, event, pick }) {
    this.#root = root;
    this.#cart = cart;
    this.#event = event;
    this.#pick = pick;
    cart.addEventListener('change', () => this.update());
  }

  /** show takes another chart. */
  show(state) {
    this.state = state;
    this.chart = state.chart;
    this.#open.clear();
    this.#rows.clear();
    this.#root.replaceChildren(...this.chart.sections.map((s) => this.#section(s)));
    this.update();
  }

  /** update brings counts and opened seats up to date, once a moment at most. */
  update() {
    if (this.#due || !this.state || this.#root.hidden) return;
    this.#due = setTimeout(() => {
      this.#due = 0;
      this.#counts();
      for (const f of this.#rows.values()) f();
    }, 150);
  }

  #counts() {
    this.chart.sections.forEach((s, n) => {
      this.#root.children[n].querySelector('.count').textContent = remaining(this.state.free[n], this.state.held[n], `of ${number(s.seats)} free`);
    });
  }

  #section(s) {
    return h('details', { ontoggle: (e) => e.target === e.currentTarget && this.#toggleSection(e.target, s) },
      h('summary', {}, h('span', { class: 'name' }, s.name), h('span', { class: 'count' }, '')));
  }

  #toggleSection(el, s) {
    if (!el.open || this.#open.has(s.index)) return;
    const body = h('div', { class: 'rows' }, ...s.rows.map((r, n) => this.#row(s, r, n)));
    this.#open.set(s.index, body);
    el.append(body);
  }

  #row(s, r, n) {
    const key = `${s.index}/${n}`;
    const label = h('span', { class: 'count' }, '');
    const counted = () => {
      const free = r.seats.filter((i) => this.state.status[i] === AVAILABLE).length;
      label.textContent = free ? `${free} free` : 'none free';
    };
    counted();
    this.#rows.set(key, counted);
    return h('details', {
      ontoggle: (e) => {
        if (!e.target.open) {
          e.target.querySelector('.seats')?.remove();
          this.#rows.set(key, counted);
          return;
        }
        const [body, update] = this.#seats(s, r);
        e.target.append(body);
        this.#rows.set(key, () => { counted(); update(); });
      },
    }, h('summary', {}, h('span', { class: 'name' }, `Row ${r.label}`), label));
  }

  #seats(s, r) {
    const buttons = r.seats.map((i) => h('button', { onclick: () => this.#pick(i) }, this.chart.label[i]));
    const update = () => {
      const mine = new Set(this.#cart.mine);
      r.seats.forEach((i, n) => this.#seat(buttons[n], i, mine.has(i)));
    };
    update();
    return [h('div', { class: 'seats', role: 'group', 'aria-label': `${s.name}, row ${r.label}` }, ...buttons), update];
  }

  /** seat says in words what the map says in shapes. */
  #seat(button, i, mine) {
    const picked = this.#cart.picked.has(i);
    const status = this.state.status[i];
    const c = this.chart;
    const kind = mine ? 'mine' : picked ? 'picked' : statusWords[status];
    if (button.dataset.kind === kind) return;
    button.dataset.kind = kind;
    const category = c.categories[c.category[i]].name;
    const flags = [[ACCESSIBLE, 'wheelchair space'], [COMPANION, 'companion seat'], [RESTRICTED, 'restricted view']];
    const words = [`Seat ${c.label[i]}`, category, money(this.#cart.alone(i), this.#event),
      ...flags.filter(([f]) => c.flags[i] & f).map(([, w]) => w), mine ? 'yours' : picked ? 'chosen' : statusWords[status]];
    button.setAttribute('aria-label', words.join(', '));
    button.setAttribute('aria-pressed', picked || mine);
    button.setAttribute('aria-disabled', !picked && status !== AVAILABLE);
    button.title = words.slice(1).join(' · ');
  }
}

/**
 * describe says everything about a seat in a few lines, for a tooltip.
 * @param {import('./state.js').State} state
 * @param {number} i
 * @param {import('./cart.js').Cart} cart
 * @param {{currency: string, decimals?: number}} event
 * @returns {string[]}
 */
export function describe(state, i, cart, event) {
  const c = state.chart;
  const own = cart.mine.includes(i) ? 'yours' : cart.picked.has(i) ? 'chosen' : statusWords[state.status[i]];
  const flags = [[ACCESSIBLE, 'Wheelchair space'], [COMPANION, 'Companion seat'], [RESTRICTED, 'Restricted view']];
  return [c.place(i), `${c.categories[c.category[i]].name} · ${money(cart.alone(i), event)} · ${own}`,
    ...flags.filter(([f]) => c.flags[i] & f).map(([, w]) => w)];
}

/**
 * areaWords says how many places of an area are left.
 * @param {number} left
 */
export const areaWords = (left) => (left ? `${count(left, 'place')} left` : 'full');
