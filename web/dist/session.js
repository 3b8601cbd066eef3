import { $ } from './dom.js';

const USER = "seatcast.user";
const TOKEN = "seatcast.token";
const TIMEOUT = 15e3;
class Session {
  #asking = null;
  #refused = false;
  // the last token
  /** token is a session token, signing in first when there is none. */
  async token() {
    return sessionStorage.getItem(TOKEN) ?? this.#signIn();
  }
  /** known says whether there is a session, without signing in. */
  get known() {
    return sessionStorage.getItem(TOKEN) !== null;
  }
  /** forget drops a token the server refused. */
  forget() {
    sessionStorage.removeItem(TOKEN);
    this.#refused = true;
  }
  #signIn() {
    this.#asking ??= (async () => await this.#demo() ?? this.#ask())().then((token) => {
      sessionStorage.setItem(TOKEN, token);
      return token;
    }).finally(() => {
      this.#asking = null;
    });
    return this.#asking;
  }
  /** demo returns a token, or null where the server offers no demo sign-in. */
  async #demo() {
    let user = sessionStorage.getItem(USER);
    if (!user) {
      user = `guest-${crypto.getRandomValues(new Uint32Array(2)).join("-")}`;
      sessionStorage.setItem(USER, user);
    }
    const res = await fetch("/v1/demo/session", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ user }),
      signal: AbortSignal.timeout(TIMEOUT)
    });
    if (res.status === 404 || res.status === 405) return null;
    if (!res.ok) throw new TypeError("sign-in failed");
    return (await res.json()).token;
  }
  #ask() {
    const dialog = $("signin");
    const field = $("signin-token");
    $("signin-refused").hidden = !this.#refused;
    this.#refused = false;
    return new Promise((resolve, reject) => {
      dialog.addEventListener("close", () => {
        const token = dialog.returnValue === "ok" ? field.value.trim() : "";
        field.value = "";
        if (token) resolve(token);
        else reject(new DOMException("not signed in", "AbortError"));
      }, { once: true });
      $("signin-ok").onclick = () => dialog.close("ok");
      $("signin-cancel").onclick = () => dialog.close("");
      dialog.showModal();
    });
  }
}

export { Session };
