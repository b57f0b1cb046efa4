/**
 * Conversations in a turn, waiting for a person, and idle, while the current build of the workers changes there, back and there again, and
 * people talk all the while: nothing is lost or doubled, no workflow task fails, and what waits for a person waits unchanged. The same
 * without builds, where `patched` and the pinned rules keep histories and code together.
 */
import { z } from 'zod';
import { checkRuns, createFetch, listOpenRuns, openQuery, type CheckedRun } from '../../src/client/upgrade-check.js';
import { createReplays } from '../../src/heal/replay-here.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { buildsOf, createRollout, twoBuilds, type Builds } from '../support/builds.js';
import { answerTo, latestResults, saidIn } from '../support/echo-model.js';
import { callTool, gate, text, type Reply } from '../support/provider-apis/reply.js';
import type { ApiRequest } from '../support/provider-apis/api-request.js';
import { workflowTaskFailures } from '../support/run-chain.js';
import { converterOf } from '../support/temporal-worker.js';
import { waitFor } from '../support/wait-for.js';
import { figure, LONG } from '../support/scene.js';
import { startWorld, type World } from '../support/world.js';

const SIZES = LONG ? { inTurn: 50, parked: 50, idle: 100 } : { inTurn: 8, parked: 8, idle: 16 };
const TALKERS = 4;
/** Of all idle conversations, before the first change. */
const CALM_ROUNDS = 6;
/** A model's stream stands still for as long as the test wants it to. */
const IDLE_MS = 600_000;

const paid: string[] = [];
const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  input: z.object({ to: z.string() }),
  policy: { repeatable: false, approval: 'ask' },
  run: ({ to }) => {
    paid.push(to);
    return `Paid ${to}.`;
  },
});

/** `hold` waits for the test, `pay NAME` for a person; all else is answered at once. */
function createModel() {
  const held = gate({ events: 1 });
  const calls = new Map<string, number>();
  const answer = (request: ApiRequest): Reply => {
    const said = saidIn(request).at(-1) ?? '';
    const [, word, of = ''] = /(hold|pay) (\S+)$/.exec(said) ?? [];
    const isAfterTool = latestResults(request).length > 0;
    const key = `${said}${isAfterTool ? ' paid' : ''}`;
    calls.set(key, (calls.get(key) ?? 0) + 1);
    if (word === 'pay' && !isAfterTool) return callTool('pay', { to: of });
    return word === 'hold' ? { ...text(answerTo(said)), holdAfter: held } : text(answerTo(said));
  };
  return { answer, release: held.release, calls };
}

let builds: Builds;
beforeAll(async () => {
  builds = await twoBuilds();
});

function percentiles(times: readonly number[]): string {
  const sorted = [...times].sort((a, b) => a - b);
  return [0.5, 0.99].map((part) => (sorted[Math.floor(sorted.length * part)] ?? NaN).toFixed(0)).join(' / ');
}

interface Played {
  readonly all: readonly string[];
  /** What was said in each conversation, in order. */
  readonly said: ReadonlyMap<string, string[]>;
}

/** The crowd is there before the first change, and lives through all of them. */
async function play(
  world: World,
  model: ReturnType<typeof createModel>,
  changes: readonly (() => Promise<unknown>)[],
  unpark: () => Promise<unknown>,
) {
  const { client } = world;
  const ids = (count: number): string[] => Array.from({ length: count }, () => world.id());
  const [inTurn, parked, idle] = [ids(SIZES.inTurn), ids(SIZES.parked), ids(SIZES.idle)];
  const all = [...inTurn, ...parked, ...idle];
  const said = new Map<string, string[]>(all.map((id) => [id, []]));
  const send = (id: string, words: string) => {
    said.get(id)?.push(words);
    return client.send(id, words);
  };
  await Promise.all(all.map((id) => client.start(id)));
  const ended = [...inTurn.map((id, n) => send(id, `${id} hold h${n}`)), ...parked.map((id, n) => send(id, `${id} pay p${n}`))];
  await Promise.all(idle.map((id) => send(id, `${id} first`)));
  const approvals = async () => Promise.all(parked.map((id) => client.approvals(id)));
  const asked = await waitFor(approvals, (lists) => lists.every((list) => list.length === 1));

  // A few people, each with some of the idle conversations, until the last change is done.
  const over = { isIt: false };
  const turns: { calm: number[]; changing: number[] } = { calm: [], changing: [] };
  let phase: keyof typeof turns = 'calm';
  const talk = async (mine: readonly string[]): Promise<void> => {
    for (let n = 1; !over.isIt; n++) {
      for (const id of mine) {
        const words = `${id} word ${n}`;
        const [began, into] = [performance.now(), turns[phase]];
        expect(await send(id, words)).toMatchObject({ text: answerTo(words), stopReason: 'end' });
        into.push(performance.now() - began);
      }
    }
  };
  const talking = Promise.all(Array.from({ length: TALKERS }, (_, at) => talk(idle.filter((_id, n) => n % TALKERS === at))));
  try {
    await Promise.race([
      waitFor(
        () => turns.calm.length,
        (count) => count >= CALM_ROUNDS * idle.length,
      ),
      talking,
    ]);
    phase = 'changing';
    for (const change of changes) await Promise.race([change(), talking]);
  } finally {
    over.isIt = true;
  }
  await talking;
  figure(
    `a turn, p50 / p99 ms: ${percentiles(turns.calm)} while it was calm, ${percentiles(turns.changing)} in ${changes.length} changes (${turns.calm.length} and ${turns.changing.length} turns)`,
  );

  expect(await approvals()).toEqual(asked);
  // Some are decided where they were asked, the others after they have moved.
  const decide = async (some: readonly string[]) => {
    for (const id of some) {
      const [approval] = asked[parked.indexOf(id)] ?? [];
      await client.decide(id, { callId: approval?.callId ?? '', decision: 'approve', hash: approval?.hash });
    }
  };
  await decide(parked.filter((_id, n) => n % 2 === 0));
  await unpark();
  expect((await approvals()).filter((_list, n) => n % 2 === 1)).toEqual(asked.filter((_list, n) => n % 2 === 1));
  await decide(parked.filter((_id, n) => n % 2 === 1));
  model.release();
  const results = await Promise.all(ended);
  expect(results.map(({ stopReason, text: answer }) => [stopReason, answer])).toEqual(
    [...inTurn, ...parked].map((id) => ['end', answerTo(said.get(id)?.[0] ?? '')]),
  );
  return { all, inTurn, parked, idle, said };
}

/** Every message once, in its order, with its answer; every model call and every payment once. */
async function expectNothingLostOrDoubled(
  world: World,
  model: ReturnType<typeof createModel>,
  { all, said }: Played,
  isCut = false,
): Promise<void> {
  for (const id of all) {
    const history = await world.client.history(id);
    const texts = history.flatMap(({ message }) =>
      message.role === 'user'
        ? [message.text]
        : message.role === 'assistant'
          ? [message.blocks.map((block) => (block.kind === 'text' ? block.text : '')).join('')]
          : [],
    );
    const words = said.get(id) ?? [];
    expect(texts.filter((one) => one !== '')).toEqual(words.flatMap((one) => [one, answerTo(one)]));
  }
  // A worker that is stopped within a model call leaves it to another.
  expect([...model.calls].filter(([words, count]) => count !== 1 && !(isCut && / hold /.test(words)))).toEqual([]);
  expect([...paid].sort()).toEqual(Array.from({ length: SIZES.parked }, (_, n) => `p${n}`).sort());
  expect(world.api.problems).toEqual([]);
}

async function checkAll(world: World, code: { readonly code: string }, isStrict: boolean): Promise<CheckedRun[]> {
  const runs = [];
  for await (const run of listOpenRuns(world.temporal, openQuery(world.taskQueue))) runs.push(run);
  const checked: CheckedRun[] = [];
  await checkRuns(runs, {
    fetch: createFetch(world.temporal, 'default'),
    replay: createReplays(async () => ({ workflowBundle: code, dataConverter: converterOf(undefined) }), { restMs: 1_000 }),
    ...{ isStrict, checked: (run) => void checked.push(run), signal: new AbortController().signal },
  });
  return checked;
}

const outcomes = (runs: readonly CheckedRun[]) => [...new Set(runs.map(({ outcome }) => outcome))].sort();

test('with builds: v1, v2, v1, v2', async () => {
  paid.length = 0;
  const model = createModel();
  const world = await startWorld({ engine: 'temporal', answer: model.answer, tools: [pay], worker: false, idleMs: IDLE_MS });
  const rollout = createRollout(world);
  const { deploymentName } = rollout.build('');
  const ends = [
    await world.startWorker({ workflows: builds.v1, build: rollout.build('v1') }),
    await world.startWorker({ workflows: builds.v2, build: rollout.build('v2') }),
  ];
  try {
    await rollout.makeCurrent('v1');
    const to = (build: string) => async () => {
      await rollout.makeCurrent(build);
      // Those that are spoken to move; the turns that have begun do not.
      await waitFor(rollout.conversations, (on) => on['v2'] === (build === 'v2' ? SIZES.idle : 0));
    };
    const unpark = async () => {
      await rollout.deployments.wake(deploymentName, ['v2'], { parked: true });
      await waitFor(rollout.conversations, (on) => on['v1'] === SIZES.inTurn);
    };
    const played = await play(world, model, [to('v2'), to('v1'), to('v2')], unpark);
    await waitFor(rollout.conversations, (on) => on['v1'] === 0);
    await expectNothingLostOrDoubled(world, model, played);
    // A run is one build's, and a turn too, but where a parked one was told to move.
    for (const id of played.idle)
      expect((await buildsOf(world, id)).filter((build, n, list) => build !== list[n - 1]).slice(0, 4)).toEqual(['v1', 'v2', 'v1', 'v2']);
    for (const id of played.inTurn) expect(await buildsOf(world, id)).toEqual(['v1', 'v2']);
    for (const id of played.all) expect(await workflowTaskFailures(world, id)).toEqual([]);

    expect(outcomes(await checkAll(world, builds.v2, true))).toEqual(['replays']);
    const byOther = await checkAll(world, builds.v1, false);
    expect(outcomes(byOther)).toContain('stays');
    expect(outcomes(byOther)).not.toContain('breaks');
    const strict = (await checkAll(world, builds.v1, true)).find(({ id }) => id === played.idle[0]);
    expect(strict).toMatchObject({ outcome: 'breaks', build: 'v2', why: expect.stringMatching(/[Nn]ondeterminism/) });
  } finally {
    for (const end of ends) await end();
    await world.close();
  }
}, 600_000);

test('without builds: workers of one code after the other, and both at once, by pinned rules', async () => {
  paid.length = 0;
  const model = createModel();
  const world = await startWorld({
    engine: 'temporal',
    answer: model.answer,
    tools: [pay],
    worker: false,
    idleMs: IDLE_MS,
    agent: { limits: { handOver: { events: 60 } } },
  });
  let old: (() => Promise<void>) | undefined = await world.startWorker({ workflows: builds.v1 });
  let young: (() => Promise<void>) | undefined;
  let built: (() => Promise<void>) | undefined;
  try {
    const changes = [
      async () => (young = await world.startWorker({ workflows: builds.byRules })),
      async () => {
        await old?.();
        old = undefined;
      },
      // Another of the new code, and one less: a rolling restart.
      async () => {
        const next = await world.startWorker({ workflows: builds.byRules });
        await young?.();
        young = next;
      },
    ];
    const played = await play(world, model, changes, async () => undefined);
    // An old worker beside new ones fails tasks of runs with newer rules, which a new one then takes: nothing of it is in the conversation.
    expect(outcomes(await checkAll(world, builds.byRules, false))).toEqual(['replays']);
    await expectNothingLostOrDoubled(world, model, played, true);

    // The first build: what workers without one have begun goes on there, at its next step.
    const rollout = createRollout(world);
    built = await world.startWorker({ workflows: builds.byRules, build: rollout.build('b1') });
    await rollout.makeCurrent('b1');
    await young?.();
    young = undefined;
    const [first = '', second = ''] = played.idle;
    for (const id of [first, second]) expect(await world.client.send(id, `${id} on`)).toMatchObject({ text: answerTo(`${id} on`) });
    await waitFor(rollout.conversations, ({ b1 }) => b1 === 2);
  } finally {
    await old?.();
    await young?.();
    await built?.();
    await world.close();
  }
}, 600_000);
