// The two ways a map is pushed, Server-Sent Events and WebSocket. Both bring the
// same frames; docs/protocol.md says what they are.

import type * as wire from './wire';

const FRAMES: (keyof wire.Frames)[] = ['hello', 'snapshot', 'delta', 'reset', 'beat', 'degraded'];
const SUBPROTOCOL = 'seatcast.v1';

/** Frame is one of a stream, by its name. */
export type Frame = { [K in keyof wire.Frames]: { name: K; data: wire.Frames[K] } }[keyof wire.Frames];

/** End is why a stream is over, as far as the server said so. */
export interface End {
  code?: string; // of an error
  wait?: number; // ms until one may come back
}

/** Hearer is told what a stream brings. */
export interface Hearer {
  frame(frame: Frame, id: number): void; // the id is the number we hold, as the server knows it
  cut(): void; // it comes back by itself
  end(end: End): void;
}

/** Stream is one that is open, or is being opened, until it is closed. */
export interface Stream { close(): void }

/** events opens a stream of Server-Sent Events. */
export function events(url: string, hearer: Hearer): Stream {
  const source = new EventSource(url);
  for (const name of FRAMES) {
    source.addEventListener(name, (e: MessageEvent<string>) => hearer.frame({ name, data: JSON.parse(e.data || '{}') } as Frame, Number(e.lastEventId)));
  }
  source.onerror = (e) => {
    if ('data' in e) return; // the server's own word "error" comes here too; a cut follows it
    // The browser comes back by itself after a cut; after any answer that
    // is not a stream (204: poll; 503: overload) it gives up for good.
    if (source.readyState === EventSource.CLOSED) hearer.end({});
    else hearer.cut();
  };
  return source;
}

/** socket opens a WebSocket, and sends what asks for one map. */
export function socket(url: string, asks: object, hearer: Hearer): Stream {
  let over = false;
  const end = (why: End) => {
    if (over) return;
    over = true;
    ws?.close();
    hearer.end(why);
  };
  let ws: WebSocket | null = null;
  try {
    ws = new WebSocket(url, SUBPROTOCOL);
  } catch { // some browsers throw where a content policy forbids it
    queueMicrotask(() => end({}));
    return { close: () => { over = true; } };
  }
  ws.onopen = () => ws.send(JSON.stringify(asks));
  ws.onmessage = (e: MessageEvent<string>) => {
    if (over) return;
    const { type, topic: _, ...data } = JSON.parse(e.data);
    if (type === 'error') end({ code: data.code });
    else if (FRAMES.includes(type)) hearer.frame({ name: type, data } as Frame, data.n ?? 0);
  };
  ws.onclose = (e) => end({ wait: Number(/retry_ms=(\d+)/.exec(e.reason)?.[1]) || 0 });
  return {
    close: () => {
      over = true;
      ws.close();
    },
  };
}
