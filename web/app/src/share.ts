// One stream for all the tabs of a browser: one of them leads, has the stream and
// passes on what it hears; the others follow, and the first of them leads as soon as
// that one is gone. A lock says who leads, a channel carries what it says. Where the
// browser lacks either, or the page may not use it, everybody leads alone.

/** Member is a tab that shares. */
export interface Member<M> {
  lead(): void; // have a stream from now on
  follow(): void; // another tab leads
  heard(message: M): void; // from another tab
}

/** Share is a member's part in what all of one name share, from join until leave. */
export class Share<M> {
  leads = false;
  #name: string;
  #member: Member<M>;
  #channel: BroadcastChannel | null = null;
  #release: (() => void) | null = null; // gives the lock back
  #waiting: AbortController | null = null; // in the line for the lock
  #asked = 0; // only what became of the last request matters

  constructor(name: string, member: Member<M>) {
    this.#name = name;
    this.#member = member;
  }

  join(): void {
    if (!('locks' in navigator) || !('BroadcastChannel' in globalThis)) { // no secure context, or an old browser
      this.#lead();
      return;
    }
    this.#channel = new BroadcastChannel(this.#name);
    this.#channel.onmessage = (e: MessageEvent<M>) => this.#member.heard(e.data);
    void this.#ask({ ifAvailable: true });
  }

  /** leave lets another lead. */
  leave(): void {
    this.#asked++;
    this.#waiting?.abort();
    this.#release?.();
    this.#release = this.#waiting = null;
    this.#channel?.close();
    this.#channel = null;
    this.leads = false;
  }

  /** seize leads in place of a tab that says nothing any more. It learns of it when it wakes. */
  seize(): void {
    this.#waiting?.abort();
    void this.#ask({ steal: true });
  }

  /** say tells the other tabs. */
  say(message: M): void {
    this.#channel?.postMessage(message);
  }

  #lead(): void {
    this.leads = true;
    this.#member.lead();
  }

  #follow(): void {
    this.leads = false;
    this.#waiting = new AbortController();
    void this.#ask({ signal: this.#waiting.signal });
    this.#member.follow();
  }

  async #ask(options: LockOptions): Promise<void> {
    const asked = ++this.#asked;
    let had = false;
    let busy = false;
    try {
      await navigator.locks.request(this.#name, options, (lock) => {
        if (asked !== this.#asked) return;
        busy = !lock;
        if (!lock) return;
        had = true;
        const kept = new Promise<void>((done) => { this.#release = done; });
        this.#lead();
        return kept;
      });
    } catch {
      if (asked !== this.#asked) return;
      if (had) this.#follow(); // somebody has seized it
      else this.#lead(); // this page may have no locks
      return;
    }
    if (busy && asked === this.#asked) this.#follow();
  }
}
