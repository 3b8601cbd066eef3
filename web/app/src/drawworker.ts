// Works a whole draw out again beside the page: reads the list as it comes, and
// tells how far it is.

import { Faulty, Tally, type Fault } from './draw';
import type { Drawn } from './wire';

/** Job is what the worker is to do: read the list, and find the rank of a ticket. */
export interface Job { url: string; record: Drawn; ticket: string }

/** End is what came of it: the rank, 0 for none, and what is wrong; or that the list could not be read. */
export type End = { rank: number; wrong: Fault | null } | { unread: true };

/** News is what the worker tells: how many tickets a step has done, and the end. */
export type News = { step: 'scores' | 'tree'; done: number } | End;

const EVERY = 5000; // tickets

self.onmessage = async ({ data: { url, record, ticket } }: MessageEvent<Job>) => {
  try {
    const tally = new Tally(record, ticket);
    await read(url, tally);
    tally.root((done) => tell({ step: 'tree', done }));
    tell({ rank: tally.ranks(), wrong: null });
  } catch (err) {
    tell(err instanceof Faulty ? { rank: 0, wrong: { fault: err.fault, about: err.about } } : { unread: true });
  }
};

const tell = (what: News) => self.postMessage(what);

/** read gives every line of the list to the tally. */
async function read(url: string, tally: Tally): Promise<void> {
  const res = await fetch(url);
  if (!res.ok || !res.body) throw new Error(`the list: ${res.status}`);
  const lines = res.body.pipeThrough(new TextDecoderStream()).getReader();
  let head = true;
  let rest = '';
  for (let told = 0; ;) {
    const { done, value } = await lines.read();
    const all = (rest + (value ?? '')).split('\n');
    rest = done ? '' : all.pop() ?? '';
    for (const line of all) {
      if (!line) continue;
      if (head) tally.head(line);
      else tally.add(line);
      head = false;
    }
    if (tally.added - told >= EVERY) tell({ step: 'scores', done: told = tally.added });
    if (done) return;
  }
}
