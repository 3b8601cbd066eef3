// Who the shopper is. In a demo the page signs itself in as a random user of
// this browser; elsewhere the shopper brings a session token of the house's login,
// which is this tab's.

import type { Shopper } from './api';
import { $ } from './dom';

const USER = 'seatcast.user';
const TOKEN = 'seatcast.token';
const TIMEOUT = 15000;

/** Session keeps the session token: this tab's, or in a demo this browser's. */
export class Session implements Shopper {
  #asking: Promise<string> | null = null;
  #visiting: Promise<string | null> | null = null;
  #demo = true; // the server may sign anybody in
  #refused = false; // the last token

  /**
   * token is a session token, signing in first when there is none. Where somebody has to
   * be asked it fails with an AbortError when they would not, or when it is to be quiet.
   */
  async token(quiet = false): Promise<string> {
    const had = this.#kept;
    if (had !== null) return had;
    this.#visiting ??= this.#visit().finally(() => { this.#visiting = null; });
    const visitor = await this.#visiting;
    if (visitor !== null) return visitor;
    const token = await this.#ask(quiet);
    sessionStorage.setItem(TOKEN, token);
    return token;
  }

  /** kept is the token of before: that which this tab was given, or that of the demo's user. */
  get #kept(): string | null {
    return sessionStorage.getItem(TOKEN) ?? localStorage.getItem(TOKEN);
  }

  /** forget drops a token the server refused. */
  forget(): void {
    this.#refused = sessionStorage.getItem(TOKEN) !== null; // of the demo's user nobody was asked
    sessionStorage.removeItem(TOKEN);
    localStorage.removeItem(TOKEN);
  }

  /** account is whose token is kept: its subject, or all of a token that names none. */
  get account(): string | null {
    const token = this.#kept;
    if (token === null) return null;
    try {
      const { sub } = JSON.parse(atob(token.split('.')[1].replaceAll('-', '+').replaceAll('_', '/')));
      return typeof sub === 'string' ? sub : token;
    } catch {
      return token;
    }
  }

  /** visit returns a token of the demo's user, or null where the server offers no demo sign-in. */
  async #visit(): Promise<string | null> {
    if (!this.#demo) return null;
    let user = localStorage.getItem(USER);
    if (!user) {
      user = `guest-${crypto.getRandomValues(new Uint32Array(2)).join('-')}`;
      localStorage.setItem(USER, user);
    }
    const res = await fetch('/v1/demo/session', {
      method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ user }), signal: AbortSignal.timeout(TIMEOUT),
    });
    this.#demo = res.status !== 404 && res.status !== 405;
    if (!this.#demo) return null;
    if (res.status === 400) localStorage.removeItem(USER); // it is nobody the server knows how to be: the next one is another
    if (!res.ok) throw new TypeError('sign-in failed'); // as fetch says that a network failed
    const { token } = await res.json();
    localStorage.setItem(TOKEN, token);
    return token;
  }

  async #ask(quiet: boolean): Promise<string> {
    if (quiet) throw new DOMException('not signed in', 'AbortError');
    this.#asking ??= this.#dialog().finally(() => { this.#asking = null; });
    return this.#asking;
  }

  #dialog(): Promise<string> {
    const dialog = $<HTMLDialogElement>('signin');
    const field = $<HTMLInputElement>('signin-token');
    $('signin-refused').hidden = !this.#refused;
    this.#refused = false;
    return new Promise((resolve, reject) => {
      dialog.addEventListener('close', () => {
        const token = dialog.returnValue === 'ok' ? field.value.trim() : '';
        field.value = '';
        if (token) resolve(token);
        else reject(new DOMException('not signed in', 'AbortError'));
      }, { once: true });
      $('signin-ok').onclick = () => dialog.close('ok');
      $('signin-cancel').onclick = () => dialog.close('');
      dialog.showModal();
    });
  }
}
