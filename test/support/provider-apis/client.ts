import Anthropic from '@anthropic-ai/sdk';
import { startMessagesApi, type MessagesApi, type MessagesApiOptions } from './messages-api.js';

const open: MessagesApi[] = [];

/** A server that `closeAll` ends, and the real SDK pointed at it. */
export async function connect(options: MessagesApiOptions = {}): Promise<{ api: MessagesApi; client: Anthropic }> {
  const api = await startMessagesApi(options);
  open.push(api);
  return { api, client: sdk(api.url) };
}

export function sdk(url: string): Anthropic {
  return new Anthropic({ apiKey: 'sk-test', baseURL: url, maxRetries: 0, logLevel: 'off' });
}

export async function closeAll(): Promise<void> {
  await Promise.all(open.splice(0).map((api) => api.close()));
}

export const getTime = { name: 'get_time', description: 'The time.', input_schema: { type: 'object' as const, properties: {} } };

export const hello: Anthropic.MessageCreateParamsNonStreaming = {
  model: 'claude-test',
  max_tokens: 100,
  tools: [getTime],
  messages: [{ role: 'user', content: 'hello' }],
};

/** Events of a raw streaming request, read without the SDK. */
export async function rawEvents(url: string, body: object = hello): Promise<{ event: string; data: Record<string, unknown> }[]> {
  const response = await post(url, { ...body, stream: true });
  return (await response.text())
    .split('\n\n')
    .filter((part) => part !== '')
    .map((part) => {
      const [, event = '', data = ''] = /^event: (.*)\ndata: (.*)$/.exec(part) ?? [];
      return { event, data: JSON.parse(data) as Record<string, unknown> };
    });
}

export function post(url: string, body: object | string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${url}/v1/messages`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': 'sk-test', 'anthropic-version': '2023-06-01', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
}

/** What a promise rejected with. */
export async function failure(promise: Promise<unknown>): Promise<Error & { status?: number; type?: string; headers?: Headers }> {
  try {
    await promise;
  } catch (error) {
    return error as Error;
  }
  throw new Error('expected a failure');
}
