// The part of a line's page that checks the draw: what was checked, what was not,
// and what is wrong, in plain words.

import { $, h, holding, type Child } from './dom';
import { announced, announcedThen, external, Faulty, hex, keyFollows, listed, outAt, QUICKNET, receipt, seedIsAnnounced, shardOf, unbase64, type Receipt, type Said } from './draw';
import type { End, Job, News } from './drawworker';
import { roomOf, type Keep, type KeptReceipt } from './line';
import type * as wire from './wire';
import { count, number } from './words';

const SMALL = 20000; // tickets: so many are worked out without asking
const LINE = 58; // bytes of one in the list

/** Unread is what was published and could not be read. */
class Unread extends Error {}

async function read(path: string): Promise<string> {
  const res = await fetch(path).catch(() => null);
  if (!res?.ok) throw new Unread(path);
  return res.text();
}

const WORDS = { right: 'Checked', wrong: 'Wrong', open: 'Not checked' };

type Verdict = keyof typeof WORDS;

/** Holder is who has a ticket, and the place that was shown. */
interface Holder { ticket: string; number?: number }

interface Result { verdict: Verdict; says: Child[]; whole?: boolean } // whole: that all is to be checked

/** Check checks the draw of one line when it is told to. */
export class Check {
  #base: string; // where the line is
  #keep: Keep;
  #offered!: Holder; // last
  #mine!: Holder; // of who is being checked
  #busy = false;
  #rank = 0; // by the part of the list with the ticket
  #draw!: Said; // since it was read
  #receipt: Receipt | null = null;
  #results: Result[] = [];

  constructor(base: string, keep: Keep) {
    this.#base = base;
    this.#keep = keep;
    $('check-mine').onclick = () => this.#once(() => this.#run());
    $('check-all').onclick = () => this.#once(() => this.#all());
  }

  /** offer shows that a draw was held which somebody can check; null: none, or nobody. */
  offer(mine: Holder | null): void {
    if (mine) this.#offered = mine;
    $('check').hidden = !mine;
  }

  /** once checks one thing after the other. */
  async #once(check: () => Promise<void>): Promise<void> {
    if (this.#busy) return;
    this.#working(true);
    try {
      await check();
      this.#sum();
    } catch (err) {
      this.#stopped(err);
    } finally {
      this.#working(false);
    }
  }

  /** working shows that its buttons do nothing now; they keep the focus. */
  #working(now: boolean): void {
    this.#busy = now;
    for (const id of ['check-mine', 'check-all']) $(id).setAttribute('aria-disabled', String(now));
  }

  async #run(): Promise<void> {
    this.#mine = this.#offered;
    this.#results = [];
    $('check-all').hidden = true;
    this.#says('Checking…');
    await this.#place();
    if (this.#draw.tickets <= SMALL) await this.#whole();
    else this.#offerAll();
  }

  async #all(): Promise<void> {
    this.#results = this.#results.filter((r) => !r.whole);
    this.#says('Working the whole draw out again…');
    await this.#whole();
    holding($('check-says'), () => { $('check-all').hidden = true; });
  }

  /** place checks what one shard and the record show. */
  async #place(): Promise<void> {
    const text = await read(`${this.#base}/draw`);
    const said = announced(text); // and no other part of the answer is believed to be it
    const answer = JSON.parse(text) as wire.Draw;
    this.#receipt = null;
    this.#rank = 0;
    if (answer.state !== 'drawn') throw new Unread(answer.state); // of a cache, from before
    const d = this.#draw = { ...answer, said, announcement: JSON.parse(said) as wire.Announcement };
    const kept = this.#keep.receipt;
    const earlier = kept && this.#earlier(kept.place);
    if (earlier) this.#found('open', `The receipt that this browser has is of an earlier line of this event, which had a draw of its own: ${kept.place}`);
    if (kept && !earlier) await this.#kept(d, kept);
    else this.#found('open', 'Whether all this was announced before anybody could join: this browser has no receipt of a ticket for the draw.');
    this.#judge('The secret number is the one whose fingerprint was announced.', () => seedIsAnnounced(d));
    this.#external(d);
    this.#judge('The key of the draw is made of the two numbers and the list.', () => keyFollows(d));
    this.#found('open', `Whether the list was closed before the numbers were told. If you, or anybody you know, saved its fingerprint then, it is still this one: ${d.root}`);
    const mine = this.#receipt ?? { ticket: this.#mine.ticket };
    const shard = JSON.parse(await read(`${this.#base}/draw/shards/${shardOf(mine.ticket, d.tickets)}?key=${d.key}`)) as wire.Shard;
    if (!this.#receipt && !this.#shownDrawn && !shard.tickets.some(([ticket]) => ticket === mine.ticket)) {
      this.#found('open', 'Your ticket is not on the list, and this browser has no receipt for it: then you came after the list had closed, and your place is that of your arrival.');
      return;
    }
    this.#judge('Your ticket is on the list whose fingerprint was published.', () => { this.#rank = listed(d, shard, mine); });
    if (this.#rank) this.#rankIs(this.#rank);
  }

  /** shownDrawn says that the place that was shown is one of the draw: who comes later, or comes back, is behind them. */
  get #shownDrawn(): boolean {
    const { number: shown = 0 } = this.#mine;
    return shown > 0 && shown <= this.#draw.tickets;
  }

  /** earlier says that what was signed is of a room that the event had before. */
  #earlier(token: string): boolean {
    const [room, now] = [roomOf(token), roomOf(this.#keep.place?.place ?? '')];
    return room !== undefined && now !== undefined && room !== now;
  }

  /** kept checks what the receipt shows. */
  async #kept(d: Said, { place, before }: KeptReceipt): Promise<void> {
    $('check-token').textContent = place;
    $('check-receipt').hidden = false;
    if (before && this.#earlier(before)) this.#found('open', `An earlier line of this event had a draw of its own. The receipt of then: ${before}`);
    else if (before) this.#found('wrong', `When you joined first, the house had announced something else. The receipt of then: ${before}`);
    await this.#signed(place);
    this.#judge('What the house says it announced before anybody could join is what your receipt names.', () => {
      this.#receipt = receipt(place);
      announcedThen(d, this.#receipt);
    });
  }

  #rankIs(rank: number): void {
    const gives = `The part of the list with your ticket gives you the place ${number(rank)}`;
    const shown = this.#mine.number;
    if (!shown) {
      this.#found('right', `${gives}.`);
    } else if (!this.#shownDrawn) {
      this.#found('open', `${gives}, and now you have the place ${number(shown)}. It is that of your return, if you have left the line or been inside since. If you have done neither, something is wrong: keep your receipt.`);
    } else {
      this.#judge(`${gives}, which is the one you were shown.`, () => {
        if (rank !== shown) throw new Faulty(`${gives}, and you were shown ${number(shown)}.`);
      });
    }
  }

  /** external says of the number of somebody else what a browser can know. */
  #external(d: Said): void {
    const e = d.announcement.external;
    if (e.kind === 'none') {
      this.#judge('No number of somebody else was announced, and none was used.', () => external(d));
      this.#found('open', 'Whether the house chose its secret number with the list in view. It could, since no number of somebody else was used: for this draw you trust the house.');
    } else if (e.kind === 'committer') {
      this.#judge(`The number of ${e.name} is the one whose fingerprint was announced with it.`, () => external(d));
      this.#found('open', `Whether ${e.name} told the house nothing before the list closed.`);
    } else {
      const known = e.publicKey === QUICKNET.key;
      const out = new Date(outAt(e)).toLocaleString();
      let value: Uint8Array | null = null;
      this.#judge(known && `Round ${number(e.round)} of the beacon that was announced came out after the list had closed, ${out}.`, () => { value = external(d); });
      if (!value) return;
      const address = QUICKNET.rounds + e.round;
      const says = ` Round ${e.round}, signature ${d.told}, randomness ${hex(value)}.`;
      this.#found('open', 'Whether the beacon has signed that round: browsers cannot check its signatures. ',
        ...known ? ['Compare what follows with ', h('a', { href: address, rel: 'noreferrer', target: '_blank' }, address), ', or run seatcast verify-draw.'] : ['Run seatcast verify-draw.'], says);
      if (!known) {
        this.#found('open', `That nobody knew this number while the list was open. This page does not know the beacon, which may be the house's own: that round ${number(e.round)} came out on ${out} is the word of whoever has the key ${e.publicKey}.`);
      }
    }
  }

  /** signed checks the signature of the receipt, where the browser has the means. */
  async #signed(token: string): Promise<void> {
    if (!globalThis.crypto.subtle) {
      this.#found('open', 'The signature of your receipt: browsers check none on a page without TLS.');
      return;
    }
    const [head = '', body = '', signature = ''] = token.split('.');
    const { keys } = JSON.parse(await read('/v1/passes/keys')) as wire.Keys;
    const { alg, typ, kid } = JSON.parse(new TextDecoder().decode(unbase64(head))) as Record<string, string>;
    const key = keys.find((k) => k.kid === kid);
    const way = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
    const good = alg === 'ES256' && typ === 'seatcast-receipt+jwt' && key
      && await crypto.subtle.verify(way, await crypto.subtle.importKey('jwk', key, way, false, ['verify']), unbase64(signature), new TextEncoder().encode(`${head}.${body}`));
    this.#judge('Your receipt is signed by the house.', () => { if (!good) throw new Faulty('Your receipt is not signed with any key the house publishes today.'); });
  }

  #offerAll(): void {
    const all = $('check-all');
    all.textContent = `Recompute the whole draw: ${count(this.#draw.tickets, 'ticket')}, ${number(Math.ceil(this.#draw.tickets * LINE / 1e6))} MB`;
    all.hidden = false;
    this.#found('open', 'All other tickets and ranks: for that, recompute the whole draw.').whole = true;
  }

  /** whole has a worker work everything out again. */
  async #whole(): Promise<void> {
    const bar = $<HTMLProgressElement>('check-progress');
    const { tickets, list } = this.#draw;
    bar.value = 0;
    bar.hidden = false;
    const worker = new Worker(new URL('./drawworker.ts', import.meta.url), { type: 'module' });
    const end = await new Promise<End>((resolve) => {
      worker.onerror = () => resolve({ rank: 0, failed: null });
      worker.onmessage = ({ data }: MessageEvent<News>) => {
        if ('step' in data) bar.value = 70 * data.done / tickets * (data.step === 'scores' ? 1 : 3 / 7) + (data.step === 'tree' ? 70 : 0);
        else resolve(data);
      };
      const job: Job = { url: list, record: this.#draw, ticket: (this.#receipt ?? this.#mine).ticket };
      worker.postMessage(job);
    });
    worker.terminate();
    bar.hidden = true;
    if (end.failed === null) throw new Unread(list);
    this.#judge(`The whole list, ${count(tickets, 'ticket')}, is the one whose fingerprint was published, and every rank on it is the one its score gives.`,
      () => { if (end.failed) throw new Faulty(end.failed); });
    if (end.failed || !end.rank || !this.#rank) return;
    const gives = `The whole list gives you the place ${number(end.rank)}`;
    this.#judge(`${gives}, as that part of it does.`, () => {
      if (end.rank !== this.#rank) throw new Faulty(`${gives}, and that part of it ${number(this.#rank)}.`);
    });
  }

  /** judge notes what holds, unless there is nothing to say of it, or which fault there is. */
  #judge(right: string | false, does: () => void): void {
    try {
      does();
      if (right) this.#found('right', right);
    } catch (err) {
      if (!(err instanceof Faulty)) throw err;
      this.#found('wrong', err.message);
    }
  }

  #found(verdict: Verdict, ...says: Child[]): Result {
    const result: Result = { verdict, says };
    this.#results.push(result);
    this.#list();
    return result;
  }

  #list(): void {
    $('checks').replaceChildren(...this.#results.map(({ verdict, says }) => h('li', { class: verdict }, h('strong', {}, WORDS[verdict]), h('span', {}, ...says))));
  }

  #sum(): void {
    this.#list();
    const of = (verdict: Verdict) => this.#results.filter((r) => r.verdict === verdict).length;
    const open = of('open') ? ` ${count(of('open'), 'thing')} could not be checked here: see below.` : '';
    this.#says(of('wrong') ? `Something is wrong with this draw: ${count(of('wrong'), 'check')} failed. Keep your receipt and a copy of this page.`
      : `${count(of('right'), 'check')} passed, none failed.${open}`);
  }

  #stopped(err: unknown): void {
    this.#says('The check could not be finished: what was published of the draw could not be read. Try again in a moment.');
    if (!(err instanceof Unread)) throw err;
  }

  #says(text: string): void { $('check-says').textContent = text; }
}
