/** The fourth channel (seed 003): long results are shown once, then cited, and every byte of them can be had again. */
import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { ApiRequest } from '../support/provider-apis/api-request.js';
import { callTool, callTools, text } from '../support/provider-apis/reply.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { builtinTools } from '../../src/tools/builtin/index.js';
import { cachedPrefix } from '../support/cached-prefix.js';
import { sumSpending, type Spent } from '../../src/records/spending.js';
import { testReplays } from '../support/replays.js';
import { MEMORY_TOOLS, type MemoryItem, type MemoryItemHead } from '../../src/records/memory/agent-memory.js';
import { fencedBlocks } from '../readme/commands.js';
import { createStage, resultTexts, say } from '../support/stage.js';
import { startWorld, type World } from '../support/world.js';

const FETCHED = 50 * 1024;
const SEARCHED = 8 * 1024;
const page = (n: number): string => `# Page ${n}\n\n${`All about plum ${n}, by the harbour. `.repeat(2_000)}`.slice(0, FETCHED);
const found = (n: number): string => `${n}: https://example.org/${n} plums\n`.repeat(1_000).slice(0, SEARCHED);

const fetch = (n: number) => ({ name: 'fetch_page', input: { url: `https://example.org/harbour/plums/${n}` } });
const search = (n: number) => ({ name: 'search_web', input: { query: `plums of the harbour ${n}` } });

const tools = [
  ...builtinTools,
  defineTool({
    name: 'fetch_page',
    description: 'Fetches a page.',
    input: z.object({ url: z.string() }),
    policy: { repeatable: true },
    run: ({ url }) => page(Number(url.split('/').at(-1))),
  }),
  defineTool({
    name: 'search_web',
    description: 'Searches.',
    input: z.object({ query: z.string() }),
    policy: { repeatable: true },
    run: ({ query }) => found(Number(query.split(' ').at(-1))),
  }),
  defineTool({
    name: 'letters',
    description: 'So many letters.',
    input: z.object({ count: z.int(), letter: z.string() }),
    policy: { repeatable: true },
    run: ({ count, letter }) => letter.repeat(count),
  }),
  defineTool({
    name: 'shelve',
    description: 'Empties the memory, and tries to fill it again.',
    input: z.object({}),
    async run(_, { memory }) {
      const count = async (): Promise<number> => (await memory.query()).length;
      const [had, before] = [await count(), await memory.snapshot()];
      await memory.clear();
      const cleared = await count();
      await memory.restore(before);
      return `${had}, ${cleared}, ${await count()}`;
    },
  }),
];

const stage = createStage();
let asides: string[] = [];
let compactor: () => string = () => '';
let world: World;

beforeAll(async () => {
  world = await startWorld({
    tools,
    compactionPlugins: { search_web: { compact: (_, { input }, { memoryId }) => ({ searched: input, memoryId }) } },
    answer: (request) => {
      const system = JSON.stringify(request.system ?? '');
      if (!/You compact results of tools|You summarize one stored text/.test(system)) return stage.answer(request);
      asides.push(JSON.stringify(request.messages));
      return text(compactor());
    },
  });
});
afterAll(() => world.close());
beforeEach(() => {
  asides = [];
});
afterEach(() => expect(world.api.problems).toEqual([]));

async function started(agent: object = {}): Promise<string> {
  const id = world.id();
  await world.writeAgent(id, agent);
  await world.client.start(id, { agent: id });
  return id;
}

const idIn = (words: string | undefined): string => /mem_[0-9a-f]{12}/.exec(words ?? '')?.[0] ?? 'none';
const bytesOf = (request: ApiRequest | undefined): number => Buffer.byteLength(JSON.stringify(request));
/** All tool results that a request has, oldest first. */
const allResults = (request: ApiRequest | undefined): string[] =>
  (request?.messages ?? []).flatMap(({ content }) =>
    typeof content === 'string' ? [] : content.flatMap((block) => (block.type === 'tool_result' ? [String(block.content)] : [])),
  );

test('a long result is shown whole in one call and cited in the next ones, and a short one stays', async () => {
  const id = await started();
  stage.play(id, callTools(fetch(1), { name: 'letters', input: { count: 100, letter: 'a' } }), text('Read.'), text('Yes.'));
  await world.client.send(id, say(id, 'read it'));
  await world.client.send(id, say(id, 'sure?'));
  const [, shown, later] = stage.requests(id);
  const [whole = '', short] = resultTexts(shown);
  const memoryId = idIn(whole);
  expect(whole).toBe(`Action results:\n${page(1)}\n\n(Stored in memory as ${memoryId})`);
  const [cited = '', still] = allResults(later);
  expect(cited).toMatch(/^Action results \(compacted\):\n\{\n {2}"actionName": "fetch_page",\n {2}"head": "# Page 1/);
  expect(cited).toMatch(new RegExp(`\\(Full result in memory: ${memoryId}\\)$`));
  expect(cited.length).toBeLessThan(1_000);
  expect([short, still]).toEqual(['a'.repeat(100), 'a'.repeat(100)]);
  const key = await world.client.key(id);
  expect((await world.store.items.list(key)).items).toMatchObject([
    {
      id: memoryId,
      type: 'action_result',
      source: 'fetch_page',
      tags: ['action', 'fetch_page'],
      session: 1,
      size: JSON.stringify(page(1)).length,
    },
  ]);
});

test('the model stores, lists and reads again, and what it has read is cited but not stored once more', async () => {
  const id = await started();
  stage.play(
    id,
    callTools(fetch(7), { name: 'store_in_memory', input: { content: 'the ledger is blue', tags: 'colour, ledger' } }),
    callTools({ name: 'query_memory', input: {} }, { name: 'query_memory', input: { tags: 'ledger', type: 'custom' } }),
    (request) =>
      callTools(
        { name: 'retrieve_from_memory', input: { id: idIn(allResults(request)[0]), transform: 'first_n', n: 5_000 } },
        { name: 'retrieve_from_memory', input: { id: 'mem_no' } },
      ),
    (request) => callTool('retrieve_from_memory', { id: idIn(allResults(request)[1]) }),
    (request) => callTool('retrieve_from_memory', { id: idIn(allResults(request)[0]), transform: 'summary', goal: 'plums' }),
    text('Done.'),
  );
  compactor = () => 'It is about plums.';
  expect(await world.client.send(id, say(id, 'go'))).toMatchObject({ text: 'Done.', toolCalls: 8 });
  const requests = stage.requests(id);
  const [whole, stored = ''] = resultTexts(requests[1]);
  expect(stored).toMatch(/^Stored in memory with ID: mem_[0-9a-f]{12}$/);
  const [all, some] = resultTexts(requests[2]).map((words) => JSON.parse(words) as { id: string }[]);
  expect(all?.map(({ id: each }) => each).sort()).toEqual([idIn(stored), idIn(whole)].sort());
  expect(some).toEqual([
    { id: idIn(stored), type: 'custom', source: 'user', timestamp: expect.any(String), size: 20, tags: ['colour', 'ledger'] },
  ]);
  const [part, missing] = resultTexts(requests[3]);
  expect(part).toContain(page(7).slice(0, 5_000));
  expect(missing).toBe('Memory item not found: mem_no');
  // What was read is shown once, as any long result is, under the id of what it was read from.
  expect(part).toContain(`(Stored in memory as ${idIn(whole)})`);
  expect(allResults(requests[4])[4]).toMatch(
    /^Action results \(compacted\):\n\{\n {2}"actionName": "retrieve_from_memory",\n {2}"transform": "first_n",\n {2}"n": 5000/,
  );
  expect(resultTexts(requests[4])).toEqual(['the ledger is blue']);
  expect(resultTexts(requests[5])).toEqual(['It is about plums.']);
  expect(asides).toHaveLength(1);
  expect((await world.store.items.list(await world.client.key(id))).items).toHaveLength(2);
});

describe('seed 003’s table: 20 iterations of an 8 KB search and three 50 KB pages', () => {
  const iteration = (n: number) => [search(n), ...[0, 1, 2].map((i) => fetch(10 * n + i))];
  const runs = new Map<boolean, readonly ApiRequest[]>();
  let withMemory: string;

  beforeAll(async () => {
    for (const enabled of [true, false]) {
      // Nothing else is to make room.
      const advanced = { softThreshold: 1_700_000, hardThreshold: 1_800_000, truncationThreshold: 1_900_000 };
      const id = await started({ memory: { enabled }, context: { maxTokens: 2_000_000, advanced } });
      if (enabled) withMemory = id;
      stage.play(id, ...Array.from({ length: 20 }, (_, i) => callTools(...iteration(i + 1))), text('Read all.'), text('Yes.'));
      expect(await world.client.send(id, say(id, 'read everything'))).toMatchObject({ text: 'Read all.', toolCalls: 80 });
      await world.client.send(id, say(id, 'sure?'));
      runs.set(enabled, stage.requests(id).slice(0, 22));
    }
  });

  test('after the 20th the prompt carries less than 50 KB, at least 99 % less than without', () => {
    const [carried = 0, without = 0] = [true, false].map((enabled) => bytesOf(runs.get(enabled)?.[21]));
    expect(without).toBeGreaterThan(20 * (SEARCHED + 3 * FETCHED));
    // All of the request: what the agent is and which tools it has, too.
    expect(carried).toBeLessThan(50 * 1024);
    // The conversation, as the seed counts.
    const [said = 0, whole = 1] = [true, false].map((enabled) => Buffer.byteLength(JSON.stringify(runs.get(enabled)?.[21]?.messages)));
    expect(1 - said / whole).toBeGreaterThanOrEqual(0.99);
    // Every call shows what is new whole, and nothing else: the prompt does not grow with what was read before.
    const shown = runs.get(true)?.slice(1, 21).map(bytesOf) ?? [];
    for (const bytes of shown) expect(bytes).toBeLessThan(carried + 1.1 * (SEARCHED + 3 * FETCHED));
  });

  test('what one call has marked for the cache the next one sends again, byte for byte, and nothing that is shown once is in it', () => {
    const requests = runs.get(true) ?? [];
    /** The calls after which the oldest citations were shortened, many at once. */
    const shortened: number[] = [];
    for (const [k, request] of requests.entries()) {
      const { blocks, marked } = cachedPrefix(request);
      const next = requests[k + 1];
      const again = next && cachedPrefix(next).blocks.slice(0, marked);
      const differing = again?.filter((block, i) => block !== blocks[i]) ?? [];
      if (differing.length > 0) shortened.push(k);
      if (differing.length > 0) expect(differing.length).toBeGreaterThanOrEqual(6);
      for (const block of blocks.slice(0, marked)) expect(block).not.toContain('Action results:\\n');
      // What follows the mark is new: the results of one round.
      expect(blocks.length - marked).toBeLessThanOrEqual(5);
    }
    expect(shortened.length).toBeLessThanOrEqual(7);
    for (const [i, k] of shortened.slice(1).entries()) expect(k - (shortened[i] ?? 0)).toBeGreaterThanOrEqual(2);
  });

  test('no older turns became memory for it, and the count of the context is of what is cited', async () => {
    const { context } = await world.client.status(withMemory);
    expect(context.compactions).toBe(0);
    expect(context.tokens).toBeLessThan(15_000);
  });

  test('every byte can be had again, in parts', async () => {
    const requests = runs.get(true) ?? [];
    const memoryId = idIn(resultTexts(requests[5])[2]);
    let offset = 0;
    let read = '';
    for (let parts = 0; parts < 5 && offset >= 0; parts += 1) {
      const at = offset;
      stage.play(withMemory, callTool('retrieve_from_memory', { id: memoryId, offset: at }), text('Go on.'));
      await world.client.send(withMemory, say(withMemory, 'go on'));
      const answer = resultTexts(stage.requests(withMemory).at(-1)).join('');
      const [, part = '', note = ''] =
        /^Action results:\n([\s\S]*?)\n(\[characters [^\]]*\])\n\n\(Stored/.exec(answer) ??
        /^([\s\S]*)\n(\[characters [^\]]*\])$/.exec(answer) ??
        [];
      read += part;
      offset = Number(/offset (\d+)/.exec(note)?.[1] ?? -1);
    }
    expect(read === page(51)).toBe(true);
  });
});

test('a fork has its origin’s items up to its turn, and each goes on with its own', async () => {
  const id = await started();
  const stores = (content: string) => callTool('store_in_memory', { content });
  stage.play(id, callTool('fetch_page', fetch(5).input), stores('of turn one'), text('One.'), stores('of turn two'), text('Two.'));
  await world.client.send(id, say(id, 'first'));
  await world.client.send(id, say(id, 'second'));
  const { id: fork } = await world.client.fork(id, { at: 'turn_0001' });
  const cited = idIn(allResults(stage.requests(id).at(-1))[0]);
  // The stage knows both by what was said first.
  stage.play(id, stores('of the fork'), callTool('retrieve_from_memory', { id: cited }), callTool('query_memory', {}), text('Three.'));
  expect(await world.client.send(fork, 'third')).toMatchObject({ text: 'Three.' });
  const [read, listed] = stage
    .requests(id)
    .slice(-2)
    .map((request) => resultTexts(request)[0] ?? '');
  expect(read).toContain('All about plum 5, by the harbour.');
  const sources = (found: string | undefined) => (JSON.parse(found ?? '[]') as { id: string }[]).map(({ id: each }) => each);
  expect(sources(listed)).toHaveLength(3);
  expect(sources(listed)).toContain(cited);
  stage.play(id, callTool('query_memory', {}), text('Four.'));
  await world.client.send(id, say(id, 'go on'));
  expect(sources(resultTexts(stage.requests(id).at(-1))[0])).toHaveLength(3);
  expect((await world.client.items(fork)).items).toHaveLength(3);
});

test('own code has a conversation’s memory as its tools do: what the document shows runs, and the agent finds it', async () => {
  const [id, other] = [await started(), world.id()];
  // Memories are shared within one scope.
  await world.client.start(other, { agent: id });
  stage.play(id, text('Hello.'));
  await world.client.send(id, say(id, 'hello'));
  const document = readFileSync(join(__dirname, '../../docs/explanation/memory-channel.md'), 'utf8');
  const sample = fencedBlocks(document).find(({ text: code }) => code.includes('client.openMemory('))?.text ?? '';
  const code = sample.replace('my-plan', id).replace('my-other-plan', other);
  const run = new Function('client', `return (async () => { ${code}; return { id, found, item }; })()`) as (client: unknown) => Promise<{
    readonly id: string;
    readonly found: MemoryItemHead;
    readonly item: MemoryItem;
  }>;
  const { id: itemId, found, item } = await run(world.client);
  expect(found).toMatchObject({ id: itemId, type: 'custom', metadata: { source: 'harbour', tags: ['hours'] } });
  expect(item.content).toMatch(/^The harbour/);
  expect(await (await world.client.openMemory(id)).query()).toEqual([]);
  stage.play(other, callTool('query_memory', { tags: 'hours' }), callTool('shelve', {}), text('At six.'));
  expect(await world.client.send(other, say(other, 'when does it open?'))).toMatchObject({ text: 'At six.' });
  const [listed, shelved] = allResults(stage.requests(other).at(-1));
  expect(JSON.parse(listed ?? '[]')).toMatchObject([{ id: itemId, source: 'harbour' }]);
  // What was cleared does not come back where it was cleared.
  expect(shelved).toBe('1, 0, 0');
  expect(await (await world.client.openMemory(other, { session: 2 })).query()).toEqual([]);
});

test('a tree of conversations that share has one memory, results of tools included; who has a snapshot sees what was there', async () => {
  const [id, child, grandchild, apart] = [await started(), world.id(), world.id(), world.id()];
  await world.writeAgent('apart', { memory: { shareWithSubAgents: 'snapshot' } });
  const task = (key: string, words: string, agent?: string) => callTool('delegate', { task: say(key, words), ...(agent && { agent }) });
  stage.play(
    id,
    callTool('store_in_memory', { content: 'of the root' }),
    task(child, 'fetch'),
    callTool('query_memory', {}),
    (request) =>
      callTools(...sourcesOf(request).map((each) => ({ name: 'retrieve_from_memory', input: { id: each, transform: 'first_n', n: 80 } }))),
    text('Done.'),
  );
  stage.play(child, callTool('fetch_page', fetch(1).input), task(grandchild, 'fetch more'), text('Both fetched.'));
  stage.play(grandchild, callTool('query_memory', {}), callTool('fetch_page', fetch(2).input), text('Fetched.'));
  expect(await world.client.send(id, say(id, 'go'))).toMatchObject({ text: 'Done.' });
  expect(sourcesOf(stage.requests(grandchild)[1])).toHaveLength(2);
  expect(sourcesOf(stage.requests(id)[3])).toHaveLength(3);
  expect(resultTexts(stage.requests(id)[4]).join('\n')).toMatch(/plum 2[^]*plum 1|plum 1[^]*plum 2/);

  const other = await started({ memory: { shareWithSubAgents: 'snapshot' } });
  stage.play(other, callTool('store_in_memory', { content: 'before' }), task(apart, 'store'), callTool('query_memory', {}), text('Done.'));
  stage.play(apart, callTool('store_in_memory', { content: 'of its own' }), callTool('query_memory', {}), text('Stored.'));
  await world.client.send(other, say(other, 'go'));
  expect(sourcesOf(stage.requests(apart)[2])).toHaveLength(2);
  expect(sourcesOf(stage.requests(other)[3])).toHaveLength(1);
});

test('a snapshot has what the parent saw on every level: by snapshots further up, and in a memory that the parent shares', async () => {
  await world.writeAgent('apart', { memory: { shareWithSubAgents: 'snapshot' } });
  const task = (key: string, words: string, agent?: string) => callTool('delegate', { task: say(key, words), ...(agent && { agent }) });
  const keep = (content: string) => callTool('store_in_memory', { content });
  const id = await started({ memory: { shareWithSubAgents: 'snapshot' }, delegation: { maxDepth: 3, maxChildren: 2 } });
  const [child, grandchild, last] = [world.id(), world.id(), world.id()];
  stage.play(id, keep('of the root'), task(child, 'go on'), callTool('query_memory', {}), text('Done.'));
  stage.play(child, keep('of the child'), task(grandchild, 'go on'), callTool('query_memory', {}), text('Done.'));
  stage.play(grandchild, keep('of the grandchild'), task(last, 'look'), text('Done.'));
  stage.play(last, callTool('query_memory', {}), text('Looked.'));
  expect(await world.client.send(id, say(id, 'go'))).toMatchObject({ text: 'Done.' });
  expect(sourcesOf(stage.requests(last)[1])).toHaveLength(3);
  expect(sourcesOf(stage.requests(child)[3])).toHaveLength(2);
  expect(sourcesOf(stage.requests(id)[3])).toHaveLength(1);

  const root = await started({ delegation: { agents: ['apart'] } });
  const [sharing, snapshot] = [world.id(), world.id()];
  stage.play(root, keep('of the root'), task(sharing, 'go on', 'apart'), callTool('query_memory', {}), text('Done.'));
  stage.play(sharing, keep('of the child'), callTool('fetch_page', fetch(1).input), task(snapshot, 'look'), text('Done.'));
  stage.play(snapshot, keep('its own'), callTool('query_memory', {}), text('Looked.'));
  await world.client.send(root, say(root, 'go'));
  expect(sourcesOf(stage.requests(snapshot)[2])).toHaveLength(4);
  expect(sourcesOf(stage.requests(root)[3])).toHaveLength(3);
});

/** Ids in what `query_memory` has answered. */
function sourcesOf(request: ApiRequest | undefined): string[] {
  return (JSON.parse(resultTexts(request).at(-1) ?? '[]') as { id: string }[]).map(({ id }) => id);
}

test('with memory.enabled: false nothing is stored or cited, and there are no memory tools', async () => {
  const id = await started({ memory: { enabled: false } });
  stage.play(id, callTools(fetch(1)), text('Read.'), callTool('retrieve_from_memory', { id: 'mem_1' }), text('No.'));
  await world.client.send(id, say(id, 'read it'));
  await world.client.send(id, say(id, 'again?'));
  const requests = stage.requests(id);
  expect(requests[0]?.tools?.map(({ name }) => name).filter((name) => MEMORY_TOOLS.includes(name))).toEqual([]);
  expect(allResults(requests[2])).toEqual([page(1)]);
  expect(resultTexts(requests[3])).toEqual([expect.stringMatching(/There is no tool "retrieve_from_memory"/)]);
  expect((await world.store.items.list(await world.client.key(id))).items).toEqual([]);
});

test('a new session sees nothing of the old one’s memory', async () => {
  const id = await started();
  stage.play(id, callTools(fetch(3)), text('Read.'));
  await world.client.send(id, say(id, 'read it'));
  const memoryId = idIn(resultTexts(stage.requests(id)[1])[0]);
  await world.client.reset(id);
  const before = stage.requests(id).length;
  stage.play(id, callTools({ name: 'query_memory' }, { name: 'retrieve_from_memory', input: { id: memoryId } }), text('Nothing.'));
  await world.client.send(id, say(id, 'what do you have?'));
  expect(resultTexts(stage.requests(id)[before + 1])).toEqual(['[]', `Memory item not found: ${memoryId}`]);
});

test('what is over a quarter of the budget is cited at once with both ends, and the rest can be read', async () => {
  const id = await started({ maxTokens: 1_000, context: { maxTokens: 20_000, safetyMargin: 1_000 } });
  stage.play(
    id,
    callTool('letters', { count: 40_000, letter: 'q' }),
    (request) => callTool('retrieve_from_memory', { id: idIn(allResults(request)[0]), transform: 'first_n', n: 9_000, offset: 10_000 }),
    text('Done.'),
  );
  expect(await world.client.send(id, say(id, 'go'))).toMatchObject({ text: 'Done.' });
  const [, first, second] = stage.requests(id);
  expect(resultTexts(first)[0]).toMatch(
    /^Action results \(compacted\):\nq{2000}\n\[36000 of 40000 characters are left out here.*\]\nq{2000}\n\n\(Full/,
  );
  expect(resultTexts(second)[0]).toContain('q'.repeat(9_000));
});

test('results that leave by themselves bring on no compaction', async () => {
  const id = await started({ maxTokens: 1_000, context: { maxTokens: 34_000, safetyMargin: 1_000 } });
  for (let n = 1; n <= 9; n += 1) {
    stage.play(id, callTool('letters', { count: 28_000, letter: 'z' }), text(`Read ${n}.`));
    expect(await world.client.send(id, say(id, `go ${n}`))).toMatchObject({ text: `Read ${n}.` });
  }
  const { context } = await world.client.status(id);
  expect(context.compactions).toBe(0);
  expect(context.tokens).toBeLessThan(6_000);
  expect(bytesOf(stage.requests(id).at(-1))).toBeLessThan(51_000);
});

test('a model that knows the goal makes what stands for a result of which no plugin says anything, once; where it fails its ends stand', async () => {
  const id = await started({ memory: { compactWithModel: true } });
  compactor = () => '```json\n{"summary": "Plums, by the harbour."}\n```';
  stage.play(id, callTools(fetch(2), search(2)), text('Read.'), text('Yes.'), callTools(fetch(3)), text('Found.'), text('So.'));
  await world.client.send(id, say(id, 'find the plum thief'));
  await world.client.send(id, say(id, 'sure?'));
  compactor = () => '';
  await world.client.send(id, say(id, 'search then'));
  await world.client.send(id, say(id, 'and?'));
  expect(asides).toHaveLength(2);
  expect(asides[0]).toContain('You are compacting an action result for an agent working on: ');
  // Of the turn that the result served, not of the one that it is made in.
  expect(asides[0]).toContain('find the plum thief');
  expect(asides[0]).not.toContain('sure?');
  expect(asides[1]).toContain('search then');
  expect(asides[0]).toContain('Action: fetch_page\\nResult: # Page 2');
  expect(asides[0]).toContain('Extract ONLY information relevant to the goal.');
  const last = allResults(stage.requests(id).at(-1));
  expect(last[0]).toMatch(
    /^Action results \(compacted\):\n\{\n {2}"summary": "Plums, by the harbour\.",\n {2}"memoryId": "mem_\w+"\n\}\n\n\(Full result in memory: mem_/,
  );
  expect(last[1]).toMatch(/^Action results \(compacted\):\n\{\n {2}"searched": \{\n {4}"query": "plums/);
  expect(last[2]).toMatch(/^Action results \(compacted\):\n\{\n {2}"actionName": "fetch_page",\n {2}"head": "# Page 3/);
});

test('what citations take counts: in the turn that made them, in the conversation, in its budget, and in the store by call', async () => {
  const id = await started({ memory: { compactWithModel: true } });
  compactor = () => '{"summary": "Plums.", "keyFacts": []}';
  stage.play(id, callTools(fetch(2), fetch(3)), text('Read.'), text('Yes.'));
  await world.client.send(id, say(id, 'find the plum thief'));
  const before = (await world.client.status(id)).usage;
  const turn = await world.client.send(id, say(id, 'sure?'));
  const after = (await world.client.status(id)).usage;
  const key = await world.client.key(id);
  const spent: Spent[] = [];
  for await (const one of world.store.spendings.all(key)) if (one.conversation === id) spent.push(one);
  const citations = spent.filter(({ kind }) => kind === 'citation');
  expect(citations.map((one) => one.id.replace(/mem_\w+/, 'mem')).sort()).toEqual(['turn_0002/m1/mem', 'turn_0002/m1/mem']);
  expect(sumSpending('all', spent).usage).toEqual(after);
  const { usage } = sumSpending(
    'turn',
    spent.filter((one) => one.id.startsWith('turn_0002')),
  );
  expect(usage.inputTokens).toBeGreaterThan(sumSpending('citations', citations).usage.inputTokens);
  expect(turn.usage).toMatchObject({ inputTokens: usage.inputTokens, outputTokens: usage.outputTokens });
  expect(after.inputTokens - before.inputTokens).toBe(usage.inputTokens);
  await world.client.raiseBudget(id, { maxTokens: after.inputTokens + after.outputTokens });
  expect(await world.client.send(id, say(id, 'more'))).toMatchObject({ stopReason: 'budget' });
});

test('a store that has lost everything has the items again, as far as history has their texts', async () => {
  const id = await started({ memory: { inlineLimit: 1_000 } });
  stage.play(
    id,
    callTools({ name: 'letters', input: { count: 2_000, letter: 'h' } }, fetch(4), {
      name: 'store_in_memory',
      input: { content: 'kept by hand' },
    }),
    text('Done.'),
  );
  await world.client.send(id, say(id, 'go'));
  const ids = resultTexts(stage.requests(id)[1]).map(idIn);
  await rm(join(world.dir, 'memory', 'agents', id), { recursive: true });
  const before = stage.requests(id).length;
  stage.play(id, text('Here.'), callTools(...ids.map((each) => ({ name: 'retrieve_from_memory', input: { id: each } }))), text('Read.'));
  await world.client.send(id, say(id, 'still there?'));
  expect(allResults(stage.requests(id)[before])[1]).toMatch(
    /^Action results \(compacted\):\n\{\n {2}"actionName": "fetch_page",\n {2}"head": "# Page 4/,
  );
  await world.client.send(id, say(id, 'read'));
  const [inline, byReference, stored] = resultTexts(stage.requests(id)[before + 2]);
  expect(inline).toContain('h'.repeat(2_000));
  expect(byReference).toBe(`the ${FETCHED} bytes of ${ids[1]} are no longer in the store`);
  expect(stored).toBe('kept by hand');
});

test('of two hundred long results in one answer all come, and their round takes less than 256 KiB of history', async () => {
  const id = await started({ context: { maxTokens: 2_000_000 } });
  const many = Array.from({ length: 200 }, (_, n) => ({
    name: 'letters',
    input: { count: 3_900 + (n % 2) * 2_000, letter: String.fromCharCode(97 + (n % 26)) },
  }));
  stage.play(id, callTools(...many), text('Done.'));
  expect(await world.client.send(id, say(id, 'go'))).toMatchObject({ text: 'Done.', toolCalls: 200 });
  const results = resultTexts(stage.requests(id)[1]);
  expect(results).toHaveLength(200);
  for (const [n, { input }] of many.entries()) expect(results[n]).toContain(input.letter.repeat(input.count));
  const { events } = await world.temporal.workflow.getHandle(id).fetchHistory();
  const inline = (events ?? [])
    .flatMap((event) => event.activityTaskCompletedEventAttributes?.result?.payloads ?? [])
    .flatMap(({ data }) => {
      const value = JSON.parse(Buffer.from(data ?? []).toString() || 'null') as { callId?: string; text?: unknown; item?: unknown } | null;
      return value?.callId === undefined ? [] : [Buffer.byteLength(JSON.stringify([value.text, value.item]))];
    });
  expect(inline).toHaveLength(200);
  expect(inline.reduce((sum, bytes) => sum + bytes, 0)).toBeLessThan(256 * 1024);
  expect((await world.store.items.list(await world.client.key(id))).items).toHaveLength(100);
});

testReplays(() => world);
