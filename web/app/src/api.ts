// Calls of the HTTP API. Every failure is a Problem: the server's own, or
// "offline" when there was no answer.

import type { Clock } from './clock';
import type * as wire from './wire';

const TIMEOUT = 15000;

/** Problem is a call that failed, by the server's stable code. */
export class Problem extends Error {
  readonly code: string;
  readonly status: number; // 0 where there was no answer
  readonly retryAfter: number; // ms
  readonly detail: string | undefined;
  readonly seats: string[] | undefined; // ticketIds
  readonly reason: string | undefined;

  constructor(members: Partial<wire.Problem> & { code: string; retryAfter?: number }) {
    super(members.detail ?? members.code);
    this.code = members.code;
    this.status = members.status ?? 0;
    this.retryAfter = members.retryAfter ?? 0;
    this.detail = members.detail;
    this.seats = members.seats;
    this.reason = members.reason;
  }

  /** passing says that the same call may well succeed a moment later. */
  get passing(): boolean {
    return this.code === 'offline' || this.status === 429 && this.retryAfter > 0 || this.status >= 500;
  }
}

/** problem is the Problem that was thrown. Anything else is a bug, which is thrown on. */
export function problem(err: unknown): Problem {
  if (err instanceof Problem) return err;
  throw err;
}

/** Answer is what was said, and how long ago in ms: a cache on the way may have kept it. */
export interface Answer<T> { said: T; age: number }

interface Call {
  body?: object;
  key?: string; // the Idempotency-Key
  quiet?: boolean; // asks nobody to sign in, and leads nobody away
}

/** Shopper is who calls are made for. */
export interface Shopper {
  token(quiet: boolean): Promise<string>; // a session token; an AbortError: there is none. Quiet: nobody is asked for one
  forget(): void; // the server refused the last one
}

/** Line is what lets a shopper in where an event has a waiting room. */
export interface Line {
  passFor(path: string): string | null; // what a call shows
  backToLine(method: string, path: string, code: string): void; // a call was refused
}

const OPEN: Line = { passFor: () => null, backToLine: () => {} };

/** Api makes calls of a server, as the shopper where the call needs one. */
export class Api {
  #clock: Clock; // is told what time answers carry
  #shopper: Shopper;
  #line: Line;
  #server: string; // its origin; empty: that of the page

  constructor(clock: Clock, shopper: Shopper, line = OPEN, server = '') {
    this.#clock = clock;
    this.#shopper = shopper;
    this.#line = line;
    this.#server = server;
  }

  /** url is where a path of the server is. */
  url(path: string): string {
    return this.#server + path;
  }

  /** get reads something public, which is a T; fresh: from the server, whose clock is heard. */
  async get<T>(path: string, fresh = false): Promise<T> {
    const [said] = await this.#send<T>('GET', path, fresh ? { cache: 'no-store' } : {});
    return said;
  }

  /** ask reads something public that changes: from the server, or from a cache before it, not from that of the browser. */
  async ask<T>(path: string): Promise<Answer<T>> {
    const [said, headers] = await this.#send<T>('GET', path, { cache: 'no-cache' });
    return { said, age: this.#clock.kept(headers) };
  }

  /** call does something as the shopper, which is answered with a T. A session that ended is renewed once. */
  async call<T = void>(method: string, path: string, { body, key, quiet = false }: Call = {}): Promise<T> {
    const headers: Record<string, string> = {};
    if (body !== undefined) headers['Content-Type'] = 'application/json';
    if (key) headers['Idempotency-Key'] = key;
    const pass = this.#line.passFor(path);
    if (pass) headers['Seatcast-Pass'] = pass;
    for (let again = true; ; again = false) {
      headers.Authorization = `Bearer ${await this.#token(quiet)}`;
      try {
        const [said] = await this.#send<T>(method, path, { cache: 'no-store', headers, body: body === undefined ? null : JSON.stringify(body) });
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

  async #token(quiet: boolean): Promise<string> {
    try {
      return await this.#shopper.token(quiet);
    } catch (err) {
      throw new Problem({ code: err instanceof DOMException && err.name === 'AbortError' ? 'token_missing' : 'offline' });
    }
  }

  async #send<T>(method: string, path: string, init: RequestInit): Promise<[said: T, headers: Headers]> {
    let res: Response | undefined;
    let answer;
    try {
      res = await fetch(this.url(path), { method, signal: AbortSignal.timeout(TIMEOUT), ...init });
      answer = res.status === 204 ? null : await res.json();
    } catch (err) {
      if (!res || res.ok) throw new Problem({ code: 'offline' });
      answer = {}; // an error page of something between us
    }
    if (init.cache === 'no-store') this.#clock.heardDate(res.headers.get('Date')); // a cached answer carries an old date
    if (res.ok) return [answer, res.headers];
    const retryAfter = Number(res.headers.get('Retry-After')) * 1000 || 0;
    throw new Problem({ code: res.status >= 500 ? 'store_unavailable' : 'internal', ...answer, status: res.status, retryAfter });
  }
}

/** newKey is a fresh Idempotency-Key. */
export const newKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, '0')).join('');
