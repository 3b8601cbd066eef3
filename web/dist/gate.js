const SILENT = 1e4;
async function prove(api, base, tell, instead) {
  const work = await api.call("GET", `${base}/challenge`);
  tell("work", 0);
  const number = await solve(work, (part) => tell("work", part), instead);
  if (number === null) return wait(await api.call("GET", `${base}/challenge?wait`), (part) => tell("wait", part));
  const { algorithm, challenge, salt, signature } = work;
  return { altcha: btoa(JSON.stringify({ algorithm, challenge, number, salt, signature })) };
}
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
      worker = new Worker(new URL(/* @vite-ignore */ ""+new URL('solve.js', import.meta.url).href+"", import.meta.url), { type: "module" });
    } catch {
      end(null);
      return;
    }
    worker.onmessage = ({ data }) => {
      if ("number" in data) {
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
async function wait({ waited, seconds }, tell) {
  const begun = performance.now();
  for (let part = 0; part < 1; part = (performance.now() - begun) / (seconds * 1e3)) {
    tell(part);
    await new Promise((done) => {
      setTimeout(done, 250);
    });
  }
  return { waited };
}

export { prove };
