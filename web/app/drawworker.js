// Works a whole draw out again beside the page: reads the list as it comes, and
// tells how far it is.

import { Faulty, Tally } from './draw.js';

const EVERY = 5000; // tickets

self.onmessage = async ({ data: { url, record, ticket } }) => {
  try {
    const tally = new Tally(record, ticket);
    await read(url, tally);
    tally.root((done) => tell({ step: 'tree', done }));
    tell({ rank: tally.ranks() });
  } catch (err) {
    tell({ failed: err instanceof Faulty ? err.message : null });
  }
};

const tell = (what) => self.postMessage(what);

/** read gives every line of the list to the tally. */
async function read(url, tally) {
  const res = await fetch(url);
  if (!res.ok) throw new Error(`the list: ${res.status}`);
  const lines = res.body.pipeThrough(new TextDecoderStream()).getReader();
  let head = true;
  let rest = '';
  for (let told = 0; ;) {
    const { done, value } = await lines.read();
    const all = (rest + (value ?? '')).split('\n');
    rest = done ? '' : all.pop();
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
