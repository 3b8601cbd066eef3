// What the page of an event says of its waiting room: to who is not let in that there is
// one, which may have come while they looked at the map, and to who is how long they have.

import { problem, type Api } from './api';
import type { Cart } from './cart';
import { Countdown, mmss, type Clock } from './clock';
import { $, tell } from './dom';
import { details } from './house';
import { t } from './lang';
import { Keep } from './line';
import type { Speaker } from './say';
import type * as wire from './wire';
import { sentence } from './words';

const NEAR = 3600000; // ms before the time inside ends from which it is counted down
const WARN = 60000; // ms before, when it is said
const STALE = 20000; // ms after which it is asked again whether there is a room, and how it stands

interface Page { event: wire.Event; cart: Cart; api: Api; clock: Clock; say: Speaker }

/** Inside is who looks at a map, and may be let in to buy. */
export class Inside {
  #page: Page;
  #keep: Keep;
  #until = NaN; // ms: when the time inside ends, or has ended
  #kept: string | undefined; // the same, as this browser kept it when it was asked for
  #lets = false; // people are let in, or may take a place
  #turn = 0; // of asking: what was asked before the last of them comes too late
  #countdown: Countdown;
  #joins: Countdown; // to when places may be taken
  #warned = false;
  #asked = performance.now(); // when the event was asked for last
  #chosen = false;

  constructor(page: Page) {
    const { event, cart, clock } = this.#page = page;
    this.#keep = new Keep(event.id);
    this.#countdown = new Countdown(clock, (left) => this.#tick(left));
    this.#joins = new Countdown(clock, (left) => {
      if (left > 0) return;
      this.#lets = true; // which was known before: nobody need ask, all at once
      this.#show();
    });
    $<HTMLAnchorElement>('line-to').href = `/queue/${encodeURIComponent(event.id)}`;
    tell('line-to', t.home.join);
    tell('inside-says', t.queue.until.inside);
    document.addEventListener('visibilitychange', () => { if (!document.hidden) this.#look(); });
    addEventListener('storage', () => { if (this.#keep.place?.until !== this.#kept) this.ask(); }); // another tab was let in, or has left
    cart.addEventListener('change', () => {
      if (cart.size > 0 && !this.#chosen) this.#look();
      this.#chosen = cart.size > 0;
      this.#show();
    });
    cart.addEventListener('told', (e) => { if (e.detail.what === 'sold') this.ask(); }); // who has bought makes room for the next
    this.ask();
  }

  /** ask asks whether there is a line to take a place in, and how long there is, where this browser was let in. */
  async ask(): Promise<void> {
    const turn = ++this.#turn;
    const { event, clock } = this.#page;
    this.#kept = this.#keep.place?.until;
    const [room, until] = event.queue ? await Promise.all([this.#room(), this.#time()]) : [null, NaN];
    if (turn !== this.#turn) return;
    if (room !== undefined) {
      const on = room !== null && room.state !== 'over';
      const joins = on ? Date.parse(room.joinsAt) : NaN;
      const early = joins > clock.now();
      this.#lets = on && !early;
      this.#joins.until(early ? joins : null);
    }
    const lasts = until > clock.now();
    if (until !== this.#until) {
      this.#until = lasts ? until : NaN; // of one that ended before this page came nothing is said
      this.#warned = false;
    }
    this.#countdown.until(lasts ? until : null);
    this.#show();
  }

  /** room is how the line stands; null: there is none any more, undefined: that is not known. */
  async #room(): Promise<wire.Line | null | undefined> {
    const { event, api } = this.#page;
    return api.get<wire.Line>(`/v1/queue/${encodeURIComponent(event.id)}`).catch((err) => (problem(err).status === 404 ? null : undefined));
  }

  /** time is when the time inside ends, in Unix milliseconds. */
  async #time(): Promise<number> {
    const { event, api, clock } = this.#page;
    const until = Date.parse(this.#keep.place?.until ?? '');
    if (!(until > clock.now())) return until;
    try {
      return Date.parse((await api.call<wire.Place>('GET', `/v1/queue/${encodeURIComponent(event.id)}/me`, { quiet: true })).insideUntil ?? '');
    } catch (err) {
      return problem(err).status === 404 ? NaN : until;
    }
  }

  /** look asks anew: a room may have come, or be over. */
  async #look(): Promise<void> {
    const { event, api } = this.#page;
    if (performance.now() - this.#asked < STALE) return;
    this.#asked = performance.now();
    event.queue = (await details(api, event.id).catch(() => event)).queue;
    this.ask();
  }

  #tick(left: number): void {
    $('inside-left').textContent = mmss(left);
    this.#show();
    if (left > WARN || left === 0 || this.#warned || $('inside').hidden) return;
    this.#warned = true;
    if (left > WARN - 5000) this.#page.say.announce(t.event.minute); // of a page that has just come there is less, and it is shown
  }

  #show(): void {
    const { event, cart, clock } = this.#page;
    const left = this.#until - clock.now();
    const picks = event.state !== 'cancelled' && cart.stage === 'picking' && !cart.seeking; // whoever holds seats pays for them first
    $('inside').hidden = !picks || !(left > 0 && left <= NEAR);
    const line = picks && this.#lets && !(left > 0);
    if (line) tell('line-says', sentence({ code: left <= 0 ? 'pass_expired' : 'pass_required' }));
    $('line').hidden = !line;
  }
}
