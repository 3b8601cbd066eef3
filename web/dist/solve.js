self.onmessage = async ({ data: { algorithm, challenge, salt, maxnumber } }) => {
  let number = null;
  try {
    const text = new TextEncoder();
    for (let n = 0; n <= maxnumber && number === null; n++) {
      if (n % 500 === 0) tell({ tried: n });
      const sum = new Uint8Array(await crypto.subtle.digest(algorithm, text.encode(salt + n)));
      if (Array.from(sum, (b) => b.toString(16).padStart(2, "0")).join("") === challenge) number = n;
    }
  } catch {
    number = null;
  }
  tell({ number });
};
const tell = (news) => self.postMessage(news);
