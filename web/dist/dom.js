function h(tag, attrs = {}, ...children) {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(attrs)) {
    if (typeof value === "function") el.addEventListener(name.slice(2), value);
    else if (value === true) el.setAttribute(name, "");
    else if (value !== false && value != null) el.setAttribute(name, String(value));
  }
  el.append(...children.filter((c) => c !== null && c !== false).map((c) => c instanceof Node ? c : String(c)));
  return el;
}
const $ = (id) => document.getElementById(id);
function tell(id, text) {
  if ($(id).textContent !== text) $(id).textContent = text;
}
function unbroken(place) {
  const [first, ...rest] = place.split(", ");
  return rest.reduce((all, part, n) => [...all, " ", h("span", { class: "whole" }, n < rest.length - 1 ? `${part},` : part)], [rest.length ? `${first},` : first]);
}
function holding(rest, change) {
  const had = document.activeElement;
  change();
  if (had?.closest("[hidden]")) rest.focus();
}
function swatch(color) {
  const el = h("span", { class: "swatch", "aria-hidden": "true" });
  el.style.setProperty("--swatch", color);
  return el;
}

export { $, h, holding, swatch, tell, unbroken };
