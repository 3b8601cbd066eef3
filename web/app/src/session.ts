// Who the shopper is. In a demo the page signs itself in as a random user of
// this tab; elsewhere the shopper brings a session token of the house's login.

import type { Shopper } from './api';
import { $ } from './dom';

const USER = 'seatcast.user';
const TOKEN = 'seatcast.token';
const TIMEOUT = 15000;

/** Session keeps this tab's session token. */
export class Session implements Shopper {
  #asking: Promise<string> | null = null;
  #refused = false; // the last token

  /** token is a session token, signing in first when there is none. */
  async token(): Promise<string> {
    return sessionStorage.getItem(TOKEN) ?? this.#signIn();
  }

  /** known says whether there is a session, without signing in. */
  get known(): boolean {
    return sessionStorage.getItem(TOKEN) !== null;
  }

  /** forget drops a token the server refused. */
  forget(): void {
    sessionStorage.removeItem(TOKEN);
    this.#refused = true;
  }

  #signIn(): Promise<string> {
    this.#asking ??= (async () => (await this.#demo()) ?? this.#ask())()
      .then((token) => { sessionStorage.setItem(TOKEN, token); return token; })
      .finally(() => { this.#asking = null; });
    return this.#asking;
  }

  /** demo returns a token, or null where the server offers no demo sign-in. */
  async #demo(): Promise<string | null> {
    let user = sessionStorage.getItem(USER);
    if (!user) {
      user = `guest-${crypto.getRandomValues(new Uint32Array(2)).join('-')}`;
      sessionStorage.setItem(USER, user);
    }
    const res = await fetch('/v1/demo/session', {
      method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ user }), signal: AbortSignal.timeout(TIMEOUT),
    });
    if (res.status === 404 || res.status === 405) return null;
    if (!res.ok) throw new TypeError('sign-in failed'); // as fetch says that a network failed
    return (await res.json()).token;
  }

  #ask(): Promise<string> {
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
