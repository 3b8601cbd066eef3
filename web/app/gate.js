// What a line asks of who joins: work that the browser does beside the page, or a wait in
// its stead, which every browser and everybody can.

const SILENT = 10000; // a worker that tells nothing for so long does nothing

/**
 * prove returns what shows that somebody has taken the trouble: {altcha} or {waited}.
 * @param {import('./api.js').Api} api
 * @param {string} base of the line
 * @param {(kind: 'work'|'wait', part: number) => void} tell how much of it is done, 0 to 1
 * @param {Promise<void>} instead resolves when the shopper would rather wait
 */
export async function prove(api, base, tell, instead) {
  const work = await api.call('GET', `${base}/challenge`);
  tell('work', 0);
  const number = await solve(work, (part) => tell('work', part), instead);
  if (number === null) return wait(await api.call('GET', `${base}/challenge?wait`), (part) => tell('wait', part));
  const { algorithm, challenge, salt, signature } = work;
  return { altcha: btoa(JSON.stringify({ algorithm, challenge, number, salt, signature })) };
}

/** solve returns the number, or null when it cannot be found here. */
function solve(work, tell, instead) {
  return new Promise((done) => {
    let worker = null;
    let silence = 0;
    const end = (number) => {
      clearTimeout(silence);
      worker?.terminate();
      done(number);
    };
    const heard = () => {
      clearTimeout(silence);
      silence = setTimeout(() => end(null), SILENT);
    };
    try {
      worker = new Worker(new URL('solve.js', import.meta.url), { type: 'module' });
    } catch {
      end(null);
      return;
    }
    worker.onmessage = ({ data }) => {
      if (data.number !== undefined) {
        end(data.number);
        return;
      }
      heard();
      tell(data.tried / work.maxnumber);
    };
    worker.onerror = () => end(null);
    instead.then(() => end(null));
    heard();
    worker.postMessage(work);
  });
}

/** wait returns what was given once it is good. */
async function wait({ waited, seconds }, tell) {
  const begun = performance.now(); // which nobody sets back
  for (let part = 0; part < 1; part = (performance.now() - begun) / (seconds * 1000)) {
    tell(part);
    await new Promise((done) => setTimeout(done, 250));
  }
  return { waited };
}
