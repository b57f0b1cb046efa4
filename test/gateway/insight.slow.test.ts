/** What the native API says of a conversation's past and present, and of all that run: on real turns, over HTTP. */
import { createGateway } from '../../src/gateway/app.js';
import { latestResults, saidIn } from '../support/echo-model.js';
import { callTool, text } from '../support/provider-apis/reply.js';
import { checkedApi, type CheckedApi } from '../support/api-description.js';
import { byName } from '../support/tenants.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

interface Bar {
  readonly lane: string;
  readonly label: string;
  readonly from: number;
  readonly to: number | null;
  readonly outcome: string;
  readonly attempt: number;
  readonly worker: string | null;
  readonly usage: { readonly inputTokens: number } | null;
  readonly event: number;
  readonly endEvent: number | null;
  readonly link: string | null;
  readonly callId: string | null;
}

let world: World;
let api: CheckedApi;
let id: string;
const findings = [{ what: 'Store', health: 'broken', found: 'cannot write', mend: 'free space' }] as const;

const get = async (path: string, token = '/operator') => api.ask(token, 'GET', path);
const post = async (path: string, body: object, token = '/operator') => api.ask(token, 'POST', path, { body });
const turn = (said: string) => post(`/v1/conversations/${id}/messages`, { text: said, start: {} });
const timelineOf = async (number: number) =>
  (await get(`/v1/conversations/${id}/turns/turn_000${number}/timeline`)).json as {
    readonly from: number;
    readonly to: number | null;
    readonly bars: readonly Bar[];
    readonly marks: readonly { readonly kind: string; readonly at: number }[];
    readonly usage: { readonly inputTokens: number; readonly costUsd: number | null };
    readonly workers: readonly string[];
    readonly complete: boolean;
  };

beforeAll(async () => {
  world = await startWorld({
    agent: {
      approvals: [{ tool: 'write_file', policy: 'ask' }],
      maxTokens: 500,
      tools: ['read_file', 'write_file'],
      memory: { enabled: false },
      context: { maxTokens: 6_000, safetyMargin: 500 },
    },
    answer: (request) => {
      const said = saidIn(request).at(-1) ?? '';
      const isNew = latestResults(request).length === 0;
      if (said === 'write it' && isNew) return callTool('write_file', { path: 'note.txt', content: 'hello' });
      return text(`You said: ${said.slice(0, 200)}`);
    },
  });
  id = world.id();
  const app = createGateway({
    client: world.client,
    authenticate: byName,
    agents: () => Promise.resolve(['default']),
    findings: () => Promise.resolve(findings),
    temporalLink: (workflow, run, event) => `http://temporal.test/${workflow}/${run}/${event}`,
    requestsPerMinute: 100_000,
  });
  api = await checkedApi(app, '/admin');
});
afterAll(() => world.close());

test('a turn as a timeline: model calls, the person that it waits for, the tool, with workers, tokens and links', async () => {
  expect((await turn('hello')).json).toMatchObject({ stopReason: 'end' });
  await post(`/v1/conversations/${id}/messages?mode=enqueue`, { text: 'write it' });
  const waiting = await waitFor(
    () => get(`/v1/conversations/${id}/approvals`),
    ({ json }) => (json as { approvals: object[] }).approvals.length > 0,
  );
  const [{ callId }] = (waiting.json as { approvals: [{ callId: string }] }).approvals;
  const open = await timelineOf(2);
  expect(open.to).toBeNull();
  expect(open.bars.find(({ lane }) => lane === 'person')).toMatchObject({ label: 'write_file', to: null, outcome: 'running', callId });
  await post(`/v1/conversations/${id}/decide`, { callId, decision: 'approve' });
  await get(`/v1/conversations/${id}/turns/turn_0002`);
  const done = await timelineOf(2);
  const lanes = done.bars.map(({ lane }) => lane);
  expect(lanes.filter((lane) => lane === 'model')).toHaveLength(2);
  expect(lanes).toEqual(expect.arrayContaining(['model', 'person', 'tool']));
  const [person, tool, model] = ['person', 'tool', 'model'].map((lane) => done.bars.find((bar) => bar.lane === lane)!);
  expect(person).toMatchObject({ outcome: 'ok' });
  expect(person!.to).toBeLessThanOrEqual(tool!.from + 1);
  expect(tool).toMatchObject({ label: 'write_file', outcome: 'ok', attempt: 1 });
  expect(model!.usage!.inputTokens).toBeGreaterThan(0);
  expect(model!.worker).toMatch(/^\d+@/);
  expect(model!.link).toMatch(new RegExp(`^http://temporal.test/${id}/[0-9a-f-]{36}/${model!.event}$`));
  expect(done.usage.inputTokens).toBeGreaterThanOrEqual(model!.usage!.inputTokens);
  expect(done.to).toBeGreaterThan(done.from);
  expect(done.marks.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['decided']));
  expect(done.complete).toBe(true);
  // What the other turn did is not in it.
  const first = await timelineOf(1);
  expect(first.bars.filter(({ lane }) => lane === 'model')).toHaveLength(1);
  expect(first.to).toBeLessThanOrEqual(done.from + 5);
  expect((await get(`/v1/conversations/${id}/turns/turn_0009/timeline`)).status).toBe(404);
});

test('its turns, page by page', async () => {
  const all = (await get(`/v1/conversations/${id}/turns`)).json as {
    turns: { turn: string; question: string; toolCalls: number }[];
    more: boolean;
  };
  expect(all.turns.map(({ turn: name, question, toolCalls }) => [name, question, toolCalls])).toEqual([
    ['turn_0001', 'hello', 0],
    ['turn_0002', 'write it', 1],
  ]);
  const page = (await get(`/v1/conversations/${id}/turns?limit=1`)).json as typeof all;
  expect([page.turns.map(({ turn: name }) => name), page.more]).toEqual([['turn_0002'], true]);
  const earlier = (await get(`/v1/conversations/${id}/turns?limit=1&before=turn_0002`)).json as typeof all;
  expect([earlier.turns.map(({ turn: name }) => name), earlier.more]).toEqual([['turn_0001'], false]);
});

test('the context chunk by chunk; a compaction before, after and undone; and why a turn is gone', async () => {
  for (const word of ['alpha', 'beta', 'gamma', 'delta', 'epsilon', 'zeta']) await turn(`${word} ${'word '.repeat(150)}`);
  const view = (await get(`/v1/conversations/${id}/context/chunks`)).json as {
    chunks: { id: string; kind: string; tokens: number; turn: string; words: string }[];
    thresholds: { soft: number; hard: number; truncation: number };
    turns: { whole: string[] };
  };
  expect(view.chunks[0]).toMatchObject({ id: 'system', kind: 'SYSTEM' });
  expect(view.thresholds.soft).toBeLessThan(view.thresholds.hard);
  const last = view.chunks.at(-1)!;
  const whole = (await get(`/v1/conversations/${id}/context/chunks/${last.id}`)).json as { text: string; characters: number; next: null };
  expect(whole.text).toContain('You said: zeta');
  expect([whole.characters, whole.next]).toEqual([whole.text.length, null]);
  expect((await get(`/v1/conversations/${id}/context/chunks/chunk_999999`)).status).toBe(404);

  const outcome = (await post(`/v1/conversations/${id}/compact`, {})).json as { kind: string };
  const changes = async () =>
    (await get(`/v1/conversations/${id}/context/changes`)).json as {
      changes: {
        number: number;
        kind: string;
        turns: string[];
        slots: number[];
        afterText: string | null;
        beforeText: string | null;
        undoneBy: number | null;
        tokens: { before: number; after: number };
      }[];
    };
  expect(outcome.kind).toBe('compacted');
  const compacted = (await changes()).changes.at(-1)!;
  expect(compacted).toMatchObject({ kind: 'compacted', undoneBy: null });
  expect(compacted.turns).toContain('turn_0001');
  expect(compacted.afterText!.length).toBeGreaterThan(20);
  expect(compacted.tokens.after).toBeLessThan(compacted.tokens.before);
  const slot = compacted.slots[0]!;
  expect((await get(`/v1/conversations/${id}/context/chunks/chunk_${slot}`)).status).toBe(200);
  expect((await get(`/v1/conversations/${id}/context/chunks/memory`)).json).toMatchObject({ kind: 'MEMORY', text: compacted.afterText });

  const why = (await get(`/v1/conversations/${id}/turns/turn_0001/why`)).json as {
    inPrompt: number;
    causes: { kind: string; episode: string }[];
  };
  expect(why).toMatchObject({ inPrompt: 0, hasEnded: false });
  expect(why.causes.at(-1)).toMatchObject({ kind: 'compacted' });
  expect((await get(`/v1/conversations/${id}/turns/turn_0099/why`)).status).toBe(404);

  await post(`/v1/conversations/${id}/compact/undo`, {});
  const after = (await changes()).changes;
  expect(after.at(-1)).toMatchObject({ kind: 'undone', slots: compacted.slots });
  expect(after.find(({ number }) => number === compacted.number)!.undoneBy).toBe(after.at(-1)!.number);
});

test('every event of its past, with the state before and after, running and ended; for operators alone', async () => {
  const page = (await get(`/v1/conversations/${id}/moments?limit=10`)).json as {
    last: number;
    moments: { position: number; event: string | null; words: string }[];
    turns: { turn: string; position: number }[];
  };
  expect(page.moments).toHaveLength(10);
  expect(page.moments[0]).toMatchObject({ position: 0, event: null });
  const begins = page.turns.find(({ turn: name }) => name === 'turn_0002')!.position;
  const moment = (await get(`/v1/conversations/${id}/moments/${begins}`)).json as {
    before: { status: { turn: number } };
    after: { status: { turn: number } };
    changes: { path: string; before: string | null; after: string | null }[];
  };
  expect([moment.before.status.turn, moment.after.status.turn]).toEqual([1, 2]);
  expect(moment.changes.map(({ path }) => path)).toContain('turn');
  expect((await get(`/v1/conversations/${id}/moments/${page.last + 1}`)).status).toBe(404);
  expect((await get(`/v1/conversations/${id}/moments`, '/user')).status).toBe(403);

  await post(`/v1/conversations/${id}/close`, { memory: false });
  await world.client.outcome(id);
  const ended = (await get(`/v1/conversations/${id}/moments?from=${page.last}`)).json as typeof page;
  expect(ended.last).toBeGreaterThan(page.last);
  expect((await timelineOf(2)).bars.length).toBeGreaterThan(3);
});

test('the queue is edited over HTTP', async () => {
  const other = world.id();
  await post('/v1/conversations', { id: other, mode: 'stepping' });
  for (const said of ['one', 'two', 'three']) await post(`/v1/conversations/${other}/messages?mode=enqueue`, { text: said });
  const { queue } = (await get(`/v1/conversations/${other}/queue`)).json as { queue: { id: string }[] };
  expect(queue).toHaveLength(3);
  const moved = (await post(`/v1/conversations/${other}/queue`, { op: 'move', id: queue[2]!.id, before: queue[0]!.id })).json as {
    queue: { id: string }[];
  };
  expect(moved.queue.map((one) => one.id)).toEqual([queue[2]!.id, queue[0]!.id, queue[1]!.id]);
  const dropped = (await post(`/v1/conversations/${other}/queue`, { op: 'drop', id: queue[0]!.id })).json as typeof moved;
  expect(dropped.queue).toHaveLength(2);
  expect((await post(`/v1/conversations/${other}/queue`, { op: 'move', id: 'x' })).status).toBe(400);
  expect((await post(`/v1/conversations/${other}/queue`, { op: 'clear' }, '/user')).status).toBe(403);
  await world.client.terminate(other);
});

test('conversations are found by agent, status, age and words; failures by kind; workers; findings', async () => {
  // The server has conversations of other files.
  const failing = world.id();
  const [broken, unknown] = [`broken-${failing}`, `unknown-${failing}`];
  await world.writeAgent(broken, { tools: ['no_such_tool'] });
  await post(`/v1/conversations/${failing}/messages`, { text: 'hello', start: { agent: broken, title: 'A Trip to Oslo' } });
  const found = async (query: string) =>
    (
      (
        await waitFor(
          () => get(`/v1/conversations?${query}`),
          ({ status }) => status === 200,
        )
      ).json as { conversations: { id: string }[] }
    ).conversations.map((one) => one.id);
  await waitFor(
    () => found(`text=${failing}`),
    (ids) => ids.length === 1,
  );
  expect(await found('text=trip%20TO')).toContain(failing);
  expect(await found(`agent=${broken}`)).toEqual([failing]);
  expect(await found(`agent=${unknown}`)).toEqual([]);
  expect(await found(`text=${failing}&before=2020-01-01T00:00:00Z`)).toEqual([]);
  expect(await found(`text=${id}&status=ended`)).toEqual([id]);
  const { failures } = (await get('/v1/failures')).json as { failures: { kind: string; message: string; conversations: string[] }[] };
  const own = failures.find(({ conversations }) => conversations.includes(failing))!;
  expect(own.message).toMatch(/no_such_tool/);
  const workers = (await get('/v1/workers')).json as {
    taskQueue: string;
    workers: { identity: string; version: string | null; takes: string[] }[];
  };
  expect(workers.taskQueue).toBe(world.taskQueue);
  expect(workers.workers[0]).toMatchObject({ takes: ['decisions', 'activities'] });
  expect(workers.workers[0]!.version).toMatch(/^perdura@/);
  expect((await get('/v1/findings')).json).toEqual({ findings });
  for (const path of ['/v1/workers', '/v1/failures', '/v1/findings'])
    expect([path, (await get(path, '/user')).status]).toEqual([path, 403]);
  const tree = (await get(`/v1/conversations/${failing}/tree`)).json as { conversations: { id: string }[] };
  expect(tree.conversations.map((one) => one.id)).toEqual([failing]);
});

test('MEMORY.md line by line, its versions and what each changed; facts that others replaced; HISTORY; and what would be forgotten', async () => {
  const scope = `s-${world.id()}`;
  const key = { namespace: 'default', scope };
  const source = { trust: 'user' as const, conversation: id, turn_ids: ['turn_0001'] };
  const write = async (number: number, from: string, lines: readonly string[], fresh: readonly string[]) => {
    await world.store.documents.writeMemory(key, {
      id: `w${number}`,
      ts: 1_700_000_000 + number,
      cause: 'consolidation',
      from,
      text: `${lines.join('\n')}\n`,
      lines: fresh.map((line) => ({ line, source })),
    });
    return (await world.store.documents.memory(key)).version;
  };
  const none = (await world.store.documents.memory(key)).version;
  const first = await write(1, none, ['- Likes tea.'], ['- Likes tea.']);
  const second = await write(2, first, ['- Likes tea.', '- Lives in Oslo.'], ['- Lives in Oslo.']);
  const blame = (await get(`/v1/memory/${scope}/blame`)).json as {
    version: string;
    lines: { line: string; source: object; change: { id: string } }[];
  };
  expect(blame.lines.map(({ line, change }) => [line, change.id])).toEqual([
    ['- Likes tea.', 'w1'],
    ['- Lives in Oslo.', 'w2'],
  ]);
  const log = (await get(`/v1/memory/${scope}/changes`)).json as { changes: { version: string; added: number; removed: number }[] };
  expect(log.changes.map(({ version, added, removed }) => [version, added, removed])).toEqual([
    [second, 1, 0],
    [first, 1, 0],
  ]);
  expect((await get(`/v1/memory/${scope}/diff?from=${first}&to=${second}`)).json).toMatchObject({
    lines: [
      { kind: 'kept', line: '- Likes tea.' },
      { kind: 'added', line: '- Lives in Oslo.' },
    ],
  });
  expect((await get(`/v1/memory/${scope}/diff?from=nothing`)).status).toBe(404);
  expect((await post(`/v1/memory/${scope}/forget/preview`, { text: 'Lives in Oslo.' })).json).toEqual({
    lines: ['- Lives in Oslo.'],
    facts: [],
    proposals: [],
    historyLines: 0,
  });
  expect((await get(`/v1/memory/${scope}/blame`)).json).toMatchObject({ version: second });
  expect((await get(`/v1/memory/${scope}/facts?all=true`)).json).toEqual({ facts: [] });
  expect((await get(`/v1/memory/${scope}/history?query=tea`)).json).toEqual({ entries: [], more: false });
  expect((await get(`/v1/memory/${scope}/blame`, '/user')).status).toBe(403);
});
