import { h } from './dom.js';

function qr(text, name) {
  const canvas = h("canvas", { class: "qr", role: "img", "aria-label": name });
  import('./lean-qr.js').then(({ generate }) => {
    generate(text).toCanvas(canvas, { on: [0, 0, 0, 255], off: [255, 255, 255, 255] });
    canvas.style.setProperty("--modules", String(canvas.width));
  }, () => canvas.replaceWith(h("code", {}, text)));
  return canvas;
}

export { qr };
