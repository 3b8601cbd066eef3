const K = new Uint32Array(64);
const INIT = new Uint32Array(8);
(function roots() {
  const fraction = (x) => Math.floor((x - Math.floor(x)) * 2 ** 32);
  for (let n = 2, found = 0; found < 64; n++) {
    let prime = true;
    for (let d = 2; d * d <= n; d++) prime &&= n % d !== 0;
    if (!prime) continue;
    if (found < 8) INIT[found] = fraction(Math.sqrt(n));
    K[found++] = fraction(Math.cbrt(n));
  }
})();
const W = new Int32Array(64);
function compress(state, b, at) {
  for (let t = 0; t < 16; t++, at += 4) W[t] = b[at] << 24 | b[at + 1] << 16 | b[at + 2] << 8 | b[at + 3];
  for (let t = 16; t < 64; t++) {
    const x = W[t - 15];
    const y = W[t - 2];
    W[t] = W[t - 16] + W[t - 7] + ((x >>> 7 | x << 25) ^ (x >>> 18 | x << 14) ^ x >>> 3) + ((y >>> 17 | y << 15) ^ (y >>> 19 | y << 13) ^ y >>> 10) | 0;
  }
  let [a, bb, c, d, e, f, g, h] = state;
  for (let t = 0; t < 64; t++) {
    const one = h + ((e >>> 6 | e << 26) ^ (e >>> 11 | e << 21) ^ (e >>> 25 | e << 7)) + (e & f ^ ~e & g) + K[t] + W[t] | 0;
    const two = ((a >>> 2 | a << 30) ^ (a >>> 13 | a << 19) ^ (a >>> 22 | a << 10)) + (a & bb ^ a & c ^ bb & c) | 0;
    h = g;
    g = f;
    f = e;
    e = d + one | 0;
    d = c;
    c = bb;
    bb = a;
    a = one + two | 0;
  }
  state[0] += a;
  state[1] += bb;
  state[2] += c;
  state[3] += d;
  state[4] += e;
  state[5] += f;
  state[6] += g;
  state[7] += h;
}
const last = new Uint8Array(128);
function finish(state, message, before) {
  let at = 0;
  for (; message.length - at >= 64; at += 64) compress(state, message, at);
  const rest = message.length - at;
  const size = rest < 56 ? 64 : 128;
  last.fill(0, 0, size);
  for (let k = 0; k < rest; k++) last[k] = message[at + k];
  last[rest] = 128;
  const bits = (before + message.length) * 8;
  new DataView(last.buffer).setUint32(size - 8, Math.floor(bits / 2 ** 32));
  new DataView(last.buffer).setUint32(size - 4, bits >>> 0);
  for (let k = 0; k < size; k += 64) compress(state, last, k);
  return state;
}
function bytes(state) {
  const out = new Uint8Array(32);
  for (let k = 0; k < 8; k++) for (let s = 0; s < 4; s++) out[4 * k + s] = state[k] >>> 24 - 8 * s;
  return out;
}
const sha256 = (message) => bytes(finish(Uint32Array.from(INIT), message, 0));
function hmac(key) {
  const begun = (pad) => {
    const block = new Uint8Array(64).fill(pad);
    key.forEach((b, k) => {
      block[k] ^= b;
    });
    const state = Uint32Array.from(INIT);
    compress(state, block, 0);
    return state;
  };
  const inner = begun(54);
  const outer = begun(92);
  return (message) => bytes(finish(Uint32Array.from(outer), bytes(finish(Uint32Array.from(inner), message, 64)), 64));
}

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
const shardBits = (tickets) => tickets <= 256 ? 0 : 32 - Math.clz32(Math.floor((tickets - 1) / 256));
const leaf = (data) => sha256(join([0], data));
const node = (left, right) => sha256(join([1], left, right));
function treeOf(leafAt, from, n) {
  if (n === 0) return sha256(new Uint8Array(0));
  if (n === 1) return leafAt(from);
  const half = 2 ** (31 - Math.clz32(n - 1));
  return node(treeOf(leafAt, from, half), treeOf(leafAt, from + half, n - half));
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

const EVERY = 5e3;
self.onmessage = async ({ data: { url, record, ticket } }) => {
  try {
    const tally = new Tally(record, ticket);
    await read(url, tally);
    tally.root((done) => tell({ step: "tree", done }));
    tell({ rank: tally.ranks(), wrong: null });
  } catch (err) {
    tell(err instanceof Faulty ? { rank: 0, wrong: { fault: err.fault, about: err.about } } : { unread: true });
  }
};
const tell = (what) => self.postMessage(what);
async function read(url, tally) {
  const res = await fetch(url);
  if (!res.ok || !res.body) throw new Error(`the list: ${res.status}`);
  const lines = res.body.pipeThrough(new TextDecoderStream()).getReader();
  let head = true;
  let rest = "";
  for (let told = 0; ; ) {
    const { done, value } = await lines.read();
    const all = (rest + (value ?? "")).split("\n");
    rest = done ? "" : all.pop() ?? "";
    for (const line of all) {
      if (!line) continue;
      if (head) tally.head(line);
      else tally.add(line);
      head = false;
    }
    if (tally.added - told >= EVERY) tell({ step: "scores", done: told = tally.added });
    if (done) return;
  }
}
