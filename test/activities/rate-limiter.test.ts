/** How a worker keeps to the limits of providers (activities/rate-limiter.ts). */
import { asyncLocalStorage, type Context } from '@temporalio/activity';
import { noopMetricMeter } from '@temporalio/common';
import { callInRoom, createRateLimiter, withinLimits, type LimitRoom, type RateLimiter } from '../../src/activities/rate-limiter.js';
import { modelsAnsweredBy } from '../../src/models/known-models.js';
import { ModelFailure, type Model, type ModelRequest, type ModelResponse, type StreamOptions } from '../../src/models/model.js';
import type { SeenLimits } from '../../src/records/rate-limit.js';
import { waitFor } from '../support/wait-for.js';
import { StoreUnavailable, type LimitClaim, type RateLimits, type Taken } from '../../src/stores/store.js';

const MODEL = 'anthropic/claude-sonnet-5-5';
const OF = `${MODEL}#k1`;
const SEEN: SeenLimits = { requests: { limit: 60, remaining: 59 } };
const WAIT: Taken = { status: 'wait', position: 3, waiting: 7, ms: 12_000, expectedMs: 12_000 };
const USAGE = { inputTokens: 70, cachedTokens: 0, outputTokens: 9 };
const ANSWER: ModelResponse = { blocks: [], stop: 'end', usage: USAGE };

interface Stage {
  readonly limiter: RateLimiter;
  readonly told: unknown[];
  now: number;
  answer: () => Taken;
  isAway: boolean;
}

/** A store that answers as it is told, and says what it was asked. */
function stageOf(declared = {}): Stage {
  const told: unknown[] = [];
  const note = <T>(call: unknown, answer: () => T): Promise<T> => {
    told.push(call);
    return stage.isAway ? Promise.reject(new StoreUnavailable('redis closed')) : Promise.resolve(answer());
  };
  const limits: RateLimits = {
    take: (of, claim) => note(['take', of, claim.id], () => stage.answer()),
    learn: (of, id, seen) => note(['learn', of, id, seen], () => undefined),
    release: (of, id, outcome) => note(['release', of, id, outcome], () => undefined),
    list: () => Promise.resolve([]),
  };
  const model: Model = { provider: 'anthropic', account: 'k1', stream: () => Promise.resolve(ANSWER) };
  const stage: Stage = {
    limiter: createRateLimiter({ limits, models: modelsAnsweredBy(model, declared) }, () => stage.now),
    ...{ told, now: 1_000_000, answer: () => ({ status: 'granted' }) as const, isAway: false },
  };
  return stage;
}

const inActivity = <T>(work: () => Promise<T>, info: object = {}): Promise<T> =>
  asyncLocalStorage.run({ info, log: QUIET, metricMeter: noopMetricMeter } as unknown as Context, work);
const QUIET = { warn: () => undefined };
const take = (stage: Stage, id = 'call'): ReturnType<RateLimiter['take']> =>
  inActivity(() => stage.limiter.take({ id, model: MODEL, tenant: 'acme', conversation: 'c', isBackground: false, input: 10 }));
const roomIn = async (taking: ReturnType<RateLimiter['take']>): Promise<LimitRoom> => {
  const taken = await taking;
  if ('place' in taken) throw new Error(taken.place.words);
  return taken.room;
};
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('room is taken, what the answer says is noted, and the room is given back once', async () => {
  const stage = stageOf();
  const room = await roomIn(take(stage));
  room.onLimits(SEEN);
  for (let i = 0; i < 2; i++) room.done({ usage: USAGE });
  await settled();
  expect(stage.told).toEqual([
    ['take', OF, 'call'],
    ['learn', OF, 'call', SEEN],
    ['release', OF, 'call', { input: 70, output: 9 }],
  ]);
});

test('without room there is a place in line, in words', async () => {
  const stage = stageOf();
  stage.answer = () => WAIT;
  expect(await take(stage)).toEqual({ place: expect.objectContaining({ ms: 12_000, words: `3rd in line for ${MODEL}, about 12 s` }) });
});

test('a provider that says nothing of limits costs the store a question now and then, until it says something', async () => {
  const stage = stageOf();
  stage.answer = () => ({ status: 'free' });
  for (const id of ['a', 'b', 'c']) (await roomIn(take(stage, id))).done({ usage: USAGE });
  await settled();
  expect(stage.told).toEqual([['take', OF, 'a']]);
  const room = await roomIn(take(stage, 'd'));
  room.onLimits(SEEN);
  await settled();
  await take(stage, 'e');
  expect(stage.told.slice(1)).toEqual([
    ['learn', OF, 'd', SEEN],
    ['take', OF, 'e'],
  ]);
});

test('limits that are set are asked for from the first call on', async () => {
  const stage = stageOf({ [MODEL]: { rateLimits: { requestsPerMinute: 5, streams: 2 } } });
  stage.answer = () => ({ status: 'free' });
  for (const id of ['a', 'b']) await take(stage, id);
  expect(stage.told).toHaveLength(2);
});

test('a store that is away stops no call, and is left alone for a while', async () => {
  const stage = stageOf();
  stage.isAway = true;
  const room = await roomIn(take(stage, 'a'));
  room.done({ usage: USAGE });
  await roomIn(take(stage, 'b'));
  await settled();
  expect(stage.told).toEqual([['take', OF, 'a']]);
  stage.isAway = false;
  stage.now += 11_000;
  await roomIn(take(stage, 'c'));
  expect(stage.told).toHaveLength(2);
});

describe('what a call holds when the store goes away is given back once it answers', () => {
  const releases = ({ told }: Stage) => told.filter((call) => (call as readonly unknown[])[0] === 'release');
  const released = (stage: Stage, times: number) =>
    waitFor(
      () => releases(stage).length,
      (count) => count >= times,
    );
  /** A call that has ended, of which the store did not hear. */
  const endedUnheard = async (ended: Parameters<LimitRoom['done']>[0]): Promise<Stage> => {
    const stage = stageOf();
    const room = await roomIn(take(stage));
    stage.isAway = true;
    await inActivity(async () => room.done(ended));
    await released(stage, 1);
    stage.isAway = false;
    return stage;
  };

  test.each([
    ['its room', { usage: USAGE }, { input: 70, output: 9 }],
    ['with what is left of a refusal', { error: new ModelFailure('rate-limit', '429', { retryAfterMs: 15_000 }) }, { refusedMs: 4_000 }],
    ['with a refusal that is over', { error: new ModelFailure('rate-limit', '429', { retryAfterMs: 7_000 }) }, { refusedMs: 0 }],
  ])('%s', async (_, ended, outcome) => {
    const stage = await endedUnheard(ended);
    stage.now += 11_000;
    await released(stage, 2);
    expect(releases(stage)[1]).toEqual(['release', OF, 'call', outcome]);
  });

  test('its place in line', async () => {
    const stage = stageOf();
    stage.answer = () => WAIT;
    await take(stage);
    stage.isAway = true;
    const room = await roomIn(take(stage));
    [stage.isAway, stage.now] = [false, stage.now + 11_000];
    room.done({ usage: USAGE });
    await released(stage, 1);
    expect(releases(stage)).toEqual([['release', OF, 'call', { input: 70, output: 9 }]]);
  });

  test('unless it stays away for longer than the room is held', async () => {
    const stage = await endedUnheard({ usage: USAGE });
    stage.now += 61_000;
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    expect(releases(stage)).toHaveLength(1);
  });
});

test.each([
  ['for as long as it wants', { retryAfterMs: 7_000 }, 7_000],
  ['for a moment where it does not say', {}, 2_000],
  ['for a minute where it says a day: then a call looks again', { retryAfterMs: 86_400_000 }, 60_000],
])('a refusal keeps all calls back %s', async (_, options, refusedMs) => {
  const stage = stageOf();
  const room = await roomIn(take(stage));
  const refused = callInRoom(room, () => Promise.reject(new ModelFailure('rate-limit', '429', options)));
  await expect(refused).rejects.toThrow('429');
  await settled();
  expect(stage.told.at(-1)).toEqual(['release', OF, 'call', { refusedMs }]);
});

test('a failure of another kind gives the room back', async () => {
  const stage = stageOf();
  (await roomIn(take(stage))).done({ error: new ModelFailure('overloaded', '529') });
  await settled();
  expect(stage.told.at(-1)).toEqual(['release', OF, 'call', {}]);
});

describe('calls beside a conversation', () => {
  const request: ModelRequest = { model: 'm', maxTokens: 5, system: 'system', tools: [], messages: [{ role: 'user', text: 'words' }] };
  const options: StreamOptions = { signal: new AbortController().signal, onDelta: () => undefined };
  const callers: [string, string, Partial<LimitClaim>][] = [
    ['model-step', 'talk', { conversation: 'talk', isBackground: false }],
    ['compact', 'talk', { conversation: 'talk', isBackground: false }],
    ['title', 'talk', { conversation: 'talk', isBackground: true }],
    ['consolidate', 'memory:acme.x', { conversation: 'memory:acme.x', isBackground: true }],
    ['model-step', 'talk:turn_0001:1', { conversation: 'talk', isBackground: true }],
    ['model-step', 'news-2026-11-30T09:00:00Z', { conversation: 'news-2026-11-30T09:00:00Z', isBackground: true }],
  ];
  const activity = (activityType: string, workflowId: string) => ({
    activityType,
    workflowExecution: { workflowId, runId: 'run' },
    activityId: '7',
  });
  const noting = (claims: unknown[], answer: () => Awaited<ReturnType<RateLimiter['take']>>): RateLimiter => ({
    take: (call) => {
      claims.push(call);
      return Promise.resolve(answer());
    },
  });
  const room: LimitRoom = { onLimits: () => undefined, done: () => undefined };
  const models = modelsAnsweredBy({ provider: 'p', stream: () => Promise.resolve(ANSWER) });

  test.each(callers)('by %s of %s', async (type, workflowId, expected) => {
    const claims: unknown[] = [];
    const limited = withinLimits(
      models,
      noting(claims, () => ({ room })),
      'acme.x',
    );
    await inActivity(() => limited(MODEL).stream(request, options), activity(type, workflowId));
    expect(claims).toEqual([expect.objectContaining({ ...expected, tenant: 'acme', id: 'run/7/0' })]);
  });

  test('fail for the time that they are to wait, and leave a call alone that has its room', async () => {
    const claims: unknown[] = [];
    const place = { ...WAIT, words: '3rd in line' };
    const limited = withinLimits(
      models,
      noting(claims, () => ({ place })),
      'acme.x',
    );
    const failed = inActivity(() => limited(MODEL).stream(request, options), activity('title', 'talk'));
    await expect(failed).rejects.toMatchObject({ kind: 'rate-limit', message: '3rd in line', options: { retryAfterMs: 12_000 } });
    const own = inActivity(() => limited(MODEL).stream(request, { ...options, onLimits: () => undefined }), activity('model-step', 'talk'));
    expect(await own).toEqual(ANSWER);
    expect(claims).toHaveLength(1);
  });
});
