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

export { hmac, sha256 };
