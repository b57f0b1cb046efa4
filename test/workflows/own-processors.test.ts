/** What people bring to see and change texts: a secret that a processor takes out is nowhere but in Temporal's own history. */
import { Redis } from 'ioredis';
import type { InputProcessor, ToolResultProcessor } from '../../src/memory/processors.js';
import type { ModelHook } from '../../src/models/model.js';
import { callTool, text } from '../support/provider-apis/reply.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { createStage, say, type Stage } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

const redact = (value: string): string => value.replace(/\b(?:sk|ghp)[-_]\w{8,}/g, '[redacted]');
const redactSecrets: InputProcessor = { name: 'redact-secrets', order: 500, process: redact };
const redactResults: ToolResultProcessor = { name: 'redact-secrets', order: 500, process: redact };
let isBroken = false;
const breakable: InputProcessor = {
  name: 'breakable',
  order: 600,
  process(value) {
    if (isBroken) throw new Error('no dictionary');
    return value;
  },
};

const seen: string[] = [];
const watcher: ModelHook = {
  name: 'watcher',
  beforeInvoke: (messages, payload, { call }) => void seen.push(`before ${call}: ${messages.length} of ${payload.messages.length}`),
  afterInvoke: (_messages, response, { model }) => void seen.push(`after ${model}: ${response.stop}`),
};
const thrower: ModelHook = {
  name: 'thrower',
  beforeInvoke: () => {
    throw new Error('a hook of somebody');
  },
};

const stage: Stage = createStage();
let redis: RedisServer;
let world: World;

beforeAll(async () => {
  redis = await startRedis();
  world = await startWorld({
    answer: stage.answer,
    redisUrl: redis.url,
    files: { 'notes.txt': 'the key is ghp_abcdefgh1234' },
    processors: { input: [breakable, redactSecrets], toolResult: [redactResults] },
    hooks: [thrower, watcher],
  });
});
afterAll(async () => {
  await world.close();
  await redis.stop();
});

async function textsOf(id: string): Promise<string> {
  return JSON.stringify((await world.client.history(id)).map(({ message }) => message));
}

test('what a processor takes out of a message or a result is in no request and no store, also after healing', async () => {
  const id = world.id();
  await world.client.start(id);
  stage.play(id, callTool('read_file', { path: 'notes.txt' }), text('Read.'));
  await world.client.send(id, say(id, 'my key is sk-secret12345, read notes.txt'));
  expect(JSON.stringify(stage.requests(id))).toContain('my key is [redacted], read');
  expect(JSON.stringify(stage.requests(id).at(-1))).toContain('the key is [redacted]');
  expect(JSON.stringify(stage.requests(id))).not.toMatch(/secret12345|abcdefgh1234/);
  const before = await textsOf(id);
  expect(before).not.toMatch(/secret12345|abcdefgh1234/);

  const client = new Redis(redis.url);
  await client.flushall();
  await client.quit();
  await world.client.send(id, say(id, 'still there?'));
  expect(JSON.stringify(stage.requests(id).at(-1))).toContain('my key is [redacted], read');
  expect((await textsOf(id)).startsWith(before.slice(0, -1))).toBe(true);
});

test('a processor that fails keeps the message waiting, and says so: an unprocessed text is never taken in', async () => {
  const id = world.id();
  await world.client.start(id);
  isBroken = true;
  const sent = world.client.send(id, say(id, 'hello'));
  const { waitingFor } = await waitFor(
    () => world.client.status(id),
    ({ waitingFor: reason }) => reason !== undefined,
  );
  expect(waitingFor).toContain('the processor breakable failed: no dictionary');
  expect(stage.requests(id)).toEqual([]);
  isBroken = false;
  expect(await sent).toMatchObject({ stopReason: 'end' });
});

test('a hook sees what goes out and what comes back, and one that throws stops nothing', async () => {
  const id = world.id();
  await world.client.start(id);
  seen.length = 0;
  await world.client.send(id, say(id, 'hello'));
  expect(seen).toEqual(['before turn_0001/m1: 1 of 1', 'after anthropic/claude-test: end']);
});
