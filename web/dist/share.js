class Share {
  leads = false;
  #name;
  #member;
  #channel = null;
  #release = null;
  // gives the lock back
  #waiting = null;
  // in the line for the lock
  #asked = 0;
  // only what became of the last request matters
  constructor(name, member) {
    this.#name = name;
    this.#member = member;
  }
  join() {
    if (!("locks" in navigator) || !("BroadcastChannel" in globalThis)) {
      this.#lead();
      return;
    }
    this.#channel = new BroadcastChannel(this.#name);
    this.#channel.onmessage = (e) => this.#member.heard(e.data);
    void this.#ask({ ifAvailable: true });
  }
  /** leave lets another lead. */
  leave() {
    this.#asked++;
    this.#waiting?.abort();
    this.#release?.();
    this.#release = this.#waiting = null;
    this.#channel?.close();
    this.#channel = null;
    this.leads = false;
  }
  /** seize leads in place of a tab that says nothing any more. It learns of it when it wakes. */
  seize() {
    this.#waiting?.abort();
    void this.#ask({ steal: true });
  }
  /** say tells the other tabs. */
  say(message) {
    this.#channel?.postMessage(message);
  }
  #lead() {
    this.leads = true;
    this.#member.lead();
  }
  #follow() {
    this.leads = false;
    this.#waiting = new AbortController();
    void this.#ask({ signal: this.#waiting.signal });
    this.#member.follow();
  }
  async #ask(options) {
    const asked = ++this.#asked;
    let had = false;
    let busy = false;
    try {
      await navigator.locks.request(this.#name, options, (lock) => {
        if (asked !== this.#asked) return;
        busy = !lock;
        if (!lock) return;
        had = true;
        const kept = new Promise((done) => {
          this.#release = done;
        });
        this.#lead();
        return kept;
      });
    } catch {
      if (asked !== this.#asked) return;
      if (had) this.#follow();
      else this.#lead();
      return;
    }
    if (busy && asked === this.#asked) this.#follow();
  }
}

export { Share };
