// The part of a line's page that checks the draw: what was checked, what was not,
// and what is wrong, in plain words.

import { $, h, type Child } from './dom';
import { announced, announcedThen, external, Faulty, hex, keyFollows, listed, outAt, QUICKNET, receipt, seedIsAnnounced, shardOf, unbase64, type Receipt, type Said } from './draw';
import type { End, Job, News } from './drawworker';
import type { Keep, KeptReceipt, Mine } from './line';
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

interface Result { verdict: Verdict; says: Child[]; whole?: boolean } // whole: that all is to be checked

/** Check checks the draw of one line when it is told to. */
export class Check {
  #base: string; // where the line is
  #keep: Keep;
  #mine!: Mine; // since it was offered
  #draw!: Said; // since it was read
  #receipt: Receipt | null = null;
  #results: Result[] = [];

  constructor(base: string, keep: Keep) {
    this.#base = base;
    this.#keep = keep;
    $('check-mine').onclick = () => this.#run();
    $('check-all').onclick = () => this.#all();
  }

  /** offer shows that a draw was held in which somebody took part; null: none, or nobody. */
  offer(mine: Mine | null): void {
    if (mine) this.#mine = mine;
    $('check').hidden = !mine;
  }

  async #run(): Promise<void> {
    const button = $<HTMLButtonElement>('check-mine');
    button.disabled = true;
    this.#results = [];
    $('check-all').hidden = true;
    this.#says('Checking…');
    try {
      await this.#place();
      if (this.#draw.tickets <= SMALL) await this.#whole();
      else this.#offerAll();
      this.#sum();
    } catch (err) {
      this.#stopped(err);
    } finally {
      button.disabled = false;
    }
  }

  async #all(): Promise<void> {
    $('check-all').hidden = true;
    this.#results = this.#results.filter((r) => !r.whole);
    this.#says('Working the whole draw out again…');
    try {
      await this.#whole();
      this.#sum();
    } catch (err) {
      this.#stopped(err);
    }
  }

  /** place checks what one shard and the record show. */
  async #place(): Promise<void> {
    const text = await read(`${this.#base}/draw`);
    const said = announced(text); // and no other part of the answer is believed to be it
    const answer = JSON.parse(text) as wire.Draw;
    this.#receipt = null;
    if (answer.state !== 'drawn') throw new Unread(answer.state); // of a cache, from before
    const d = this.#draw = { ...answer, said, announcement: JSON.parse(said) as wire.Announcement };
    const kept = this.#keep.receipt;
    if (kept) await this.#kept(d, kept);
    else this.#found('open', 'Whether all this was announced before anybody could join: this browser has no receipt of a ticket for the draw.');
    this.#judge('The secret number is the one whose fingerprint was announced.', () => seedIsAnnounced(d));
    this.#external(d);
    this.#judge('The key of the draw is made of the two numbers and the list.', () => keyFollows(d));
    this.#found('open', `Whether the list was closed before the numbers were told. If you, or anybody you know, saved its fingerprint then, it is still this one: ${d.root}`);
    const mine = this.#receipt ?? { ticket: this.#mine.ticket };
    if (!kept && (this.#mine.number ?? 0) > d.tickets) {
      this.#found('open', 'Your ticket: you came after the list had closed, and your place is that of your arrival.');
      return;
    }
    const shard = JSON.parse(await read(`${this.#base}/draw/shards/${shardOf(mine.ticket, d.tickets)}?key=${d.key}`)) as wire.Shard;
    let rank = 0;
    this.#judge('Your ticket is on the list whose fingerprint was published.', () => { rank = listed(d, shard, mine); });
    if (rank) this.#rankIs(rank, 'The part of the list with your ticket');
  }

  /** kept checks what the receipt shows. */
  async #kept(d: Said, { place, before }: KeptReceipt): Promise<void> {
    $('check-token').textContent = place;
    $('check-receipt').hidden = false;
    if (before) this.#found('wrong', `When you joined first, the house had announced something else. The receipt of then: ${before}`);
    await this.#signed(place);
    this.#judge('What the house says it announced before anybody could join is what your receipt names.', () => {
      this.#receipt = receipt(place);
      announcedThen(d, this.#receipt);
    });
  }

  #rankIs(rank: number, where: string): void {
    this.#judge(`${where} gives you the place ${number(rank)}, which is the one you were shown.`, () => {
      if (rank !== this.#mine.number) throw new Faulty(`${where} gives you the place ${number(rank)}, and you were shown ${number(this.#mine.number ?? 0)}.`);
    });
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
      let value: Uint8Array | null = null;
      this.#judge(`Round ${number(e.round)} of the beacon that was announced came out after the list had closed, ${new Date(outAt(e)).toLocaleString()}.`,
        () => { value = external(d); });
      if (!value) return;
      const address = QUICKNET.rounds + e.round;
      this.#found('open', 'Whether the beacon has signed that round: browsers cannot check its signatures. ',
        ...e.publicKey === QUICKNET.key ? ['Compare what follows with ', h('a', { href: address, rel: 'noreferrer', target: '_blank' }, address), ', or run seatcast verify-draw.']
          : [`Nor is it a beacon that this page knows: ask whose key ${e.publicKey} is.`],
        ` Round ${e.round}, signature ${d.told}, randomness ${hex(value)}.`);
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
      const job: Job = { url: list, record: this.#draw, ticket: this.#mine.ticket };
      worker.postMessage(job);
    });
    worker.terminate();
    bar.hidden = true;
    if (end.failed === null) throw new Unread(list);
    this.#judge(`The whole list, ${count(tickets, 'ticket')}, is the one whose fingerprint was published, and every rank on it is the one its score gives.`,
      () => { if (end.failed) throw new Faulty(end.failed); });
    if (!end.failed && end.rank) this.#rankIs(end.rank, 'The whole list');
  }

  /** judge notes what holds, or which fault there is. */
  #judge(right: string, does: () => void): void {
    try {
      does();
      this.#found('right', right);
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
