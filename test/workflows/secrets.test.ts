/**
 * A secret that the worker knows is nowhere, whoever says it, in each of its spellings: not in the store, the feed, Temporal's history, what
 * clients read, exports or what other models are sent. What looks for it here knows nothing of how it is taken out.
 */
import { join } from 'node:path';
import { z } from 'zod';
import type { FeedEvent } from '../../src/conversation/protocol/contract.js';
import { toTraces } from '../../src/memory/traces.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { httpError } from '../support/provider-apis/faults.js';
import { callTool, text } from '../support/provider-apis/reply.js';
import { createStage, say, type Stage } from '../support/stage.js';
import { bytesOfFiles } from '../support/store-bytes.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

const KEY = 'sk-or-v1-Zk9/7Wm2LxT4vBn8+RcY1dHs6JfPgKe3UaXo5iEw0QtVyNlM';
const PASSWORD = 'Zr7-redis"Pw/x';
const inLines = (value: string): string => value.replace(/.{20}(?=.)/g, '$&\n');
const hex = (value: string): string => Buffer.from(value).toString('hex');
const base64 = (value: string): string => Buffer.from(value).toString('base64');

const SPELLINGS = [KEY, PASSWORD].flatMap((secret) => [
  secret,
  encodeURIComponent(secret),
  JSON.stringify(secret),
  ...['', 'a', 'ab'].flatMap((before) => [base64(`${before}${secret}`), Buffer.from(`${before}${secret}`).toString('base64url')]),
  inLines(base64(secret)),
  hex(secret),
  hex(secret).toUpperCase(),
  hex(secret).replace(/../g, '%$&'),
]);
const ALL = SPELLINGS.join(' | ');
/** By which each is told from anything else: what stands in the middle of it. */
const MARKS = [...new Set(SPELLINGS.map((spelling) => spelling.slice(6, 16)))];

function expectNowhere(where: string, found: string): void {
  expect(found.length).toBeGreaterThan(100);
  const unlined = found.replace(/\\+n|\n/g, '');
  expect([where, ...MARKS.filter((mark) => found.includes(mark) || unlined.includes(mark))]).toEqual([where]);
}

const nothing = z.object({});
const tools = [
  defineTool({
    name: 'tell',
    description: 'Says it.',
    input: z.object({ say: z.string() }),
    run: ({ say: words }) => ({
      ok: true as const,
      content: `${words} ${ALL}`,
      context: { note: ALL },
      task: { goal: ALL, openTasks: [] },
    }),
  }),
  defineTool({ name: 'tell_at_length', description: 'Says it.', input: nothing, run: () => `${ALL}\n`.repeat(300) }),
  defineTool({
    name: 'fail',
    description: 'Fails with it.',
    input: nothing,
    policy: { repeatable: true, attempts: 2 },
    run: () => Promise.reject(new Error(`cannot log in with ${ALL}`)),
  }),
  defineTool({
    name: 'keep',
    description: 'Keeps it.',
    input: nothing,
    run: async (_input, { memory }) => `kept as ${await memory.store({ content: { all: ALL }, metadata: { tags: [PASSWORD] } })}`,
  }),
  defineTool({
    name: 'ask_first',
    description: 'Says it to the person.',
    input: nothing,
    examine: () => ({ asks: { why: `it uses ${ALL}` } }),
    run: () => 'never',
  }),
];

const stage: Stage = createStage();
let world: World;

beforeAll(async () => {
  const agent = { memory: { enabled: true } };
  world = await startWorld({ answer: stage.answer, tools, secrets: [KEY, PASSWORD], showsWords: true, agent });
});
afterAll(() => world.close());

/** Payloads in words. */
async function historyText(id: string): Promise<string> {
  const history = await world.temporal.workflow.getHandle(id).fetchHistory();
  return JSON.stringify(history.events, (_, value: unknown) => (value instanceof Uint8Array ? Buffer.from(value).toString() : value));
}

/** What a watcher has read of the turn, pieces of one text as one. */
async function liveText(id: string): Promise<string> {
  const stop = new AbortController();
  const seen: FeedEvent[] = [];
  for await (const { event } of world.store.feed.read(await world.client.key(id), '0', stop.signal)) {
    seen.push(event as unknown as FeedEvent);
    if (seen.at(-1)?.kind === 'turn-finished') stop.abort();
  }
  return JSON.stringify([seen, seen.map((event) => ('text' in event ? event.text : '')).join('')]);
}

async function expectNowhereIn(id: string): Promise<void> {
  const entries = await world.client.history(id);
  expectNowhere('entries', JSON.stringify(entries));
  expectNowhere('export', JSON.stringify(entries.flatMap((entry) => toTraces(entry, id))));
  expectNowhere('status', JSON.stringify([await world.client.status(id), await world.client.describe(id)]));
  expectNowhere('history', await historyText(id));
  expectNowhere('store', await bytesOfFiles(join(world.dir, 'memory')));
  expectNowhere('requests', JSON.stringify(stage.requests(id)));
}

test('what looks for it would find it', () => {
  for (const spelling of SPELLINGS) expect(() => expectNowhere('here', `${' '.repeat(100)}${spelling}`)).toThrow();
});

test('a model says it, in text, in thinking, and as arguments', async () => {
  const id = world.id();
  await world.client.start(id);
  stage.play(
    id,
    { ...callTool('tell', { say: ALL }), text: `First ${ALL}` },
    { ...text(`Then ${ALL}`), thinking: { text: ALL, signature: base64(KEY) } },
  );
  const turn = await world.client.send(id, say(id, 'say it'));
  expect(turn.text).toMatch(/^Then \[redacted\] \| \[redacted\]/);
  expectNowhere('answer', JSON.stringify(turn).padEnd(200));
  expectNowhere('live', await liveText(id));
  await expectNowhereIn(id);
});

test('a tool says it, at length, in an error, into its memory and to the person', async () => {
  const id = world.id();
  await world.client.start(id);
  stage.play(id, callTool('tell_at_length'), callTool('fail'), callTool('keep'), callTool('ask_first'));
  await world.client.enqueue(id, say(id, 'do it'));
  await stage.waitForRequest(id, 4);
  const waiting = await waitFor(
    () => world.client.approvals(id),
    (approvals) => approvals.length > 0,
  );
  expect(waiting[0]?.why).toMatch(/^it uses \[redacted\]/);
  expectNowhere('approvals', JSON.stringify(waiting).padEnd(200));
  await expectNowhereIn(id);
});

test('a provider says it in an error: one that is tried again, and one that ends the turn', async () => {
  const id = world.id();
  await world.client.start(id);
  const message = `wrong key ${ALL}`;
  stage.play(id, httpError(500, { message, retryAfter: 0 }), httpError(401, { message }));
  const turn = await world.client.send(id, say(id, 'try it'));
  expect(turn.stopReason).toBe('failed');
  expect(turn.error?.message).toMatch(/wrong key \[(key|redacted)\] \|.*\[redacted\] \| \[redacted\]/);
  expectNowhere('failure', JSON.stringify(turn).padEnd(200));
  await expectNowhereIn(id);
});
