// Calls of the HTTP API. Every failure is a Problem: the server's own, or
// "offline" when there was no answer.

import { backToLine, passFor } from './line.js';

const TIMEOUT = 15000;

/** Problem is a call that failed, by the server's stable code. */
export class Problem extends Error {
  /** @param {{status?: number, code: string, detail?: string, retryAfter?: number}} members and whatever the server adds */
  constructor(members) {
    super(members.detail ?? members.code);
    Object.assign(this, { status: 0, retryAfter: 0 }, members);
  }

  /** passing says that the same call may well succeed a moment later. */
  get passing() {
    return this.code === 'offline' || this.status === 429 && this.retryAfter > 0 || this.status >= 500;
  }
}

/** Api makes calls, as the shopper where the call needs one. */
export class Api {
  #clock;
  #session;

  /**
   * @param {import('./clock.js').Clock} clock is told what time answers carry
   * @param {import('./session.js').Session} session
   */
  constructor(clock, session) {
    this.#clock = clock;
    this.#session = session;
  }

  /**
   * get reads something public.
   * @param {string} path
   */
  get(path) {
    return this.#send('GET', path, {});
  }

  /**
   * call does something as the shopper. A session that ended is renewed once.
   * @param {string} method
   * @param {string} path
   * @param {{body?: any, key?: string, quiet?: boolean}} [options] key is the Idempotency-Key; quiet asks nobody to sign in
   */
  async call(method, path, { body, key, quiet = false } = {}) {
    const headers = {};
    if (body !== undefined) headers['Content-Type'] = 'application/json';
    if (key) headers['Idempotency-Key'] = key;
    const pass = passFor(path);
    if (pass) headers['Seatcast-Pass'] = pass;
    for (let again = true; ; again = false) {
      headers.Authorization = `Bearer ${await this.#token(quiet)}`;
      try {
        return await this.#send(method, path, { cache: 'no-store', headers, body: body === undefined ? undefined : JSON.stringify(body) });
      } catch (p) {
        backToLine(method, path, p.code);
        if (p.status !== 401) throw p;
        this.#session.forget();
        if (!again) throw p;
      }
    }
  }

  async #token(quiet) {
    try {
      return await this.#session.token(quiet);
    } catch (err) {
      throw new Problem({ code: err.name === 'AbortError' ? 'token_missing' : 'offline' });
    }
  }

  async #send(method, path, init) {
    let res;
    let answer;
    try {
      res = await fetch(path, { method, signal: AbortSignal.timeout(TIMEOUT), ...init });
      answer = res.status === 204 ? null : await res.json();
    } catch (err) {
      if (!res || res.ok) throw new Problem({ code: 'offline' });
      answer = {}; // an error page of something between us
    }
    if (init.cache === 'no-store') this.#clock.heardDate(res.headers.get('Date')); // a cached answer carries an old date
    if (res.ok) return answer;
    const retryAfter = Number(res.headers.get('Retry-After')) * 1000 || 0;
    throw new Problem({ code: res.status >= 500 ? 'store_unavailable' : 'internal', ...answer, status: res.status, retryAfter });
  }
}

/** newKey is a fresh Idempotency-Key. */
export const newKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, '0')).join('');
