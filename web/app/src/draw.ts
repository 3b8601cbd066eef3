// Checks a draw from what was published of it, as seatcast verify-draw does: the
// server that says it is asked for nothing else. See docs/draw.md.

import type { Catalogue } from './lang';
import { hmac, sha256 } from './sha256';
import type * as wire from './wire';

/** Fault is something that a house cannot have done honestly, by the name of its words, and what it is about. */
export interface Fault { fault: keyof Catalogue['draw']['faults']; about: string }

/** Faulty says that there is one. */
export class Faulty extends Error implements Fault {
  readonly fault: Fault['fault'];
  readonly about: string;

  constructor(fault: Fault['fault'], about: string | number = '') {
    super(`${fault} ${about}`);
    this.fault = fault;
    this.about = String(about);
  }
}

function fail(...fault: ConstructorParameters<typeof Faulty>): never {
  throw new Faulty(...fault);
}

function must(holds: unknown, ...fault: ConstructorParameters<typeof Faulty>): asserts holds {
  if (!holds) fail(...fault);
}

/** unhex reads hex; what is none is a fault. */
export function unhex(text: unknown): Uint8Array {
  must(typeof text === 'string' && /^([0-9a-f]{2})*$/.test(text), 'hex', String(text).slice(0, 80));
  return Uint8Array.from(text.match(/../g) ?? [], (b) => parseInt(b, 16));
}

export const hex = (bytes: Uint8Array): string => Array.from(bytes, (b) => b.toString(16).padStart(2, '0')).join('');

/** unbase64 reads base64url; what is none is a fault. */
export function unbase64(text: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (c) => c.charCodeAt(0));
  } catch {
    return fail('base64', String(text).slice(0, 80));
  }
}

const join = (...parts: ArrayLike<number>[]) => {
  const out = new Uint8Array(parts.reduce((sum, p) => sum + p.length, 0));
  parts.reduce((at, p) => { out.set(p, at); return at + p.length; }, 0);
  return out;
};

/**
 * announced cuts the announcement out of an answer's JSON, byte for byte as it was
 * published: its SHA-256 is what receipts name.
 */
export function announced(text: string): string {
  const from = text.indexOf('"announcement":') + '"announcement":'.length;
  let depth = 0;
  for (const m of text.slice(from).matchAll(/"(?:[^"\\]|\\.)*"|[{}]/g)) {
    if (m[0] === '{') depth++;
    if (m[0] === '}' && --depth === 0) return text.slice(from, from + m.index + 1);
  }
  return fail('announcement');
}

/** Receipt is what a place says that a browser keeps. */
export interface Receipt { event: string; ticket: string; nonce: string; number?: number; announcement?: string }

/** receipt reads the place that a browser keeps: a JSON Web Token of the house. */
export function receipt(token: string): Receipt {
  try { return JSON.parse(new TextDecoder().decode(unbase64(token.split('.')[1] ?? ''))) as Receipt; } catch { return fail('receipt'); }
}

/** shardBits is by how many of their first bits so many tickets are told apart. */
const shardBits = (tickets: number) => (tickets <= 256 ? 0 : 32 - Math.clz32(Math.floor((tickets - 1) / 256)));

/** shardOf is the shard of a draw in which a ticket is, among so many tickets. */
export function shardOf(ticket: string, tickets: number): number {
  const first = new DataView(unbase64(ticket).buffer).getUint32(0);
  return Math.floor(first / 2 ** (32 - shardBits(tickets)));
}

// The tree of RFC 6962, 2.1.
const leaf = (data: Uint8Array) => sha256(join([0], data));
const node = (left: Uint8Array, right: Uint8Array) => sha256(join([1], left, right));

/** treeOf is the hash of n leaves, which leafAt hashes. */
function treeOf(leafAt: (n: number) => Uint8Array, from: number, n: number): Uint8Array {
  if (n === 0) return sha256(new Uint8Array(0));
  if (n === 1) return leafAt(from);
  const half = 2 ** (31 - Math.clz32(n - 1));
  return node(treeOf(leafAt, from, half), treeOf(leafAt, from + half, n - half));
}

/** whole is a draw as it was published, with how many tickets are on its list. */
export const whole = (d: wire.Drawn): wire.Drawn => ({ ...d, tickets: d.tickets ?? 0 });

/** Said is a draw that was held, and its announcement byte for byte. */
export type Said = wire.Drawn & { said: string };

/** announcedThen checks that what the house says it announced is what a receipt names. */
export function announcedThen(d: Said, mine: Receipt): void {
  must(hex(sha256(new TextEncoder().encode(d.said))) === mine.announcement, 'otherAnnouncement');
  must(d.announcement.event === mine.event, 'otherEvent');
}

/** seedIsAnnounced checks that the seed is the one whose fingerprint was announced. */
export function seedIsAnnounced(d: wire.Drawn): void {
  must(hex(sha256(unhex(d.seed))) === d.announcement.commitment, 'seed');
}

/** QUICKNET is the beacon of the League of Entropy: who signs it, when, and where it is read. */
export const QUICKNET = {
  key: '83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c8c4b450b6a0a6c3ac6a5776a2d1064510d1fec758c921cc22b0e17e63aaf4bcb5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a',
  genesis: 1692803367,
  period: 3,
  rounds: 'https://api.drand.sh/52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971/public/',
};

/**
 * external checks the number of somebody else against what was announced, as far as a
 * browser can, and returns it.
 */
export function external({ announcement: { external: e, closes }, told = '' }: Pick<wire.Drawn, 'announcement' | 'told'>): Uint8Array {
  const bytes = unhex(told);
  switch (e.kind) {
    case 'none':
      must(bytes.length === 0, 'unannounced');
      return bytes;
    case 'committer':
      must(bytes.length === 32 && hex(sha256(bytes)) === e.commitment, 'committer');
      return bytes;
    case 'drand':
      must(e.publicKey !== QUICKNET.key || e.genesis === QUICKNET.genesis && e.period === QUICKNET.period, 'rounds');
      must(e.round > 0 && e.period > 0 && outAt(e) > Date.parse(closes), 'early');
      must(bytes.length > 0, 'beacon');
      return sha256(bytes);
  }
  return fail('source');
}

/** outAt is when a round of a beacon comes out, in ms. */
export const outAt = (e: { genesis: number; period: number; round: number }): number => (e.genesis + (e.round - 1) * e.period) * 1000;

/** keyFollows checks that the key is made of seed, external number and list. */
export function keyFollows(d: wire.Drawn): void {
  must(hex(sha256(join(unhex(d.seed), external(d), unhex(d.root)))) === d.key, 'key');
}

/**
 * listed checks that a receipt's ticket, or that of who has none, is on the list whose
 * fingerprint was published with a rank, and returns that.
 */
export function listed(d: wire.Drawn, shard: wire.Shard, mine: { ticket: string; nonce?: string }): number {
  const want = shardOf(mine.ticket, d.tickets);
  const leaves = shard.tickets.map(([ticket, nonce]) => leaf(join(unbase64(ticket), unbase64(nonce))));
  let at = leaf(treeOf((n) => leaves[n], 0, leaves.length));
  shard.path.forEach((beside, n) => { at = want >> n & 1 ? node(unhex(beside), at) : node(at, unhex(beside)); });
  must(shard.path.length === shardBits(d.tickets) && hex(at) === d.root, 'part');
  const found = shard.tickets.find(([ticket]) => ticket === mine.ticket);
  must(found, mine.nonce ? 'leftOut' : 'unlisted');
  must(!mine.nonce || found[1] === mine.nonce, 'nonce');
  const rank = found[2];
  must(Number.isInteger(rank) && rank >= 1 && rank <= d.tickets, 'unranked');
  return rank;
}

/** Tally takes in the whole list, line by line, and works all ranks out. */
export class Tally {
  #score: (message: Uint8Array) => Uint8Array;
  #record: wire.Drawn;
  #mine: string; // the ticket whose rank is wanted
  #rank = 0;
  #tickets: Uint8Array;
  #scores: Float64Array;
  #ranks: Uint32Array;
  #n = 0;

  constructor(record: wire.Drawn, mine: string) {
    this.#record = record;
    this.#mine = mine;
    this.#score = hmac(unhex(record.key));
    this.#tickets = new Uint8Array(32 * record.tickets);
    this.#scores = new Float64Array(record.tickets);
    this.#ranks = new Uint32Array(record.tickets);
  }

  /** head takes in the first line, which says again what the house has said. */
  head(line: string): void {
    const r = JSON.parse(line) as wire.Head;
    const d = this.#record;
    for (const name of ['seed', 'root', 'key', 'tickets'] as const) must(r[name] === d[name], 'disagree', name);
    must((r.told ?? '') === (d.told ?? '') && r.announcement.commitment === d.announcement.commitment, 'numbers');
  }

  /** add takes in the line of one ticket: [ticket, nonce, rank]. */
  add(line: string): void {
    const [ticket, nonce, rank] = JSON.parse(line) as wire.Ranked;
    const n = this.#n++;
    must(n < this.#record.tickets, 'more');
    const id = unbase64(ticket);
    const beside = unbase64(nonce);
    must(id.length === 16 && beside.length === 16, 'line', n + 1);
    this.#tickets.set(id, 32 * n);
    this.#tickets.set(beside, 32 * n + 16);
    must(n === 0 || this.#before(n - 1, n), 'order');
    const score = new DataView(this.#score(id).buffer);
    this.#scores[n] = score.getUint32(0) * 2 ** 20 + (score.getUint32(4) >>> 12);
    this.#ranks[n] = rank;
    if (ticket === this.#mine) this.#rank = rank;
  }

  get added(): number { return this.#n; }

  #before(a: number, b: number): boolean {
    for (let k = 0; k < 16; k++) {
      const d = this.#tickets[32 * a + k] - this.#tickets[32 * b + k];
      if (d !== 0) return d < 0;
    }
    return false;
  }

  /** root checks that the tickets are those of the published fingerprint, and tells now and then how many are in. */
  root(progress: (done: number) => void): void {
    const { tickets, root } = this.#record;
    must(this.#n === tickets, 'fewer');
    const bits = shardBits(tickets);
    const shardAt = (n: number) => new DataView(this.#tickets.buffer).getUint32(32 * n) / 2 ** (32 - bits) | 0;
    let at = 0;
    const shards: Uint8Array[] = [];
    for (let s = 0; s < 2 ** bits; s++) {
      const from = at;
      while (at < tickets && (bits === 0 || shardAt(at) === s)) at++;
      shards.push(leaf(treeOf((n) => leaf(this.#tickets.subarray(32 * n, 32 * n + 32)), from, at - from)));
      if (s % 64 === 0) progress(at);
    }
    must(hex(treeOf((n) => shards[n], 0, shards.length)) === root, 'list');
  }

  /**
   * ranks checks every rank against its score, and returns that of the one ticket; 0
   * when it is not on the list.
   */
  ranks(): number {
    const order = new Uint32Array(this.#n).fill(this.#n);
    this.#ranks.forEach((rank, n) => {
      must(rank >= 1 && rank <= this.#n && order[rank - 1] === this.#n, 'rank', rank);
      order[rank - 1] = n;
    });
    for (let k = 1; k < order.length; k++) {
      const d = this.#scores[order[k - 1]] - this.#scores[order[k]];
      must(d < 0 || d === 0 && order[k - 1] < order[k], 'scores', k);
    }
    return this.#rank;
  }
}
