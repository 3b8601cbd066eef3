import { sha256, hmac } from './sha256.js';

class Faulty extends Error {
  fault;
  about;
  constructor(fault, about = "") {
    super(`${fault} ${about}`);
    this.fault = fault;
    this.about = String(about);
  }
}
function fail(...fault) {
  throw new Faulty(...fault);
}
function must(holds, ...fault) {
  if (!holds) fail(...fault);
}
function unhex(text) {
  must(typeof text === "string" && /^([0-9a-f]{2})*$/.test(text), "hex", String(text).slice(0, 80));
  return Uint8Array.from(text.match(/../g) ?? [], (b) => parseInt(b, 16));
}
const hex = (bytes) => Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
function unbase64(text) {
  try {
    return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
  } catch {
    return fail("base64", String(text).slice(0, 80));
  }
}
const join = (...parts) => {
  const out = new Uint8Array(parts.reduce((sum, p) => sum + p.length, 0));
  parts.reduce((at, p) => {
    out.set(p, at);
    return at + p.length;
  }, 0);
  return out;
};
function announced(text) {
  const from = text.indexOf('"announcement":') + '"announcement":'.length;
  let depth = 0;
  for (const m of text.slice(from).matchAll(/"(?:[^"\\]|\\.)*"|[{}]/g)) {
    if (m[0] === "{") depth++;
    if (m[0] === "}" && --depth === 0) return text.slice(from, from + m.index + 1);
  }
  return fail("announcement");
}
function receipt(token) {
  try {
    return JSON.parse(new TextDecoder().decode(unbase64(token.split(".")[1] ?? "")));
  } catch {
    return fail("receipt");
  }
}
const shardBits = (tickets) => tickets <= 256 ? 0 : 32 - Math.clz32(Math.floor((tickets - 1) / 256));
function shardOf(ticket, tickets) {
  const first = new DataView(unbase64(ticket).buffer).getUint32(0);
  return Math.floor(first / 2 ** (32 - shardBits(tickets)));
}
const leaf = (data) => sha256(join([0], data));
const node = (left, right) => sha256(join([1], left, right));
function treeOf(leafAt, from, n) {
  if (n === 0) return sha256(new Uint8Array(0));
  if (n === 1) return leafAt(from);
  const half = 2 ** (31 - Math.clz32(n - 1));
  return node(treeOf(leafAt, from, half), treeOf(leafAt, from + half, n - half));
}
const whole = (d) => ({ ...d, tickets: d.tickets ?? 0 });
function announcedThen(d, mine) {
  must(hex(sha256(new TextEncoder().encode(d.said))) === mine.announcement, "otherAnnouncement");
  must(d.announcement.event === mine.event, "otherEvent");
}
function seedIsAnnounced(d) {
  must(hex(sha256(unhex(d.seed))) === d.announcement.commitment, "seed");
}
const QUICKNET = {
  key: "83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c8c4b450b6a0a6c3ac6a5776a2d1064510d1fec758c921cc22b0e17e63aaf4bcb5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a",
  genesis: 1692803367,
  period: 3,
  rounds: "https://api.drand.sh/52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971/public/"
};
function external({ announcement: { external: e, closes }, told = "" }) {
  const bytes = unhex(told);
  switch (e.kind) {
    case "none":
      must(bytes.length === 0, "unannounced");
      return bytes;
    case "committer":
      must(bytes.length === 32 && hex(sha256(bytes)) === e.commitment, "committer");
      return bytes;
    case "drand":
      must(e.publicKey !== QUICKNET.key || e.genesis === QUICKNET.genesis && e.period === QUICKNET.period, "rounds");
      must(e.round > 0 && e.period > 0 && outAt(e) > Date.parse(closes), "early");
      must(bytes.length > 0, "beacon");
      return sha256(bytes);
  }
  return fail("source");
}
const outAt = (e) => (e.genesis + (e.round - 1) * e.period) * 1e3;
function keyFollows(d) {
  must(hex(sha256(join(unhex(d.seed), external(d), unhex(d.root)))) === d.key, "key");
}
function listed(d, shard, mine) {
  const want = shardOf(mine.ticket, d.tickets);
  const leaves = shard.tickets.map(([ticket, nonce]) => leaf(join(unbase64(ticket), unbase64(nonce))));
  let at = leaf(treeOf((n) => leaves[n], 0, leaves.length));
  shard.path.forEach((beside, n) => {
    at = want >> n & 1 ? node(unhex(beside), at) : node(at, unhex(beside));
  });
  must(shard.path.length === shardBits(d.tickets) && hex(at) === d.root, "part");
  const found = shard.tickets.find(([ticket]) => ticket === mine.ticket);
  must(found, mine.nonce ? "leftOut" : "unlisted");
  must(!mine.nonce || found[1] === mine.nonce, "nonce");
  const rank = found[2];
  must(Number.isInteger(rank) && rank >= 1 && rank <= d.tickets, "unranked");
  return rank;
}
class Tally {
  #score;
  #record;
  #mine;
  // the ticket whose rank is wanted
  #rank = 0;
  #tickets;
  #scores;
  #ranks;
  #n = 0;
  constructor(record, mine) {
    this.#record = record;
    this.#mine = mine;
    this.#score = hmac(unhex(record.key));
    this.#tickets = new Uint8Array(32 * record.tickets);
    this.#scores = new Float64Array(record.tickets);
    this.#ranks = new Uint32Array(record.tickets);
  }
  /** head takes in the first line, which says again what the house has said. */
  head(line) {
    const r = JSON.parse(line);
    const d = this.#record;
    for (const name of ["seed", "root", "key", "tickets"]) must(r[name] === d[name], "disagree", name);
    must((r.told ?? "") === (d.told ?? "") && r.announcement.commitment === d.announcement.commitment, "numbers");
  }
  /** add takes in the line of one ticket: [ticket, nonce, rank]. */
  add(line) {
    const [ticket, nonce, rank] = JSON.parse(line);
    const n = this.#n++;
    must(n < this.#record.tickets, "more");
    const id = unbase64(ticket);
    const beside = unbase64(nonce);
    must(id.length === 16 && beside.length === 16, "line", n + 1);
    this.#tickets.set(id, 32 * n);
    this.#tickets.set(beside, 32 * n + 16);
    must(n === 0 || this.#before(n - 1, n), "order");
    const score = new DataView(this.#score(id).buffer);
    this.#scores[n] = score.getUint32(0) * 2 ** 20 + (score.getUint32(4) >>> 12);
    this.#ranks[n] = rank;
    if (ticket === this.#mine) this.#rank = rank;
  }
  get added() {
    return this.#n;
  }
  #before(a, b) {
    for (let k = 0; k < 16; k++) {
      const d = this.#tickets[32 * a + k] - this.#tickets[32 * b + k];
      if (d !== 0) return d < 0;
    }
    return false;
  }
  /** root checks that the tickets are those of the published fingerprint, and tells now and then how many are in. */
  root(progress) {
    const { tickets, root } = this.#record;
    must(this.#n === tickets, "fewer");
    const bits = shardBits(tickets);
    const shardAt = (n) => new DataView(this.#tickets.buffer).getUint32(32 * n) / 2 ** (32 - bits) | 0;
    let at = 0;
    const shards = [];
    for (let s = 0; s < 2 ** bits; s++) {
      const from = at;
      while (at < tickets && (bits === 0 || shardAt(at) === s)) at++;
      shards.push(leaf(treeOf((n) => leaf(this.#tickets.subarray(32 * n, 32 * n + 32)), from, at - from)));
      if (s % 64 === 0) progress(at);
    }
    must(hex(treeOf((n) => shards[n], 0, shards.length)) === root, "list");
  }
  /**
   * ranks checks every rank against its score, and returns that of the one ticket; 0
   * when it is not on the list.
   */
  ranks() {
    const order = new Uint32Array(this.#n).fill(this.#n);
    this.#ranks.forEach((rank, n) => {
      must(rank >= 1 && rank <= this.#n && order[rank - 1] === this.#n, "rank", rank);
      order[rank - 1] = n;
    });
    for (let k = 1; k < order.length; k++) {
      const d = this.#scores[order[k - 1]] - this.#scores[order[k]];
      must(d < 0 || d === 0 && order[k - 1] < order[k], "scores", k);
    }
    return this.#rank;
  }
}

export { Faulty, QUICKNET, Tally, announced, announcedThen, external, hex, keyFollows, listed, outAt, receipt, seedIsAnnounced, shardOf, unbase64, unhex, whole };
