/**
 * A provider with limits, as Anthropic and OpenAI document theirs: buckets that fill all the time, headers that say what is left, and a
 * refusal with `retry-after` for what does not fit. Anthropic counts requests, tokens of prompts as they come, and tokens of answers as they
 * are made; OpenAI requests, and for each one its prompt and all that its answer may have.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text as readText } from 'node:stream/consumers';

export interface LimitedApiOptions {
  /** A minute. */
  readonly limits: { readonly requests: number; readonly input?: number; readonly output?: number; readonly tokens?: number };
  /** Share of the limits that is left at the beginning. */
  readonly filled?: number;
  /** Milliseconds that an answer takes, after its first byte. */
  readonly answerMs?: number;
}

/** One request, in the order of their arrival. */
export interface LimitedHit {
  readonly at: number;
  readonly status: number;
  /** The words by which the conversation is known: what its first message begins with. */
  readonly who: string;
  readonly input: number;
  readonly output: number;
  /** Tokens of prompt and answer, as OpenAI counts them for its limit. */
  readonly charged: number;
}

export interface LimitedApi {
  readonly url: string;
  readonly hits: readonly LimitedHit[];
  close(): Promise<void>;
}

type Kind = 'requests' | 'input' | 'output' | 'tokens';

interface Bucket {
  readonly limit: number;
  level: number;
  at: number;
}

const ANSWER = 'Noted. '.repeat(12).trim();

export async function startLimitedApi({ limits, filled = 1, answerMs = 150 }: LimitedApiOptions): Promise<LimitedApi> {
  const hits: LimitedHit[] = [];
  const buckets = new Map<Kind, Bucket>();
  for (const [kind, limit] of Object.entries(limits)) buckets.set(kind as Kind, { limit, level: limit * filled, at: Date.now() });
  const fill = (): void => {
    const now = Date.now();
    for (const one of buckets.values()) {
      one.level = Math.min(one.limit, one.level + (one.limit / 60_000) * (now - one.at));
      one.at = now;
    }
  };

  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const isOpenAI = request.url?.includes('/chat/completions') === true;
    const body = await readText(request);
    const { max_tokens: most, max_completion_tokens: newer } = JSON.parse(body) as { max_tokens?: number; max_completion_tokens?: number };
    const who = /talk-[a-z0-9]+-\d+/.exec(body)?.[0] ?? '';
    const input = Math.ceil(body.length / 4);
    const output = 60 + (body.length % 40);
    const charge: { [K in Kind]?: number } = isOpenAI
      ? { requests: 1, tokens: input + (newer ?? most ?? 0) }
      : { requests: 1, input, output: 0 };
    fill();
    const short = [...buckets].find(([kind, one]) => one.level < Math.max(charge[kind] ?? 0, kind === 'output' ? 1 : 0));
    if (!short) for (const [kind, one] of buckets) one.level -= charge[kind] ?? 0;
    hits.push({ at: Date.now(), status: short ? 429 : 200, who, input, output: short ? 0 : output, charged: charge.tokens ?? 0 });
    for (const [name, value] of headersOf(buckets, isOpenAI)) response.setHeader(name, value);
    if (short) {
      const [kind, one] = short;
      const waits = Math.ceil((((charge[kind] ?? 1) || 1) - one.level) / (one.limit / 60));
      response.writeHead(429, { 'content-type': 'application/json', 'retry-after': String(Math.max(1, waits)) });
      const words = `This request would exceed your rate limit of ${one.limit} ${kind} per minute`;
      response.end(JSON.stringify({ type: 'error', error: { type: 'rate_limit_error', message: words } }));
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const [first, rest] = isOpenAI ? chatEvents(input, output) : messageEvents(input, output);
    response.write(first);
    setTimeout(() => {
      fill();
      const made = buckets.get('output');
      if (made) made.level -= output;
      response.end(rest);
    }, answerMs);
  };
  const server = createServer((request, response) => void serve(request, response).catch(() => response.destroy()));
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    hits,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function headersOf(buckets: ReadonlyMap<Kind, Bucket>, isOpenAI: boolean): [string, string][] {
  return [...buckets].flatMap(([kind, { limit, level }]): [string, string][] => {
    const missingMs = ((limit - level) / limit) * 60_000;
    if (isOpenAI) {
      const left = String(Math.max(0, Math.floor(level)));
      return [
        [`x-ratelimit-limit-${kind}`, String(limit)],
        [`x-ratelimit-remaining-${kind}`, left],
        [`x-ratelimit-reset-${kind}`, missingMs < 1_000 ? `${Math.ceil(missingMs)}ms` : `${(missingMs / 1_000).toFixed(3)}s`],
      ];
    }
    const name = kind === 'requests' ? kind : `${kind}-tokens`;
    // Of tokens it names thousands.
    const left = kind === 'requests' ? Math.floor(level) : Math.round(level / 1_000) * 1_000;
    return [
      [`anthropic-ratelimit-${name}-limit`, String(limit)],
      [`anthropic-ratelimit-${name}-remaining`, String(Math.max(0, left))],
      [`anthropic-ratelimit-${name}-reset`, new Date(Date.now() + missingMs).toISOString().replace(/\.\d+Z$/, 'Z')],
    ];
  });
}

function messageEvents(input: number, output: number): [string, string] {
  const sse = (event: { readonly type: string }): string => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
  const usage = { input_tokens: input, output_tokens: 1 };
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'claude', content: [], stop_reason: null, usage };
  const events = [
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: ANSWER } },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: output } },
    { type: 'message_stop' },
  ];
  return [sse({ type: 'message_start', message } as { readonly type: string }), events.map(sse).join('')];
}

function chatEvents(input: number, output: number): [string, string] {
  const chunk = (choices: readonly object[], more: object = {}): string =>
    `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'gpt', choices, ...more })}\n\n`;
  const usage = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
  return [
    chunk([{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }]),
    [
      chunk([{ index: 0, delta: { content: ANSWER }, finish_reason: null }]),
      chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]),
      chunk([], { usage }),
      'data: [DONE]\n\n',
    ].join(''),
  ];
}
