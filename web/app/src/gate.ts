// What a line asks of who joins: work that the browser does beside the page, or a wait in
// its stead, which every browser and everybody can.

import type { Api } from './api';
import type { News } from './solve';
import type * as wire from './wire';

const SILENT = 10000; // a worker that tells nothing for so long does nothing

/** Tell is told how much of what is done, 0 to 1. */
export type Tell = (kind: 'work' | 'wait', part: number) => void;

/**
 * prove returns what shows a line at base that somebody has taken the trouble: altcha,
 * or waited where the work cannot be done here, or the shopper would rather wait instead.
 */
export async function prove(api: Api, base: string, tell: Tell, instead: Promise<void>): Promise<wire.Join> {
  const work = await api.call<wire.Work>('GET', `${base}/challenge`);
  tell('work', 0);
  const number = await solve(work, (part) => tell('work', part), instead);
  if (number === null) return wait(await api.call('GET', `${base}/challenge?wait`), (part) => tell('wait', part));
  const { algorithm, challenge, salt, signature } = work;
  return { altcha: btoa(JSON.stringify({ algorithm, challenge, number, salt, signature })) };
}

/** solve returns the number, or null when it cannot be found here. */
function solve(work: wire.Work, tell: (part: number) => void, instead: Promise<void>): Promise<number | null> {
  return new Promise((done) => {
    let worker: Worker | null = null;
    let silence = 0;
    const end = (number: number | null) => {
      clearTimeout(silence);
      worker?.terminate();
      done(number);
    };
    const heard = () => {
      clearTimeout(silence);
      silence = setTimeout(() => end(null), SILENT);
    };
    try {
      worker = new Worker(new URL('./solve.ts', import.meta.url), { type: 'module' });
    } catch {
      end(null);
      return;
    }
    worker.onmessage = ({ data }: MessageEvent<News>) => {
      if ('number' in data) {
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
async function wait({ waited, seconds }: wire.Wait, tell: (part: number) => void): Promise<wire.Join> {
  const begun = performance.now(); // which nobody sets back
  for (let part = 0; part < 1; part = (performance.now() - begun) / (seconds * 1000)) {
    tell(part);
    await new Promise((done) => { setTimeout(done, 250); });
  }
  return { waited };
}
