const FRAMES = ["hello", "snapshot", "delta", "reset", "beat", "degraded"];
const SUBPROTOCOL = "seatcast.v1";
function events(url, hearer) {
  const source = new EventSource(url);
  for (const name of FRAMES) {
    source.addEventListener(name, (e) => hearer.frame({ name, data: JSON.parse(e.data || "{}") }, Number(e.lastEventId)));
  }
  source.onerror = (e) => {
    if ("data" in e) return;
    if (source.readyState === EventSource.CLOSED) hearer.end({});
    else hearer.cut();
  };
  return source;
}
function socket(url, asks, hearer) {
  let over = false;
  const end = (why) => {
    if (over) return;
    over = true;
    ws?.close();
    hearer.end(why);
  };
  let ws = null;
  try {
    ws = new WebSocket(url, SUBPROTOCOL);
  } catch {
    queueMicrotask(() => end({}));
    return { close: () => {
      over = true;
    } };
  }
  ws.onopen = () => ws.send(JSON.stringify(asks));
  ws.onmessage = (e) => {
    if (over) return;
    const { type, topic: _, ...data } = JSON.parse(e.data);
    if (type === "error") end({ code: data.code });
    else if (FRAMES.includes(type)) hearer.frame({ name: type, data }, data.n ?? 0);
  };
  ws.onclose = (e) => end({ wait: Number(/retry_ms=(\d+)/.exec(e.reason)?.[1]) || 0 });
  return {
    close: () => {
      over = true;
      ws.close();
    }
  };
}

export { events, socket };
