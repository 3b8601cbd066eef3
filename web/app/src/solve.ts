// A worker that does the work of a challenge: it tries one number after the other, tells
// how far it is, and at last which one it was, or null.

import type { Work } from './wire';

/** News is what the worker tells: how many it has tried, and at the end which one it was. */
export type News = { tried: number } | { number: number | null };

self.onmessage = async ({ data: { algorithm, challenge, salt, maxnumber } }: MessageEvent<Work>) => {
  let number: number | null = null;
  try {
    const text = new TextEncoder();
    for (let n = 0; n <= maxnumber && number === null; n++) {
      if (n % 500 === 0) tell({ tried: n });
      const sum = new Uint8Array(await crypto.subtle.digest(algorithm, text.encode(salt + n)));
      if (Array.from(sum, (b) => b.toString(16).padStart(2, '0')).join('') === challenge) number = n;
    }
  } catch {
    number = null; // there is no crypto here, as on a page without TLS
  }
  tell({ number });
};

const tell = (news: News) => self.postMessage(news);
