/** A client of Perdura's gateway for browsers and programs: `fetch`, and nothing else. */
import { toAddress, type Answer, type Given, type Method, type Operation, type Operations } from './operations.js';
import type { components } from './schema.js';
import { readEvents } from './server-events.js';

/** What has a name in `/openapi.json`, such as `Schema<'Entry'>`. */
export type Schema<Name extends keyof components['schemas']> = components['schemas'][Name];

export interface GatewayOptions {
  /** Of the gateway, such as `http://127.0.0.1:7280`. */
  readonly url: string | URL;
  /** Absent in a page that the gateway's own cookie has signed in. */
  readonly token?: string;
  /** Default: that of the surroundings. */
  readonly fetch?: typeof globalThis.fetch;
}

export type Message = Omit<Body<'post', '/v1/conversations/{id}/messages'>, 'start'>;
export type StartOptions = NonNullable<Body<'post', '/v1/conversations/{id}/messages'>['start']>;
export type TurnResult = Schema<'TurnResult'>;
type Body<M extends Method, P extends Operations<M>> = NonNullable<Given<Operation<M, P>>['body']>;

/** An event of a turn, as the gateway sends it. */
export type TurnEvent =
  | { readonly kind: 'message'; readonly turn: string; readonly messageId: string; readonly preview: string }
  | { readonly kind: 'text' | 'thinking'; readonly turn: string; readonly call: string; readonly attempt: string; readonly text: string }
  /** What was shown of this model call is void. */
  | { readonly kind: 'reset'; readonly turn: string; readonly call: string; readonly attempt: string }
  | { readonly kind: 'tool-started'; readonly turn: string; readonly callId: string; readonly name: string; readonly input: string }
  | {
      readonly kind: 'tool-finished';
      readonly turn: string;
      readonly callId: string;
      readonly name: string;
      readonly outcome: string;
      readonly preview: string;
    }
  /** A person is waited for, or the program that runs a tool, until then (epoch milliseconds): `decide` answers. */
  | {
      readonly kind: 'asked';
      readonly turn: string;
      readonly callId: string;
      readonly name: string;
      readonly what: 'approval' | 'question' | 'client-tool';
      readonly target: string;
      readonly until: number;
    }
  | { readonly kind: 'decided'; readonly turn: string; readonly callId: string; readonly name: string; readonly decision: string }
  /** Some events are lost: what was shown may lack them. The last event has the whole answer. */
  | { readonly kind: 'resync' }
  /** The last. */
  | { readonly kind: 'turn-finished'; readonly turn: string; readonly result: TurnResult }
  /** A failed call of a model is tried again then (epoch milliseconds). */
  | { readonly kind: 'waiting'; readonly turn: string; readonly for: string; readonly until: number }
  /** Another model answers. */
  | { readonly kind: 'fallback'; readonly turn: string; readonly call: string; readonly for: string; readonly model: string }
  /** A breakpoint was reached. */
  | { readonly kind: 'paused'; readonly turn: string; readonly why: string }
  /** Older turns became a summary. */
  | { readonly kind: 'compacted'; readonly turn: string; readonly tokensBefore: number; readonly tokensAfter: number };

/** What the gateway refused, in its words. `kind`: stable, such as `not-found`, `no-worker`; `status` 0 and `unreachable`: there was no answer. */
export class GatewayError extends Error {
  override readonly name = 'GatewayError';

  constructor(
    readonly status: number,
    readonly kind: string,
    message: string,
    readonly retryAfterMs?: number,
  ) {
    super(message);
  }
}

export interface GatewayClient {
  /** Any operation of the native API, typed by `/openapi.json`: `request('get', '/v1/conversations/{id}', { path: { id } })`. */
  request<M extends Method, P extends Operations<M>>(method: M, path: P, given?: Given<Operation<M, P>>): Promise<Answer<M, P>>;
  /**
   * A message and the turn that answers it, from its beginning to `turn-finished`. `start` begins the conversation where there is none. A lost
   * connection is taken up again where it was. With the same message `id` it is the same turn, also after a restart of the program.
   */
  stream(
    conversation: string,
    message: string | Message,
    options?: { readonly start?: StartOptions; readonly signal?: AbortSignal },
  ): AsyncGenerator<TurnEvent, void>;
}

const [FIRST_PAUSE_MS, LAST_PAUSE_MS, TRIES] = [250, 15_000, 12];
/** The gateway sends something every 15 s. */
const SILENCE_MS = 45_000;

export function createGatewayClient({ url, token, fetch = (...given) => globalThis.fetch(...given) }: GatewayOptions): GatewayClient {
  const home = new URL(String(url).replace(/\/*$/, '/'));
  const own: Readonly<Record<string, string>> = token === undefined ? {} : { authorization: `Bearer ${token}` };

  const ask = async (address: URL, init: RequestInit): Promise<Response> => {
    const response = await fetch(address, init).catch((error: unknown) => {
      if (init.signal?.aborted) throw error;
      throw new GatewayError(0, 'unreachable', `cannot reach the gateway at ${home.href}; look whether \`perdura serve\` runs there`);
    });
    if (response.ok) return response;
    throw toError(response.status, await response.json().catch(() => ({})), response.headers.get('retry-after'));
  };

  const request: GatewayClient['request'] = async (method, path, given = {}) => {
    const { body, headers, signal } = given;
    const response = await ask(toAddress(home, path, given.path, given.query), {
      method: method.toUpperCase(),
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal && { signal }),
      headers: { ...own, accept: 'application/json', ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
    });
    return (response.status === 204 ? undefined : await response.json()) as Answer<typeof method, typeof path>;
  };

  /** The events of one connection; throws where it ends before the turn does. */
  async function* connect(address: URL, init: RequestInit, at: Position, signal: AbortSignal | undefined): AsyncGenerator<TurnEvent, void> {
    const silence = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const alive = (): void => {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENCE_MS);
    };
    const either = signal ? AbortSignal.any([signal, silence.signal]) : silence.signal;
    const headers = { ...own, accept: 'text/event-stream', ...(init.headers as Readonly<Record<string, string>>) };
    try {
      const response = await ask(address, { ...init, headers, signal: either });
      alive();
      for await (const { event, data, id } of response.body === null ? [] : readEvents(response.body)) {
        alive();
        if (event === 'ping') continue;
        if (event === 'error') throw toError(undefined, JSON.parse(data));
        if (event === 'submitted') {
          at.turn = (JSON.parse(data) as { readonly turn: string | null }).turn ?? undefined;
          continue;
        }
        if (id !== undefined) at.cursor = id;
        const told = JSON.parse(data) as TurnEvent;
        // Only what goes on counts: one that is taken and fails, again and again, ends.
        at.failures = 0;
        if (told.kind === 'turn-finished') at.isOver = true;
        yield told;
        if (at.isOver) return;
      }
      throw new GatewayError(
        0,
        'unreachable',
        `the connection to ${home.href} ended before the turn did; the same message with the same id goes on`,
      );
    } finally {
      clearTimeout(timer);
    }
  }

  return {
    request,
    async *stream(conversation, given, { start = {}, signal } = {}) {
      const message = { id: globalThis.crypto.randomUUID(), ...(typeof given === 'string' ? { text: given } : given), start };
      const at: Position = { failures: 0, isOver: false };
      for (;;) {
        const isSent = at.turn !== undefined && at.cursor !== undefined;
        const address = isSent
          ? toAddress(home, '/v1/conversations/{id}/turns/{turn}/events', { id: conversation, turn: at.turn })
          : toAddress(home, '/v1/conversations/{id}/messages', { id: conversation });
        const init: RequestInit = isSent
          ? { headers: { 'last-event-id': at.cursor ?? '' } }
          : { method: 'POST', body: JSON.stringify(message), headers: { 'content-type': 'application/json' } };
        let pause = Math.min(LAST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** at.failures);
        try {
          return yield* connect(address, init, at, signal);
        } catch (error) {
          signal?.throwIfAborted();
          if (error instanceof GatewayError) {
            if (!isPassing(error)) throw error;
            pause = error.retryAfterMs ?? pause;
          }
          if (at.failures >= TRIES) throw error;
        }
        at.failures += 1;
        await sleep(pause, signal);
      }
    },
  };
}

interface Position {
  turn?: string | undefined;
  /** Of the last event that was yielded. */
  cursor?: string;
  failures: number;
  isOver: boolean;
}

/** The gateway was not heard, or ends, or waits for others: the same again does no harm. */
function isPassing({ status, kind }: GatewayError): boolean {
  return [0, 429, 502, 504].includes(status) || (status === 503 && kind !== 'no-worker');
}

function toError(status: number | undefined, problem: unknown, retryAfter?: string | null): GatewayError {
  const { type = '', detail, status: told = 0 } = problem as { readonly type?: string; readonly detail?: string; readonly status?: number };
  const kind = type.replace(/^urn:perdura:/, '') || 'failed';
  const seconds = Number(retryAfter ?? NaN);
  const code = status ?? told;
  return new GatewayError(code, kind, detail ?? `the gateway answered ${code}`, Number.isNaN(seconds) ? undefined : seconds * 1_000);
}

function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal?.reason instanceof Error ? signal.reason : new Error('it was stopped'));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, ms);
    signal?.addEventListener('abort', stop, { once: true });
  });
}
