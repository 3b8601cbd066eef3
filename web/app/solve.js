// A worker that does the work of a challenge: it tries one number after the other, tells
// how far it is, and at last which one it was, or null.

self.onmessage = async ({ data: { algorithm, challenge, salt, maxnumber } }) => {
  let number = null;
  try {
    const text = new TextEncoder();
    for (let n = 0; n <= maxnumber && number === null; n++) {
      if (n % 500 === 0) self.postMessage({ tried: n });
      const sum = new Uint8Array(await crypto.subtle.digest(algorithm, text.encode(salt + n)));
      if (Array.from(sum, (b) => b.toString(16).padStart(2, '0')).join('') === challenge) number = n;
    }
  } catch {
    number = null; // there is no crypto here, as on a page without TLS
  }
  self.postMessage({ number });
};
