/** A client of the native event streams, which notes where it was and comes back. */
import type { TurnEvent } from '../../src/records/feed-event.js';
import { turnView } from '../../src/records/turn-view.js';
import { until } from './scene.js';

export const TOKEN = 'a-token-that-only-tests-have';

export interface Frame {
  readonly id?: string;
  readonly event: string;
  readonly data: string;
}

/** A client of server-sent events, which notes where it was. */
export async function* framesOf(response: Response): AsyncGenerator<Frame> {
  let rest = '';
  const decoder = new TextDecoder();
  for await (const bytes of response.body as unknown as AsyncIterable<Uint8Array>) {
    const frames = (rest + decoder.decode(bytes, { stream: true })).split('\n\n');
    rest = frames.pop() ?? '';
    for (const frame of frames) {
      const fields = Object.fromEntries(
        frame.split('\n').map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
      );
      if (fields['event'] !== undefined)
        yield { event: fields['event'], data: fields['data'] ?? '', ...(fields['id'] !== undefined && { id: fields['id'] }) };
    }
  }
}

/** One gateway, wherever it is. */
export type Asking = (path: string, init: RequestInit) => Promise<Response>;

export function ask(to: Asking, method: string, path: string, headers: Record<string, string> = {}, body?: unknown): Promise<Response> {
  return to(path, {
    method,
    headers: {
      host: 'localhost',
      authorization: `Bearer ${TOKEN}`,
      'content-type': 'application/json',
      accept: 'text/event-stream',
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}

/** What a reader drew, by the rules of turn-view, and the ends that it saw. */
export class Reader {
  readonly ends: string[] = [];
  lastEventId: string | undefined;
  readonly events: TurnEvent[] = [];

  take({ id, event, data }: Frame): void {
    if (id !== undefined) this.lastEventId = id;
    if (event === 'submitted' || event === 'error') return;
    const taken = JSON.parse(data) as TurnEvent;
    this.events.push(taken);
    if (taken.kind === 'turn-finished') this.ends.push(taken.result.text);
  }

  get drawn(): string {
    return turnView(this.events)
      .parts.map((part) => (part.kind === 'text' ? part.text : ''))
      .join('');
  }

  /** Follows the turn to its end, by as many connections as that takes. */
  async follow(gateway: () => Asking, id: string, turn = 'turn_0001'): Promise<void> {
    await until(
      'the end of the turn',
      async () => {
        const headers = this.lastEventId === undefined ? undefined : { 'last-event-id': this.lastEventId };
        const response = await ask(gateway(), 'GET', `/v1/conversations/${id}/turns/${turn}/events`, headers);
        if (response.ok) for await (const frame of framesOf(response)) this.take(frame);
        return this.ends.length > 0;
      },
      80_000,
    );
  }
}

/** Sends, reads until a part of the answer is there, and leaves. */
export async function beginToRead(gateway: Asking, id: string, reader: Reader): Promise<void> {
  const response = await ask(gateway, 'POST', `/v1/conversations/${id}/messages`, {}, { id: 'm1', text: 'count', start: {} });
  for await (const frame of framesOf(response)) {
    reader.take(frame);
    if (frame.event === 'text') break;
  }
}
