/** Server-sent events out of a response's body. */

export interface ServerEvent {
  readonly event: string;
  readonly data: string;
  readonly id?: string;
}

/** Characters of one event: more is no event of the gateway's. */
const MAX_EVENT = 32 * 1024 * 1024;

/** A sign of life, which has no data, is an event `ping`. */
export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent, void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      rest += decoder.decode(value, { stream: true });
      for (let end = rest.indexOf('\n\n'); end >= 0; end = rest.indexOf('\n\n')) {
        const event = readEvent(rest.slice(0, end));
        rest = rest.slice(end + 2);
        yield event ?? { event: 'ping', data: '' };
      }
      if (rest.length > MAX_EVENT) throw new Error('an event of the gateway is too long');
    }
  } finally {
    void reader.cancel().catch(() => undefined);
  }
}

function readEvent(block: string): ServerEvent | undefined {
  let event = 'message';
  let id: string | undefined;
  const data: string[] = [];
  for (const line of block.split('\n')) {
    const [, name, value = ''] = /^(event|data|id): ?([^]*)$/.exec(line) ?? [];
    if (name === 'event') event = value;
    else if (name === 'id') id = value;
    else if (name === 'data') data.push(value);
  }
  return data.length === 0 ? undefined : { event, data: data.join('\n'), ...(id !== undefined && { id }) };
}
