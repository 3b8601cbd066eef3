import { $, h } from './dom.js';

function announce(text) {
  const live = $("announcer");
  live.textContent = "";
  requestAnimationFrame(() => {
    live.textContent = text;
  });
}
function note(text, kind = "plain") {
  const box = $("notes");
  for (const old of box.querySelectorAll(".note")) if (kind === "good" || old.dataset.text === text) old.remove();
  const el = h(
    "div",
    { class: `note ${kind}`, "data-text": text },
    h("span", {}, text),
    h("button", { class: "plain", "aria-label": "Dismiss", onclick: () => el.remove() }, "×")
  );
  box.append(el);
  while (box.children.length > 3) box.firstChild?.remove();
  setTimeout(() => el.remove(), kind === "bad" ? 12e3 : 6e3);
  announce(text);
}

export { announce, note };
