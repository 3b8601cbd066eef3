const TIMEOUT = 15e3;
class Problem extends Error {
  code;
  status;
  // 0 where there was no answer
  retryAfter;
  // ms
  detail;
  seats;
  // ticketIds
  reason;
  constructor(members) {
    super(members.detail ?? members.code);
    this.code = members.code;
    this.status = members.status ?? 0;
    this.retryAfter = members.retryAfter ?? 0;
    this.detail = members.detail;
    this.seats = members.seats;
    this.reason = members.reason;
  }
  /** passing says that the same call may well succeed a moment later. */
  get passing() {
    return this.code === "offline" || this.status === 429 && this.retryAfter > 0 || this.status >= 500;
  }
}
function problem(err) {
  if (err instanceof Problem) return err;
  throw err;
}
const OPEN = { passFor: () => null, backToLine: () => {
} };
class Api {
  #clock;
  // is told what time answers carry
  #shopper;
  #line;
  #server;
  // its origin; empty: that of the page
  constructor(clock, shopper, line = OPEN, server = "") {
    this.#clock = clock;
    this.#shopper = shopper;
    this.#line = line;
    this.#server = server;
  }
  /** url is where a path of the server is. */
  url(path) {
    return this.#server + path;
  }
  /** get reads something public, which is a T; fresh: from the server, whose clock is heard. */
  async get(path, fresh = false) {
    const [said] = await this.#send("GET", path, fresh ? { cache: "no-store" } : {});
    return said;
  }
  /** ask reads something public that changes: from the server, or from a cache before it, not from that of the browser. */
  async ask(path) {
    const [said, headers] = await this.#send("GET", path, { cache: "no-cache" });
    return { said, age: this.#clock.kept(headers) };
  }
  /** call does something as the shopper, which is answered with a T. A session that ended is renewed once. */
  async call(method, path, { body, key, quiet = false } = {}) {
    const headers = {};
    if (body !== void 0) headers["Content-Type"] = "application/json";
    if (key) headers["Idempotency-Key"] = key;
    const pass = this.#line.passFor(path);
    if (pass) headers["Seatcast-Pass"] = pass;
    for (let again = true; ; again = false) {
      headers.Authorization = `Bearer ${await this.#token(quiet)}`;
      try {
        const [said] = await this.#send(method, path, { cache: "no-store", headers, body: body === void 0 ? null : JSON.stringify(body) });
        return said;
      } catch (err) {
        const p = problem(err);
        if (!quiet) this.#line.backToLine(method, path, p.code);
        if (p.status !== 401) throw p;
        this.#shopper.forget();
        if (!again) throw p;
      }
    }
  }
  async #token(quiet) {
    try {
      return await this.#shopper.token(quiet);
    } catch (err) {
      throw new Problem({ code: err instanceof DOMException && err.name === "AbortError" ? "token_missing" : "offline" });
    }
  }
  async #send(method, path, init) {
    let res;
    let answer;
    try {
      res = await fetch(this.url(path), { method, signal: AbortSignal.timeout(TIMEOUT), ...init });
      answer = res.status === 204 ? null : await res.json();
    } catch (err) {
      if (!res || res.ok) throw new Problem({ code: "offline" });
      answer = {};
    }
    if (init.cache === "no-store") this.#clock.heardDate(res.headers.get("Date"));
    if (res.ok) return [answer, res.headers];
    const retryAfter = Number(res.headers.get("Retry-After")) * 1e3 || 0;
    throw new Problem({ code: res.status >= 500 ? "store_unavailable" : "internal", ...answer, status: res.status, retryAfter });
  }
}
const newKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");

export { Api, Problem, newKey, problem };
