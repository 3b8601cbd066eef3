// The operators' console: how each sale is going, and how its waiting room is. What
// changes something is asked about first, and the server's answer is shown. The token is
// kept in this tab alone.

import { Api, newKey, problem, Problem } from './api';
import { Clock } from './clock';
import { $, h, tell } from './dom';
import { Finder } from './finder';
import { t } from './lang';
import { number } from './locale';
import { translate } from './page';
import type * as wire from './wire';
import { hour, money, when } from './words';

const KEPT = 'seatcast.operator';
const POLL = 5000; // ms between looks at a line

const clock = new Clock();
const token = (): Promise<string> => {
  const kept = sessionStorage.getItem(KEPT);
  return kept === null ? Promise.reject(new DOMException('not signed in', 'AbortError')) : Promise.resolve(kept);
};
const api = new Api(clock, { token, forget: () => {} }); // whoever calls forgets it, and says why
const cards = new Map<string, Card>();
let finder: Finder | null = null;

/** said is what the server says was wrong, in its own words: they say what to do. */
const said = (p: Problem): string => {
  if (p.code === 'offline') return t.problems.offline;
  return p.detail ? `${p.detail} (${p.status} ${p.code})` : `${p.status} ${p.code}`;
};

/** Card is one event. What only operators may know is read when it is opened, and when it is asked for: every such call is written down. */
class Card {
  readonly element: HTMLDetailsElement;
  #event: wire.Summary;
  #figures = h('div', { class: 'figures' });
  #asOf = h('p', { class: 'soft as-of' });
  #room = h('div', { class: 'room' });
  #unseen = h('p', { class: 'trouble', role: 'status' }); // why the room is not as of now
  #controls = h('div', { class: 'actions' });
  #answer = h('p', { class: 'answer', role: 'status' });
  #timer = 0;
  #turn = 0; // of reading; what was asked before the last of them comes too late

  constructor(event: wire.Summary) {
    this.#event = event;
    const { id, mode, state, open, queue } = event;
    this.element = h('details', { class: 'card', 'data-event': id },
      h('summary', {},
        h('span', { class: 'what' }, h('strong', { dir: 'auto' }, event.name), h('small', { dir: 'auto' }, `${event.venue} · ${when(event.startsAt, event.zone)}`)),
        h('span', { class: 'badge' }, t.console.modes[mode]),
        h('span', { class: `badge ${state}${open ? ' on' : ''}` }, this.#state()),
        queue ? h('span', { class: 'badge' }, t.console.room) : null),
      h('div', { class: 'body' },
        event.holds ? null : h('p', { class: 'trouble' }, t.console.noHolds),
        this.#figures,
        h('div', { class: 'actions' }, h('button', { 'data-do': 'refresh', onclick: () => this.#read() }, t.console.refresh), h('a', { href: `/events/${encodeURIComponent(id)}` }, t.console.page), this.#asOf),
        this.#room, this.#unseen, this.#controls, this.#answer));
    this.element.addEventListener('toggle', () => (this.element.open ? this.#read() : this.stop()));
  }

  /** stop looks at it no more. */
  stop(): void {
    this.#turn++;
    clearTimeout(this.#timer);
  }

  #state(): string {
    const { state, open, opensAt, zone } = this.#event;
    if (state === 'open' && !open) return t.home.onSaleFrom(when(opensAt, zone));
    return t.console.states[state];
  }

  async #read(): Promise<void> {
    this.stop();
    const turn = this.#turn;
    const { id, zone } = this.#event;
    try {
      const [figures, room] = await Promise.all([
        api.call<wire.Figures>('GET', `/v1/admin/events/${id}/figures`),
        api.call<wire.Room>('GET', `/v1/admin/rooms/${id}`).catch((err) => { // it may have come, or gone, since it was listed
          const p = problem(err);
          if (p.code !== 'no_queue') throw p;
          return null;
        }),
      ]);
      if (turn !== this.#turn) return;
      if (this.#answer.classList.contains('bad')) this.#answers('');
      this.#show(figures);
      this.#asOf.textContent = t.console.asOf(hour(new Date(clock.now()).toISOString(), zone));
      if (room) this.#line(room);
      else this.#noLine();
    } catch (err) {
      const p = problem(err);
      if (turn === this.#turn) this.#failed(p);
    }
  }

  #failed(p: Problem): void {
    if (refused(p)) return;
    this.#answers(said(p), true);
  }

  #answers(text: string, bad = false): void {
    this.#answer.classList.toggle('bad', bad);
    this.#answer.textContent = text;
  }

  #show({ seats, holdsKnown, areas, tickets, money: taken }: wire.Figures): void {
    const { available, held, sold, unavailable } = seats;
    const all = available + held + sold + unavailable;
    const figure = (name: string, value: string, kind = '') => h('div', { class: `figure ${kind}` }, h('dt', {}, name), h('dd', {}, value));
    const bar = h('div', { class: 'bar', 'aria-hidden': 'true' }, ...(['sold', 'held', 'available', 'unavailable'] as const).filter((kind) => seats[kind] > 0).map((kind) => {
      const part = h('span', { class: kind });
      part.style.flexGrow = String(seats[kind]);
      return part;
    }));
    this.#figures.replaceChildren(
      all ? bar : '',
      h('dl', {},
        ...(all ? [figure(t.console.sold, number(sold), 'sold'), figure(t.console.held, holdsKnown ? number(held) : '?', 'held'),
          figure(t.console.free, number(available), 'available'), figure(t.console.closed, number(unavailable), 'unavailable')] : []),
        ...areas.map((a) => figure(a.name, t.console.soldOf(a.sold, a.capacity))),
        figure(t.console.tickets, number(tickets)),
        figure(t.console.money, money(taken.amount, taken))),
      holdsKnown ? '' : h('p', { class: 'soft' }, t.console.holdsUnknown));
  }

  #noLine(): void {
    this.#doubt('');
    this.#room.replaceChildren(h('p', { class: 'soft' }, t.console.noRoom(`/v1/admin/rooms/${this.#event.id}`)));
    this.#controls.replaceChildren();
  }

  /** line shows the room as it was read, and then as everybody sees it. */
  #line(room: wire.Room): void {
    this.#buttons(room);
    const turn = this.#turn;
    const follow = async (): Promise<void> => {
      if (!document.hidden) {
        const now = await api.get<wire.Line>(`/v1/queue/${this.#event.id}`, true).catch(problem);
        if (turn !== this.#turn) return;
        if (now instanceof Problem && now.code === 'no_queue') return this.#noLine();
        if (now instanceof Problem) this.#doubt(said(now));
        else {
          this.#tell(now, room);
          if (now.state !== room.state) this.#buttons(Object.assign(room, { state: now.state }));
        }
      }
      if (this.element.open && this.element.isConnected) this.#timer = setTimeout(follow, POLL);
    };
    if (room.frame) this.#tell(room.frame, room);
    this.#timer = setTimeout(follow, POLL);
  }

  #doubt(why: string): void {
    if (this.#unseen.textContent !== why) this.#unseen.textContent = why;
  }

  #tell(line: wire.Line, room: wire.Room): void {
    this.#doubt('');
    const pair = (name: string, value: string) => h('div', { class: 'figure' }, h('dt', {}, name), h('dd', {}, value));
    const why = line.slowed && ((t.console.slowed as Record<string, string>)[line.slowed] ?? line.slowed);
    this.#room.replaceChildren(
      h('h2', {}, t.console.room, ' ', h('span', { class: `badge ${line.state}`, 'data-room': line.state }, t.console.rooms[line.state]),
        ' ', h('small', {}, t.live.asOf(hour(new Date(line.at).toISOString(), this.#event.zone)))),
      h('dl', {},
        pair(t.console.waiting, number(line.waiting)),
        pair(t.console.inside, t.console.of(line.inside, room.cap)),
        pair(t.console.rate, t.console.aMinute(line.rate)),
        pair(t.console.pace, t.console.aMinute(line.pace)),
        ...(room.suspected ? [pair(t.console.suspected, number(room.suspected))] : [])),
      why ? h('p', { class: 'soft' }, why) : '');
  }

  #buttons({ state, rate }: wire.Room): void {
    const path = `/v1/admin/rooms/${this.#event.id}`;
    const c = t.console;
    const button = (name: string, title: string, means: string, method: string, to: string) =>
      h('button', { 'data-do': name, onclick: () => sure(title, means, () => this.#do(method, path + to)) }, title);
    this.#controls.replaceChildren(
      ...(state === 'open' ? [button('pause', c.pause, c.pauseMeans, 'POST', '/pause')] : []),
      ...(state === 'paused' ? [button('resume', c.resume, c.resumeMeans, 'POST', '/resume')] : []),
      ...(state === 'closed' || state === 'over' ? [button('open', c.open, c.openMeans, 'POST', '/open')] : []),
      ...(state === 'over' ? [] : [h('form', {
        class: 'rate', onsubmit: (e) => {
          e.preventDefault();
          const to = Number((e.currentTarget as HTMLFormElement).querySelector('input')!.value);
          sure(c.setRate, c.rateMeans(to), () => this.#do('PUT', `${path}/rate`, { rate: to }));
        },
      }, h('label', {}, c.rate, ' ', h('input', { type: 'number', min: 0, step: 1, required: true, value: rate, 'data-do': 'rate' })), h('button', { 'data-do': 'set-rate' }, c.setRate))]));
  }

  /** do carries out a call, and shows what was answered. */
  async #do(method: string, path: string, body?: object): Promise<void> {
    this.#answers(t.console.sending);
    try {
      const room = await api.call<wire.Room>(method, path, { key: newKey(), ...body && { body } });
      if (!this.element.isConnected) return; // nobody is signed in any more, or looks for it
      this.#answers(t.console.done(t.console.rooms[room.state], room.rate));
      await this.#read();
    } catch (err) {
      const p = problem(err);
      if (this.element.isConnected) this.#failed(p);
    }
  }
}

/** sure asks before something is done. */
function sure(title: string, means: string, does: () => void): void {
  const dialog = $<HTMLDialogElement>('sure');
  $('sure-title').textContent = $('sure-yes').textContent = title;
  $('sure-text').textContent = means;
  $('sure-yes').onclick = () => {
    dialog.close();
    does();
  };
  $('sure-no').onclick = () => dialog.close();
  dialog.showModal();
}

/** refused leads back to the sign-in when it was the token that was refused. */
function refused(p: Problem): boolean {
  const nobody = p.status === 401 || p.code === 'token_missing';
  if (nobody || p.code === 'not_operator') leave(nobody ? t.console.refused : t.console.notOperator, p);
  return nobody || p.code === 'not_operator';
}

/** leave forgets the token and all that it has shown. */
function leave(why = '', p?: Problem): void {
  sessionStorage.removeItem(KEPT);
  for (const card of cards.values()) card.stop();
  cards.clear();
  $('events').replaceChildren();
  tell('jobs', '');
  $('desk').hidden = $('sign-out').hidden = true;
  $('enter').hidden = false;
  $('refused').hidden = !why;
  $('refused').textContent = p?.detail ? `${why} ${said(p)}` : why;
  $('token').focus();
}

/** enter shows the desk to whom the server believes to be an operator. */
async function enter(): Promise<void> {
  try {
    const { jobs, next } = await api.call<wire.Jobs>('GET', '/v1/admin/jobs?limit=50');
    tell('jobs', jobs.length ? t.console.stuck(jobs.length, next !== undefined) : t.console.noneStuck);
  } catch (err) {
    const p = problem(err);
    if (refused(p)) return;
    $('refused').hidden = $('enter').hidden = false;
    $('refused').textContent = said(p);
    return;
  }
  $('enter').hidden = $('refused').hidden = true;
  $('desk').hidden = $('sign-out').hidden = false;
  if (finder) finder.again();
  else finder = new Finder(api, show, () => $('events').replaceChildren());
}

function show(found: wire.Found, words: string, page: number): void {
  if (sessionStorage.getItem(KEPT) === null) return;
  if (page === 1) {
    for (const card of cards.values()) card.stop();
    cards.clear();
    $('events').replaceChildren();
    if (!found.events.length) $('events').append(h('p', { class: 'soft' }, words ? t.home.none(words) : t.home.empty));
  }
  for (const event of found.events) {
    const card = new Card(event);
    cards.set(event.id, card);
    $('events').append(card.element);
  }
  if (page === 1 && found.events.length === 1) cards.get(found.events[0].id)!.element.open = true;
}

function main(): void {
  translate();
  document.title = `${t.console.title} · Seatcast`;
  $<HTMLFormElement>('enter').onsubmit = (e) => {
    e.preventDefault();
    const field = $<HTMLInputElement>('token');
    sessionStorage.setItem(KEPT, field.value.trim().replace(/^Bearer\s+/i, ''));
    field.value = '';
    enter();
  };
  $('sign-out').onclick = () => leave();
  if (sessionStorage.getItem(KEPT) === null) leave();
  else enter();
}

main();
