import { h } from './dom.js';
import { t } from './lang.js';

class Speaker {
  notes = h("section", { id: "notes", class: "notes", "aria-label": t.page.notes });
  announcer = h("div", { id: "announcer", class: "unseen", "aria-live": "polite" });
  /** announce speaks to screen readers only. */
  announce(text) {
    this.announcer.textContent = "";
    requestAnimationFrame(() => {
      this.announcer.textContent = text;
    });
  }
  /** shown announces what the page shows elsewhere. No note from before is news any more. */
  shown(text) {
    this.notes.replaceChildren();
    this.announce(text);
  }
  /** note shows a sentence for a while, and announces it. */
  note(text, kind = "plain") {
    for (const old of this.notes.querySelectorAll(".note")) if (kind === "good" || !old.classList.contains("bad") || old.dataset.text === text) old.remove();
    const el = h(
      "div",
      { class: `note ${kind}`, "data-text": text },
      h("span", {}, text),
      h("button", { class: "plain", "aria-label": t.page.dismiss, onclick: () => el.remove() }, "×")
    );
    this.notes.append(el);
    while (this.notes.children.length > 3) this.notes.firstChild?.remove();
    setTimeout(() => el.remove(), kind === "bad" ? 12e3 : 6e3);
    this.announce(text);
  }
}

export { Speaker };
