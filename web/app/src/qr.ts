// QR codes. What draws them is fetched only when there is one to draw.

import { h } from './dom';

/** qr draws a text as a QR code with a name; where that cannot be, it is the text. */
export function qr(text: string, name: string): HTMLElement {
  const canvas = h('canvas', { class: 'qr', role: 'img', 'aria-label': name });
  import('lean-qr').then(({ generate }) => {
    generate(text).toCanvas(canvas, { on: [0, 0, 0, 255], off: [255, 255, 255, 255] });
    canvas.style.setProperty('--modules', String(canvas.width)); // a pixel is one: as wide as a whole number of pixels of the page each, they are all alike
  }, () => canvas.replaceWith(h('code', {}, text)));
  return canvas;
}
