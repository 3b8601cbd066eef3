// The part of a line's page that checks the draw: what was checked, what was not,
// and what is wrong, in plain words.

import { $, h, holding, type Child } from './dom';
import { announced, announcedThen, external, Faulty, hex, keyFollows, listed, outAt, QUICKNET, receipt, seedIsAnnounced, shardOf, unbase64, whole, type Fault, type Receipt, type Said } from './draw';
import type { End, Job, News } from './drawworker';
import { t } from './lang';
import { roomOf, type Keep, type KeptReceipt } from './line';
import { inManner } from './locale';
import type * as wire from './wire';

const SMALL = 20000; // tickets: so many are worked out without asking
const LINE = 58; // bytes of one in the list

/** Unread is what was published and could not be read. */
class Unread extends Error {}

/** Gone is thrown where what is being checked is not what is offered any more. */
class Gone extends Error {}

async function read(path: string): Promise<string> {
  const res = await fetch(path).catch(() => null);
  if (!res?.ok) throw new Unread(path);
  return res.text();
}

type Verdict = keyof typeof t.draw.verdicts;

/** Holder is who has a ticket, and the place that was shown. */
interface Holder { ticket: string; number?: number }

interface Result { verdict: Verdict; says: Child[]; whole?: boolean } // whole: that all is to be checked

/** Check checks the draw of one line when it is told to. */
export class Check {
  #base: string; // where the line is
  #keep: Keep;
  #offered: Holder | null = null; // last
  #room: number | undefined;
  #mine!: Holder; // of who is being checked
  #going: object | null = null; // what is under way
  #stop = () => {}; // ends the work of that which is done beside the page
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

  /**
   * offer shows that a draw was held which somebody can check; null: none, or nobody. What was
   * found of another room's draw, or of another place, is forgotten, and so is what is under way.
   */
  offer(room: number | undefined, mine: Holder | null): void {
    const had = this.#offered;
    const same = mine && mine.ticket === had?.ticket;
    const moved = mine && had && (!same || mine.number && had.number && mine.number !== had.number);
    if (room !== this.#room || moved) this.#forget();
    this.#room = room;
    if (mine) this.#offered = { ...mine, number: mine.number ?? (same ? had.number : undefined) }; // who is inside has the one they were called by
    holding($('news'), () => { $('check').hidden = !mine; });
  }

  #forget(): void {
    this.#stop();
    this.#results = [];
    this.#list();
    this.#says('');
    holding($('check-mine'), () => { for (const id of ['check-all', 'check-receipt', 'check-progress']) $(id).hidden = true; });
    this.#rest();
  }

  /** once checks one thing after the other. */
  async #once(check: () => Promise<void>): Promise<void> {
    if (this.#going) return;
    const going = this.#going = {};
    this.#working(true);
    try {
      await check();
      this.#sum();
    } catch (err) {
      if (!(err instanceof Gone)) this.#stopped(err);
    } finally {
      if (going === this.#going) this.#rest();
    }
  }

  #rest(): void {
    this.#going = null;
    this.#working(false);
  }

  /** still waits for something, unless what is under way is forgotten meanwhile. */
  async #still<T>(waited: Promise<T>): Promise<T> {
    const going = this.#going;
    const [end] = await Promise.allSettled([waited]);
    if (going !== this.#going) throw new Gone();
    if (end.status === 'rejected') throw end.reason;
    return end.value;
  }

  /** working shows that its buttons do nothing now; they keep the focus. */
  #working(now: boolean): void {
    for (const id of ['check-mine', 'check-all']) $(id).setAttribute('aria-disabled', String(now));
  }

  async #run(): Promise<void> {
    this.#mine = this.#offered!;
    this.#results = [];
    $('check-all').hidden = true;
    this.#says(t.draw.checking);
    await this.#place();
    if (this.#draw.tickets <= SMALL) await this.#whole();
    else this.#offerAll();
  }

  async #all(): Promise<void> {
    this.#results = this.#results.filter((r) => !r.whole);
    this.#says(t.draw.recomputing);
    await this.#whole();
    holding($('check-says'), () => { $('check-all').hidden = true; });
  }

  /** place checks what one shard and the record show. */
  async #place(): Promise<void> {
    const text = await this.#still(read(`${this.#base}/draw`));
    const said = announced(text); // and no other part of the answer is believed to be it
    const answer = JSON.parse(text) as wire.Draw;
    this.#receipt = null;
    this.#rank = 0;
    if (answer.state !== 'drawn') throw new Unread(answer.state); // of a cache, from before
    const d = this.#draw = { ...whole(answer), said, announcement: JSON.parse(said) as wire.Announcement };
    const kept = this.#keep.receipt;
    const earlier = kept && this.#earlier(kept.place);
    if (earlier) this.#found('open', t.draw.earlier(kept.place));
    if (kept && !earlier) await this.#kept(d, kept);
    else this.#found('open', t.draw.noReceipt);
    this.#judge(t.draw.seed, () => seedIsAnnounced(d));
    this.#external(d);
    this.#judge(t.draw.key, () => keyFollows(d));
    this.#found('open', t.draw.root(d.root));
    const mine = this.#receipt ?? { ticket: this.#mine.ticket };
    const shard = JSON.parse(await this.#still(read(`${this.#base}/draw/shards/${shardOf(mine.ticket, d.tickets)}?key=${d.key}`))) as wire.Shard;
    if (!this.#receipt && !this.#shownDrawn && !shard.tickets.some(([ticket]) => ticket === mine.ticket)) {
      this.#found('open', t.draw.unlisted);
      return;
    }
    this.#judge(t.draw.listed, () => { this.#rank = listed(d, shard, mine); });
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
    if (before && this.#earlier(before)) this.#found('open', t.draw.earlierThen(before));
    else if (before) this.#found('wrong', t.draw.otherThen(before));
    await this.#signed(place);
    this.#judge(t.draw.announced, () => {
      this.#receipt = receipt(place);
      announcedThen(d, this.#receipt);
    });
  }

  #rankIs(rank: number): void {
    const shown = this.#mine.number;
    if (!shown) this.#found('right', t.draw.gives(rank));
    else if (!this.#shownDrawn) this.#found('open', t.draw.givesOther(rank, shown));
    else if (rank === shown) this.#found('right', t.draw.givesShown(rank));
    else this.#found('wrong', t.draw.givesNotShown(rank, shown));
  }

  /** external says of the number of somebody else what a browser can know. */
  #external(d: Said): void {
    const e = d.announcement.external;
    if (e.kind === 'none') {
      this.#judge(t.draw.noExternal, () => external(d));
      this.#found('open', t.draw.trusted);
    } else if (e.kind === 'committer') {
      this.#judge(t.draw.committed(e.name), () => external(d));
      this.#found('open', t.draw.committerSilent(e.name));
    } else {
      const known = e.publicKey === QUICKNET.key;
      const out = new Date(outAt(e)).toLocaleString(inManner());
      let value: Uint8Array | null = null;
      this.#judge(known && t.draw.round(e.round, out), () => { value = external(d); });
      if (!value) return;
      const address = QUICKNET.rounds + e.round;
      const says = t.draw.told(String(e.round), d.told ?? '', hex(value));
      this.#found('open', t.draw.beacon, ' ', ...known ? [t.draw.compare, ' ', h('a', { href: address, rel: 'noreferrer', target: '_blank' }, address), '. '] : [t.draw.verify, ' '], says);
      if (!known) {
        this.#found('open', t.draw.unknownBeacon(e.round, out, e.publicKey));
      }
    }
  }

  /** signed checks the signature of the receipt, where the browser has the means. */
  async #signed(token: string): Promise<void> {
    if (!globalThis.crypto.subtle) {
      this.#found('open', t.draw.unsigned);
      return;
    }
    const [head = '', body = '', signature = ''] = token.split('.');
    const { keys } = JSON.parse(await this.#still(read('/v1/passes/keys'))) as wire.Keys;
    const { alg, typ, kid } = JSON.parse(new TextDecoder().decode(unbase64(head))) as Record<string, string>;
    const key = keys.find((k) => k.kid === kid);
    const way = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
    const verify = async (key: JsonWebKey) => crypto.subtle.verify(way, await crypto.subtle.importKey('jwk', key, way, false, ['verify']), unbase64(signature), new TextEncoder().encode(`${head}.${body}`));
    const good = alg === 'ES256' && typ === 'seatcast-receipt+jwt' && key && await this.#still(verify(key));
    this.#judge(t.draw.signed, () => { if (!good) throw new Faulty('unsigned'); });
  }

  #offerAll(): void {
    const all = $('check-all');
    all.textContent = t.draw.all(this.#draw.tickets, Math.ceil(this.#draw.tickets * LINE / 1e6));
    all.hidden = false;
    this.#found('open', t.draw.others).whole = true;
  }

  /** whole has a worker work everything out again. */
  async #whole(): Promise<void> {
    const bar = $<HTMLProgressElement>('check-progress');
    const { tickets, list } = this.#draw;
    bar.value = 0;
    bar.hidden = false;
    const worker = new Worker(new URL('./drawworker.ts', import.meta.url), { type: 'module' });
    const end = await this.#still(new Promise<End>((resolve) => {
      this.#stop = () => {
        worker.terminate();
        resolve({ unread: true });
      };
      worker.onerror = () => resolve({ unread: true });
      worker.onmessage = ({ data }: MessageEvent<News>) => {
        if ('step' in data) bar.value = 70 * data.done / Math.max(1, tickets) * (data.step === 'scores' ? 1 : 3 / 7) + (data.step === 'tree' ? 70 : 0);
        else resolve(data);
      };
      const job: Job = { url: list, record: this.#draw, ticket: (this.#receipt ?? this.#mine).ticket };
      worker.postMessage(job);
    }));
    this.#stop();
    bar.hidden = true;
    if ('unread' in end) throw new Unread(list);
    if (end.wrong) {
      this.#wrong(end.wrong);
      return;
    }
    this.#found('right', tickets ? t.draw.whole(tickets) : t.draw.nobody);
    if (!end.rank || !this.#rank) return;
    if (end.rank === this.#rank) this.#found('right', t.draw.wholeGives(end.rank));
    else this.#found('wrong', t.draw.wholeGivesOther(end.rank, this.#rank));
  }

  /** judge notes what holds, unless there is nothing to say of it, or which fault there is. */
  #judge(right: string | false, does: () => void): void {
    try {
      does();
      if (right) this.#found('right', right);
    } catch (err) {
      if (!(err instanceof Faulty)) throw err;
      this.#wrong(err);
    }
  }

  /** wrong notes a fault. */
  #wrong({ fault, about }: Fault): void {
    this.#found('wrong', `${t.draw.faults[fault]} ${about}`.trim());
  }

  #found(verdict: Verdict, ...says: Child[]): Result {
    const result: Result = { verdict, says };
    this.#results.push(result);
    this.#list();
    return result;
  }

  #list(): void {
    $('checks').replaceChildren(...this.#results.map(({ verdict, says }) => h('li', { class: verdict }, h('strong', {}, t.draw.verdicts[verdict]), h('span', {}, ...says))));
  }

  #sum(): void {
    this.#list();
    const of = (verdict: Verdict) => this.#results.filter((r) => r.verdict === verdict).length;
    this.#says(of('wrong') ? t.draw.failed(of('wrong')) : [t.draw.passed(of('right')), of('open') > 0 && t.draw.unchecked(of('open'))].filter(Boolean).join(' '));
  }

  #stopped(err: unknown): void {
    this.#says(t.draw.unread);
    if (!(err instanceof Unread)) throw err;
  }

  #says(text: string): void { $('check-says').textContent = text; }
}
