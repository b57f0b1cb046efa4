/** `fetch` for Streamable HTTP whose answers have an end: a server may stream for ever, but not one message of any length. */
import { createFloodGate } from './flood-gate.js';
import { MOST_BYTES } from './stdio-transport.js';

type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

const NEWLINE = 0x0a;

export function boundedFetch(inner: Fetch = fetch): Fetch {
  const gate = createFloodGate();
  return async (url, init) => {
    const response = await inner(url, init);
    if (response.body === null) return response;
    const isStream = response.headers.get('content-type')?.includes('text/event-stream') === true;
    const bounded = response.body.pipeThrough(isStream ? boundedEvents(gate.pass) : boundedWhole());
    const { status, statusText, headers } = response;
    return new Response(bounded, { status, statusText, headers });
  };
}

function boundedWhole(): TransformStream<Uint8Array, Uint8Array> {
  let bytes = 0;
  return new TransformStream({
    transform(chunk, controller) {
      bytes += chunk.length;
      if (bytes > MOST_BYTES) controller.error(new Error(`the server's answer has more than ${MOST_BYTES} bytes`));
      else controller.enqueue(chunk);
    },
  });
}

/** Events end in an empty line. */
function boundedEvents(pass: () => boolean): TransformStream<Uint8Array, Uint8Array> {
  let bytes = 0;
  let isLineEmpty = true;
  return new TransformStream({
    transform(chunk, controller) {
      for (const byte of chunk) {
        bytes += 1;
        if (byte === NEWLINE) {
          if (isLineEmpty) {
            bytes = 0;
            if (!pass()) return controller.error(new Error('the server sends events without end'));
          }
          isLineEmpty = true;
        } else if (byte !== 0x0d) isLineEmpty = false;
      }
      if (bytes > MOST_BYTES) controller.error(new Error(`an event of the server has more than ${MOST_BYTES} bytes`));
      else controller.enqueue(chunk);
    },
  });
}
