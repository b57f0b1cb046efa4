/** With a key, a worker takes what a run was handed only from a run that a worker with the key has worked. */
import type { Secrets } from '../../src/config/settings.js';
import { failureOf, jsonPayload, outside, type Outside, type Payload } from '../support/outside.js';
import { text } from '../support/provider-apis/reply.js';
import { replayAll } from '../support/replays.js';
import { runsOf, workflowTaskFailures } from '../support/run-chain.js';
import { createStage, say } from '../support/stage.js';
import { startWorld, type World } from '../support/world.js';

const A_SECRET = 'a-secret-of-the-workers-that-is-long';
const SECRETS: Secrets = { all: [A_SECRET], ids: A_SECRET, acceptsUnsigned: false };
const AGENT = { limits: { handOver: { events: 20 } }, memory: { memoryWindow: 1_000 } };

const stage = createStage();
const plainStage = createStage();
let world: World;
let plain: World;
let program: Outside;

beforeAll(async () => {
  world = await startWorld({ engine: 'temporal', answer: stage.answer, agent: AGENT, installation: SECRETS });
  plain = await startWorld({ engine: 'temporal', answer: plainStage.answer, agent: AGENT });
  program = outside(world);
});
afterAll(async () => {
  await world.close();
  await plain.close();
});

interface Argument {
  readonly carried: { readonly identity: object };
}

/** What the second run of a conversation was handed, as it stands in history. */
async function handed(of: World, on: typeof stage): Promise<Payload> {
  const id = of.id();
  await of.client.start(id);
  const answers = Array.from({ length: 6 }, (_, n) => text(`Answer ${n}.`));
  on.play(id, ...answers);
  for (const [n] of answers.entries()) expect(await of.client.send(id, say(id, `${n}`))).toMatchObject({ text: `Answer ${n}.` });
  expect(await workflowTaskFailures(of, id)).toEqual([]);
  const [, second = []] = await runsOf(of, id);
  const payload = second[0]?.workflowExecutionStartedEventAttributes?.input?.payloads?.[0];
  if (!payload) throw new Error('there is no second run');
  return payload as Payload;
}

const inLife = (payload: Payload, life: string): unknown => {
  const { carried } = JSON.parse(Buffer.from(payload.data ?? []).toString()) as Argument;
  return { carried: { ...carried, identity: { ...carried.identity, scope: 'of-somebody-else', life } } };
};

test('runs hand over to the next as ever, and no history has the key', async () => {
  const { metadata } = await handed(world, stage);
  expect(metadata?.['perdura-seal']).toHaveLength(32);
  for (const { problem, history } of await replayAll(world, Infinity, SECRETS)) {
    expect(problem).toBeUndefined();
    expect(JSON.stringify(history)).not.toContain(SECRETS.all[0]);
  }
});

test('a planted state that looks like one of ours ends with a sentence, signed by nobody or for another conversation', async () => {
  const real = await handed(world, stage);
  const plants: readonly [words: string, payloadOf: (life: string) => Payload][] = [
    ['it is not signed', (life) => jsonPayload(inLife(real, life))],
    ['its signature is not of a secret', (life) => jsonPayload(inLife(real, life), real.metadata)],
    ['its signature is not of a secret', () => real],
    [
      'it is not signed',
      (life) => jsonPayload(inLife(real, life), { 'perdura-seal': Buffer.from(''), 'perdura-seal-problem': Buffer.from('') }),
    ],
  ];
  for (const [words, payloadOf] of plants) {
    const id = world.id();
    await program.continueAsRaw(id, 'conversation', payloadOf);
    expect(await failureOf(program.outcome(id))).toEqual({ type: 'InvalidStart', message: expect.stringContaining(words) });
    expect(await workflowTaskFailures(world, id)).toEqual([]);
  }
  const scope = world.id();
  const queue = { v: 1, scope, requests: [], done: [], consolidated: 0, fallbacks: 0, usage: {}, last: [] };
  await program.continueAs(`memory:${scope}`, 'memory', { scope, carried: queue });
  expect(await failureOf(program.outcome(`memory:${scope}`))).toMatchObject({ message: expect.stringContaining('it is not signed') });
});

test('without a key such a state is taken, and its run goes on when workers get one', async () => {
  const real = await handed(plain, plainStage);
  const id = plain.id();
  await outside(plain).continueAsRaw(id, 'conversation', (life) => jsonPayload(inLife(real, life)));
  expect(await outside(plain).query(id, 'status')).toMatchObject({ scope: 'of-somebody-else' });
  expect(await problemsOf(plain, SECRETS)).toEqual([]);
});

test('what was refused and what was signed replays without a key, and with another one', async () => {
  expect(await problemsOf(world, undefined)).toEqual([]);
  expect(await problemsOf(world, { ...SECRETS, all: ['another-secret-that-is-as-long-as-it'] })).toEqual([]);
});

/** Of replays by a worker with these keys; the run that planted something is no workflow of ours. */
async function problemsOf(of: World, keys: Secrets | undefined): Promise<string[]> {
  const ours = (await replayAll(of, Infinity, keys)).filter(
    ({ history }) => history.events?.[0]?.workflowExecutionStartedEventAttributes?.workflowType?.name !== 'theirs',
  );
  expect(ours.length).toBeGreaterThan(2);
  return ours.flatMap(({ workflowId, problem }) => (problem === undefined ? [] : [`${workflowId}: ${problem}`]));
}
