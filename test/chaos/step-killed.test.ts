/**
 * A worker dies at every point of a model step that carries two messages, the fence of a call that did not stop, and three quick tools.
 * Each point is a conversation of its own, which stands still there until all of them do; then their worker is killed.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TurnResult } from '../../src/conversation/protocol/contract.js';
import type { ApiRequest } from '../../src/testing/api-request.js';
import { callTools, gate, text, type Gate, type Reply } from '../../src/testing/reply.js';
import { latestResults, resultText, saidIn } from '../support/echo-model.js';
import { LONG, sceneTest, until, type Scene } from '../support/scene.js';
import { stepsOf } from '../support/steps.js';

/** Where the first turn's step stands, deaf to a stop. */
const HANGS = ['write', 'turn_0001/m1', 'after'] as const;
const FIRST = 'turn_0002/m1';
const SECOND = 'turn_0002/m2';
const CALLS = ['turn_0002/c1', 'turn_0002/c2', 'turn_0002/c3'];
/** Slots of the message that the turn begins with, and of the first result. */
const [MESSAGE_SLOT, RESULT_SLOT] = [3, 7];

interface Point {
  readonly name: string;
  readonly at?: readonly [method: 'write' | 'commit' | 'read', of: string | number, when: 'before' | 'after'];
  /** How often each of the two calls is made: what was not committed is asked again. */
  readonly calls: readonly [number, number];
  /** How often each tool runs. */
  readonly runs: readonly [number, number, number];
  readonly isLong?: boolean;
}

const ONCE = [1, 1, 1] as const;

const POINTS: readonly Point[] = [
  { name: 'never', calls: [1, 1], runs: ONCE },
  { name: 'before the step that fences writes', at: ['write', FIRST, 'before'], calls: [1, 1], runs: ONCE, isLong: true },
  { name: 'after the step that fences has written', at: ['write', FIRST, 'after'], calls: [1, 1], runs: ONCE },
  { name: 'before the request of that step', at: ['read', MESSAGE_SLOT, 'before'], calls: [1, 1], runs: ONCE, isLong: true },
  { name: 'before the commit of the call that asks for tools', at: ['commit', FIRST, 'before'], calls: [2, 1], runs: ONCE, isLong: true },
  { name: 'after the commit of the call that asks for tools', at: ['commit', FIRST, 'after'], calls: [1, 1], runs: ONCE },
  { name: 'before the write of the step that tools ride on', at: ['write', SECOND, 'before'], calls: [1, 1], runs: ONCE },
  { name: 'after the write of the step that tools ride on', at: ['write', SECOND, 'after'], calls: [1, 1], runs: ONCE },
  ...[0, 1, 2].flatMap((n): Point[] => [
    {
      name: `before the commit of tool ${n + 1}`,
      at: ['commit', CALLS[n] ?? '', 'before'],
      calls: [1, 1],
      runs: [n === 0 ? 2 : 1, n === 1 ? 2 : 1, n === 2 ? 2 : 1],
      isLong: n !== 1,
    },
    { name: `after the commit of tool ${n + 1}`, at: ['commit', CALLS[n] ?? '', 'after'], calls: [1, 1], runs: ONCE, isLong: n !== 0 },
  ]),
  { name: 'before the call', at: ['read', RESULT_SLOT, 'before'], calls: [1, 1], runs: ONCE },
  { name: 'during the call', calls: [1, 2], runs: ONCE },
  { name: 'before the commit of the answer', at: ['commit', SECOND, 'before'], calls: [1, 2], runs: ONCE },
  { name: 'after the commit of the answer, before Temporal hears of it', at: ['commit', SECOND, 'after'], calls: [1, 1], runs: ONCE },
];

const AGENT = {
  tools: ['jot', 'compact_context'],
  memory: { enabled: false },
  context: { thresholds: { soft: 30_000, hard: 80_000, truncation: 100_000 } },
};
const PRELOAD = join(__dirname, '..', 'support', 'frozen-steps.cjs');
const WITHIN_MS = 240_000;

for (const store of ['files', 'redis'] as const) {
  const points = POINTS.filter(({ isLong }) => LONG || !isLong);
  const model = createModel();
  sceneTest(
    `kill -9 at ${points.length - 1} points of a step with messages, a fence and quick tools: nothing is lost, done twice or paid twice (${store})`,
    { redis: store === 'redis', agent: AGENT, answer: model.answer },
    async (scene) => {
      const lives = points.map((point) => ({ ...point, id: scene.id() }));
      const held = new Set(lives.filter(({ name }) => name === 'during the call').map(({ id }) => id));
      model.holdSecond(held);
      const sent = await upToThePoints(
        scene,
        model,
        lives.map(({ id, at }) => ({ id, at })),
        { held },
      );
      const undisturbed = lives[0]?.id ?? '';
      await sent.get(undisturbed)?.[0];
      await sent.kill();
      await scene.startWorker({ preload: PRELOAD });
      for (const { id, name } of lives) {
        const answered = { turnId: 'turn_0002', text: 'All jotted.', stopReason: 'end', toolCalls: 3 };
        expect([name, await Promise.all(sent.get(id) ?? [])]).toMatchObject([name, [answered, answered, answered]]);
      }
      expect(await loadsOf(scene, undisturbed)).toEqual([
        { messages: ['wait', 'do'], fences: ['turn_0001/m1'], tools: [] },
        { messages: ['more', 'one'], fences: [expect.stringContaining('hint')], tools: CALLS },
      ]);
      const told = await tell(scene, undisturbed);
      expect(told.entries.length).toBe(1 + 1 + 1 + 2 + 3 + 1 + 1);
      const wrong: unknown[] = [];
      for (const { id, name, calls, runs } of lives) {
        const requests = model.requests(id);
        const found = {
          name,
          calls: [requests.first.length, requests.second.length],
          runs: CALLS.map((callId) => runsOf(scene, id, callId)),
        };
        if (JSON.stringify(found) !== JSON.stringify({ name, calls, runs })) wrong.push(found);
        expect([name, await tell(scene, id)]).toEqual([name, told]);
        for (const request of requests.second) {
          expect([name, latestResults(request).map(resultText)]).toEqual([name, ['jotted a', 'jotted b', 'jotted c']]);
          const said = saidIn(request).filter((words) => words.startsWith(id));
          expect([name, said]).toEqual([name, ['wait', 'do it', 'one more', 'and one'].map((words) => `${id} ${words}`)]);
        }
      }
      expect(wrong).toEqual([]);
      expect(scene.api.problems).toEqual([]);
    },
    WITHIN_MS,
  );
}

const late = createModel();
sceneTest(
  'what had committed and never reached history is found by the fence of an interrupt: kept, paid once, and told to the model',
  { agent: AGENT, answer: late.answer },
  async (scene) => {
    const [answer, tool, plain] = [scene.id(), scene.id(), scene.id()];
    const sent = await upToThePoints(scene, late, [
      { id: answer, at: ['commit', SECOND, 'after'] },
      { id: tool, at: ['commit', CALLS[0] ?? '', 'after'] },
      { id: plain },
    ]);
    await sent.get(plain)?.[0];
    const { usage } = await scene.client.status(plain);
    for (const id of [answer, tool]) await scene.client.interrupt(id);
    for (const id of [answer, tool]) expect(await sent.get(id)?.[0]).toMatchObject({ turnId: 'turn_0002', stopReason: 'interrupted' });
    for (const id of [answer, tool]) expect(await scene.client.send(id, `${id} and now?`)).toMatchObject({ turnId: 'turn_0003' });

    const steps = await stepsOf(scene, answer);
    const committed = steps.flatMap((step) =>
      step.name === 'model-step' || step.name === 'store-step' ? (step.output?.written.committed ?? []).map(({ effect }) => effect) : [],
    );
    expect(committed.sort()).toEqual([...CALLS, SECOND].sort());
    // Three calls, of which the second was only known by its fence; the third says the same as the second.
    const now = (await scene.client.status(answer)).usage;
    const [, second] = [late.requests(answer).first, late.requests(answer).second];
    expect(second).toHaveLength(2);
    expect(now.outputTokens).toBe(usage.outputTokens + OUTPUT_TOKENS);
    expect((await scene.client.status(tool)).usage.outputTokens).toBe(usage.outputTokens);
    for (const id of [answer, tool]) {
      const told = late.requests(id).second.at(-1);
      expect(told && latestOrEarlierResults(told)).toEqual(['jotted a', 'jotted b', 'jotted c']);
      expect(CALLS.map((callId) => runsOf(scene, id, callId))).toEqual([1, 1, 1]);
    }
    expect(scene.api.problems).toEqual([]);
    await sent.kill();
  },
  WITHIN_MS,
);

const OUTPUT_TOKENS = 7;

interface ScriptedModel {
  readonly answer: (request: ApiRequest) => Reply;
  readonly requests: (id: string) => { readonly first: readonly ApiRequest[]; readonly second: readonly ApiRequest[] };
  readonly gateOf: (id: string) => Gate;
  readonly holdSecond: (ids: ReadonlySet<string>) => void;
}

/** Asks for three tools, and says so when they are done. */
function createModel(): ScriptedModel {
  const gates = new Map<string, Gate>();
  const asked = new Map<string, { first: ApiRequest[]; second: ApiRequest[] }>();
  let held: ReadonlySet<string> = new Set();
  const gateOf = (id: string): Gate => {
    const known = gates.get(id) ?? gate();
    gates.set(id, known);
    return known;
  };
  const requests = (id: string): { first: ApiRequest[]; second: ApiRequest[] } => {
    const known = asked.get(id) ?? { first: [], second: [] };
    asked.set(id, known);
    return known;
  };
  return {
    gateOf,
    requests,
    holdSecond: (ids) => (held = ids),
    answer(request) {
      const said = saidIn(request);
      const [id = ''] = /^\S+/.exec(said[0] ?? '') ?? [];
      const { first, second } = requests(id);
      if (!JSON.stringify(request.messages).includes('tool_result')) {
        first.push(request);
        const calls = ['a', 'b', 'c'].map((item) => ({ name: 'jot', input: { item } }));
        return { ...callTools(...calls), holdAfter: gateOf(id), usage: { input_tokens: 40_000, output_tokens: 30 } };
      }
      second.push(request);
      const isHeld = held.has(id) && second.length === 1;
      return { ...text('All jotted.'), usage: { input_tokens: 41_000, output_tokens: OUTPUT_TOKENS }, ...(isHeld && { hold: gate() }) };
    },
  };
}

type Sent = Map<string, readonly Promise<TurnResult>[]> & { readonly kill: () => Promise<void> };

/** A first turn that hangs is interrupted and given up; then every conversation stands at its point, or has ended where it has none. */
async function upToThePoints(
  scene: Scene,
  model: ScriptedModel,
  lives: readonly { readonly id: string; readonly at?: Point['at'] }[],
  { held = new Set() }: { readonly held?: ReadonlySet<string> } = {},
): Promise<Sent> {
  const points = lives.map(({ id, at }) => [id, [HANGS, ...(at ? [at] : [])]]);
  const worker = await scene.startWorker({ preload: PRELOAD, env: { FREEZE_AT: JSON.stringify(Object.fromEntries(points)) } });
  const isFrozen = (id: string, at: readonly unknown[]): boolean => frozen(scene).includes([id, ...at].join(' '));
  const hanging = lives.map(({ id }) => scene.client.send(id, { id: 'wait', text: `${id} wait` }, { start: {} }));
  await until('all of them hang', () => lives.every(({ id }) => isFrozen(id, HANGS)));
  const sent = new Map<string, Promise<TurnResult>[]>();
  for (const { id } of lives) sent.set(id, [scene.client.send(id, { id: 'do', text: `${id} do it`, delivery: 'interrupt' })]);
  expect((await Promise.all(hanging)).map(({ stopReason }) => stopReason)).toEqual(lives.map(() => 'interrupted'));
  await until('all of them work on their second turn', () =>
    lives.every(({ id, at }) => (at && isFrozen(id, at)) || model.requests(id).first.length > 0),
  );
  for (const { id } of lives) {
    for (const [messageId, words] of [
      ['more', 'one more'],
      ['one', 'and one'],
    ] as const) {
      const steered = scene.client.send(id, { id: messageId, text: `${id} ${words}`, delivery: 'steer' });
      sent.get(id)?.push(steered);
      const queued = (sent.get(id)?.length ?? 0) - 1;
      await until(`${words} has come`, async () => (await scene.client.status(id)).queued === queued);
    }
  }
  for (const { id } of lives) model.gateOf(id).release();
  await until(
    'all of them stand still',
    () => lives.every(({ id, at }) => !at || isFrozen(id, at)) && [...held].every((id) => model.requests(id).second.length > 0),
  );
  return Object.assign(sent, { kill: () => worker.kill() });
}

/** What the model steps of the second turn carried. */
async function loadsOf(scene: Scene, id: string) {
  const steps = await stepsOf(scene, id);
  return steps.flatMap((step) => {
    if (step.name !== 'model-step' || step.input.turn !== 'turn_0002') return [];
    const { write, tools } = step.input;
    const messages = write.messages.map(({ messageId }) => messageId);
    return [{ messages, fences: write.settle.map(({ effect }) => effect), tools: tools.map(({ callId }) => callId) }];
  });
}

function frozen({ dir }: Scene): string[] {
  const file = join(dir, 'ledger.frozen');
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [];
}

function runsOf(scene: Scene, id: string, callId: string): number {
  const lines = scene.ledger() as unknown as readonly { readonly conversation: string; readonly callId: string }[];
  return lines.filter((line) => line.conversation === id && line.callId === callId).length;
}

/** Results anywhere in the request, oldest first. */
function latestOrEarlierResults({ messages }: ApiRequest): string[] {
  return messages.flatMap((message) => latestResults({ messages: [message] } as unknown as ApiRequest).map(resultText));
}

/** What the store and the status have of a conversation, without what differs between any two. */
async function tell({ client }: Scene, id: string) {
  const [history, { usage, turns, queued, phase }] = await Promise.all([client.history(id), client.status(id)]);
  const entries = JSON.parse(JSON.stringify(history.map(({ ts: _, ...entry }) => entry)).replaceAll(id, 'ID')) as unknown[];
  return { entries, usage, turns, queued, phase };
}
