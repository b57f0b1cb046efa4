/** A server that nearly speaks as OpenAI or Ollama does: it sends what a test says, to real clients over loopback HTTP. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { AssistantBlock } from '../../src/records/message.js';
import { type Model, ModelFailure, type ModelRequest } from '../../src/models/model.js';
import { createOpenAIModel } from '../../src/models/openai/client.js';
import { request } from './builders.js';

export interface Sent {
  readonly status?: number;
  readonly type?: string;
  readonly body: string;
}

export interface SentBody {
  readonly messages: readonly {
    readonly role: string;
    readonly content: unknown;
    readonly tool_calls?: readonly { readonly function: { readonly arguments: string } }[];
  }[];
  readonly tools?: readonly unknown[];
  readonly stream?: boolean;
  readonly max_tokens: number;
}

/** What is played, and what was asked for. */
export const api = {
  url: '',
  bodies: [] as SentBody[],
  reply: (_body: SentBody): Sent => ({ status: 500, body: '' }),
};

/** To be called once in a file of tests. */
export function playServer(): void {
  let server: Server;

  beforeAll(async () => {
    server = createServer((incoming, outgoing) => {
      let text = '';
      incoming.on('data', (piece: Buffer) => (text += piece.toString()));
      incoming.on('end', () => {
        api.bodies.push(JSON.parse(text) as SentBody);
        const { status = 200, type = 'text/event-stream', body } = api.reply(api.bodies.at(-1)!);
        outgoing.writeHead(status, { 'content-type': type }).end(body);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    api.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });

  beforeEach(() => {
    api.bodies = [];
  });

  afterAll(() => server.close());
}

export const openai = (): Model => createOpenAIModel({ apiKey: 'key-of-a-test', baseURL: `${api.url}/v1` });

/** `end: text | call({…})`, or `kind: message`. */
export async function ask(model: Model, parts: Partial<ModelRequest> = {}): Promise<string> {
  const show = (block: AssistantBlock): string => {
    if (block.kind === 'text') return String(block.text);
    if (block.kind === 'tool-call') return `${block.name}(${JSON.stringify(block.input)})`;
    return block.kind;
  };
  try {
    const { stop, blocks } = await model.stream(request({ model: 'm', ...parts }), {
      signal: new AbortController().signal,
      onDelta: () => {},
    });
    return `${stop}: ${blocks.map(show).join(' | ')}`;
  } catch (error) {
    if (!(error instanceof ModelFailure)) throw error;
    return `${error.kind}: ${error.message}`;
  }
}

export const sse = (...chunks: readonly unknown[]): Sent => ({
  body: [...chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`), 'data: [DONE]\n\n'].join(''),
});
export const delta = (piece: object, finish: string | null = null): object => ({
  choices: [{ index: 0, delta: piece, finish_reason: finish }],
});
export const piece = (fields: object): object => delta({ content: null, tool_calls: [fields] });
export const refusal = (status: number, body: unknown): Sent => ({ status, type: 'application/json', body: JSON.stringify(body) });
export const whole = (message: object, finish = 'stop'): object => ({
  object: 'chat.completion',
  choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: finish }],
  usage: { prompt_tokens: 9, completion_tokens: 9, total_tokens: 18 },
});
