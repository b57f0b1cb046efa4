/**
 * A worker dies at every point of a model step that carries two messages, the fence of a call that did not stop, and three quick tools.
 * Each point is a conversation of its own, which stands still there until all of them do; then their worker is killed.
 */
import type { ApiRequest } from '../support/provider-apis/api-request.js';
import { latestResults, resultText, saidIn } from '../support/echo-model.js';
import { LONG, sceneTest } from '../support/scene.js';
import { stepsOf } from '../support/steps.js';
import {
  AGENT,
  CALLS,
  createModel,
  FIRST,
  loadsOf,
  MESSAGE_SLOT,
  OUTPUT_TOKENS,
  PRELOAD,
  RESULT_SLOT,
  runsOf,
  SECOND,
  tell,
  upToThePoints,
  type At,
} from './at-points.js';

interface Point {
  readonly name: string;
  readonly at?: At;
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
      await sent.worker.kill();
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
    await sent.worker.kill();
  },
);

/** Results anywhere in the request, oldest first. */
function latestOrEarlierResults({ messages }: ApiRequest): string[] {
  return messages.flatMap((message) => latestResults({ messages: [message] } as unknown as ApiRequest).map(resultText));
}
