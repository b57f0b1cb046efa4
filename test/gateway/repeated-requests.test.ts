/** What clients repeat by themselves is one message; equal requests that nobody repeats are as many as there are. */
import { randomUUID } from 'node:crypto';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { oneToken } from '../../src/gateway/access/entrance.js';
import { createGateway } from '../../src/gateway/app.js';
import type { GatewayApp } from '../../src/gateway/context.js';
import { readAttempt } from '../../src/gateway/core/read-body.js';
import {
  createRepeatedRequests,
  notesInFolder,
  notesInMemory,
  notesInRedis,
  type Notes,
} from '../../src/gateway/core/repeated-requests.js';
import { openRedisLink, type RedisLink } from '../../src/stores/redis/link.js';
import { begunSince, listedIds } from '../support/listed-ids.js';
import { gate, text, type Gate } from '../support/provider-apis/reply.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { startWorld, type World } from '../support/world.js';

const TOKEN = 'a-token-that-only-tests-have';
const MINUTE = 60_000;
let dir: string;
let redis: RedisServer;
let link: RedisLink;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'perdura-requests-'));
  redis = await startRedis();
  link = openRedisLink({ url: redis.url, commandTimeoutMs: 30_000 });
});
afterAll(async () => {
  await link.close();
  await redis.stop();
  await rm(dir, { recursive: true, force: true });
});

describe.each<readonly [string, () => Notes]>([
  ['in memory', () => notesInMemory()],
  ['in a folder', () => notesInFolder(join(dir, randomUUID()))],
  ['in Redis', () => notesInRedis({ client: link.redis, prefix: randomUUID() })],
])('notes %s', (_where, open) => {
  test('a repeat is its first request; equal first ones stay apart, and so do their repeats', async () => {
    const notes = open();
    const [one, other] = [createRepeatedRequests(notes), createRepeatedRequests(notes)];
    const [a, b] = [await one.idOf('r', 0), await other.idOf('r', 0)];
    expect(a).not.toBe(b);
    expect([await other.idOf('r', 1), await one.idOf('r', 1)]).toEqual([a, b]);
    expect([await one.idOf('r', 2), await other.idOf('r', 2)]).toEqual([a, b]);
    expect([a, b]).not.toContain(await one.idOf('another body', 1));
  });

  test('who has its answer repeats nothing', async () => {
    const record = createRepeatedRequests(open());
    const [a, b] = [await record.idOf('r', 0), await record.idOf('r', 0)];
    await record.answered('r', a);
    expect(await record.idOf('r', 1)).toBe(b);
    // Its answer and its patience ended at one moment.
    expect(await record.idOf('r', 1)).toBe(b);
  });

  test('what is repeated without a first one is first', async () => {
    const record = createRepeatedRequests(open());
    const id = await record.idOf('r', 1);
    expect(await record.idOf('r', 2)).toBe(id);
  });
});

test('ten minutes later it is another request, and nothing is left of the first in the folder', async () => {
  const folder = join(dir, randomUUID());
  let time = 1_700_000_000_000;
  const now = (): number => time;
  const record = createRepeatedRequests(notesInFolder(folder, now), { now });
  const id = await record.idOf('r', 0);
  time += 9 * MINUTE;
  expect(await record.idOf('r', 1)).toBe(id);
  time += 2 * MINUTE;
  expect(await record.idOf('r', 2)).not.toBe(id);
  time += 30 * MINUTE;
  await record.idOf('s', 0);
  expect(await readdir(folder)).toHaveLength(1);
});

test('equal requests are one where that is set', async () => {
  const record = createRepeatedRequests(notesInMemory(), { joinsEqual: true });
  expect(await record.idOf('r', 0)).toBe(await record.idOf('r', 0));
});

test('a record that does not answer stops no first request, and no repeat becomes a second message', async () => {
  const away = (): Promise<never> => Promise.reject(new Error('connection lost'));
  const said: string[] = [];
  const record = createRepeatedRequests({ add: away, all: away, claim: away }, { log: (line) => said.push(line) });
  expect(await record.idOf('r', 0)).toMatch(/^[\w-]{36}$/);
  await expect(record.idOf('r', 1)).rejects.toMatchObject({ problem: { status: 503, retryAfter: 2 } });
  expect(said).toHaveLength(2);
});

test.each([
  [{ 'x-stainless-retry-count': '0' }, 0],
  [{ 'x-stainless-retry-count': '2' }, 2],
  [{ 'amz-sdk-request': 'attempt=1; max=3' }, 0],
  [{ 'amz-sdk-request': 'ttl=20260101T000000Z; attempt=3; max=3' }, 2],
  [{ 'x-goog-api-client': 'gl-node/20 gccl/7.1.0 gccl-invocation-id/x gccl-attempt-count/2' }, 1],
  [{ 'x-stainless-retry-count': 'a lot' }, undefined],
  [{}, undefined],
])('%j says how often it was sent before', (headers, attempt) => {
  expect(readAttempt((name) => (headers as Record<string, string>)[name])).toBe(attempt);
});

describe('clients that give up and repeat, before two gateways', () => {
  let world: World;
  let gateways: readonly GatewayApp[];
  let hold: Gate;
  let calls = 0;
  let asked = 0;

  beforeAll(async () => {
    world = await startWorld({
      agent: { memory: { enabled: false } },
      answer: () => ({ ...text(`Answer ${(calls += 1)}.`), hold }),
    });
    const open = (): GatewayApp =>
      createGateway({
        ...{ client: world.client, authenticate: oneToken(TOKEN), agents: () => Promise.resolve(['default']) },
        requestNotes: notesInFolder(join(dir, 'shared')),
      });
    gateways = [open(), open()];
  });
  afterAll(() => world.close());
  beforeEach(() => {
    hold = gate({ chars: 0 });
    [calls, asked] = [0, 0];
  });

  /** Each request goes to the other gateway. The first is lost while the model works on it, as by a time-out of its client. */
  const fetchTwice = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    asked += 1;
    const gone = new AbortController();
    const request = new Request(input, init);
    const headers = new Headers(request.headers);
    headers.set('host', 'localhost');
    const answer = gateways[asked % 2]!.fetch(new Request(request, { headers, signal: gone.signal }));
    if (asked > 1) return answer;
    await hold.reached;
    gone.abort();
    await Promise.resolve(answer).catch(() => undefined);
    hold.release();
    throw new TypeError('fetch failed');
  };
  const began = async (act: () => Promise<unknown>): Promise<number> => {
    const before = await listedIds(world.client);
    await act();
    return (await begunSince(world.client, before)).length;
  };
  const options = { timeout: 60_000, maxRetries: 3, baseURL: 'http://localhost/v1' };

  test.each<readonly [string, (said: string) => Promise<string>]>([
    [
      'Chat Completions',
      async (said) => {
        const openai = new OpenAI({ ...options, apiKey: TOKEN, fetch: fetchTwice });
        const answer = await openai.chat.completions.create({ model: 'default', messages: [{ role: 'user', content: said }] });
        return answer.choices[0]?.message.content ?? '';
      },
    ],
    [
      'Responses',
      async (said) =>
        (await new OpenAI({ ...options, apiKey: TOKEN, fetch: fetchTwice }).responses.create({ model: 'default', input: said }))
          .output_text,
    ],
    [
      'Messages',
      async (said) => {
        const anthropic = new Anthropic({ ...options, baseURL: 'http://localhost', authToken: TOKEN, apiKey: null, fetch: fetchTwice });
        const message = await anthropic.messages.create({ model: 'default', max_tokens: 99, messages: [{ role: 'user', content: said }] });
        return message.content[0]?.type === 'text' ? message.content[0].text : '';
      },
    ],
  ])('a call of %s that is repeated is one conversation, with one answer', async (_protocol, call) => {
    let answer = '';
    expect(await began(async () => (answer = await call(randomUUID())))).toBe(1);
    expect([answer, calls]).toEqual(['Answer 1.', 1]);
    expect(asked).toBeGreaterThan(1);
  });

  test('a stream that is repeated is the whole stream of the first', async () => {
    const body = { model: 'default', stream: true, messages: [{ role: 'user', content: randomUUID() }] };
    const send = (count: number): Promise<Response> =>
      Promise.resolve(
        gateways[count % 2]!.fetch(
          new Request('http://localhost/v1/chat/completions', {
            ...{ method: 'POST', body: JSON.stringify(body) },
            headers: {
              ...{ host: 'localhost', authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
              'x-stainless-retry-count': `${count}`,
            },
          }),
        ),
      );
    const first = await send(0);
    await first.body?.cancel();
    const second = await send(1);
    hold.release();
    expect(await second.text()).toContain('Answer 1.');
    expect(second.headers.get('x-perdura-conversation')).toBe(first.headers.get('x-perdura-conversation'));
    // It has its answer: an equal request is another one.
    const third = await send(0);
    expect(third.headers.get('x-perdura-conversation')).not.toBe(first.headers.get('x-perdura-conversation'));
    expect(await third.text()).toContain('Answer 2.');
  });

  test('a message of the native API without an id', async () => {
    const id = world.id();
    const said = (count: number, signal?: AbortSignal): Promise<Response> =>
      Promise.resolve(
        gateways[count % 2]!.fetch(
          new Request(`http://localhost/v1/conversations/${id}/messages?wait=30`, {
            ...{ method: 'POST', body: JSON.stringify({ text: 'yes', start: {} }) },
            headers: {
              ...{ host: 'localhost', authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
              'amz-sdk-request': `attempt=${count + 1}`,
            },
            ...(signal && { signal }),
          }),
        ),
      );
    const gone = new AbortController();
    const lost = said(0, gone.signal).catch(() => undefined);
    await hold.reached;
    gone.abort();
    hold.release();
    expect(await (await said(1)).json()).toMatchObject({ turnId: 'turn_0001', text: 'Answer 1.' });
    await lost;
    expect(await (await said(0)).json()).toMatchObject({ turnId: 'turn_0002', text: 'Answer 2.' });
  });
});
