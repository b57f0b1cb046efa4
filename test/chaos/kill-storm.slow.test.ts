/**
 * Two workers, one of which is killed with -9 every three seconds or so and replaced at once, while six conversations go on.
 * Until each has had six turns and there were six kills; with PERDURA_LONG=1, 200 kills. PERDURA_SEED repeats a run's kills.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Entry } from '../../src/records/message.js';
import type { ApiRequest } from '../support/provider-apis/api-request.js';
import type { Reply } from '../support/provider-apis/reply.js';
import { answerTo, echo, saidIn } from '../support/echo-model.js';
import { createRandom, figure, LONG, sceneTest, seconds, type Scene } from '../support/scene.js';
import type { WorkerProcess } from '../support/worker-process.js';
import { violations, type Acknowledged } from './invariants.js';

const CONVERSATIONS = 6;
const TURNS = 6;
const KILLS = LONG ? 200 : 6;
const BETWEEN_KILLS_MS = 3_000;
const WITHIN_MS = LONG ? 2_400_000 : 600_000;

interface Talk {
  readonly id: string;
  readonly acknowledged: Acknowledged[];
  readonly turnMs: number[];
}

const { seed, next: random } = createRandom();

sceneTest(
  'a worker is killed every three seconds: every message is answered once and in order, and nothing that must not is done twice',
  { redis: true, ledger: true, answer: answerInTime },
  async (scene) => {
    scene.letToolsEnd();
    const storm = startStorm(scene, [await scene.startWorker(), await scene.startWorker()]);
    scene.onClose(() => storm.end());
    const all = Array.from({ length: CONVERSATIONS }, (_, c) => talk(scene, c, () => storm.kills() >= KILLS));
    const talks = await Promise.race([Promise.all(all), storm.failed]);
    await storm.end();

    const histories = await Promise.all(talks.map(({ id }) => scene.client.history(id)));
    const messages = talks.flatMap(({ acknowledged }) => acknowledged);
    const calls = histories.flat().filter(({ message }) => message.role === 'assistant').length;
    const unknown = histories.flat().filter(({ message }) => message.role === 'tool' && message.outcome === 'unknown').length;
    const whole = scene.api.hits.filter(({ aborted }) => !aborted).length;
    const turnMs = talks.flatMap((one) => one.turnMs).sort((x, y) => x - y);
    figure(
      `kill storm (seed ${seed}): ${storm.kills()} kills, ${messages.length} messages, ${calls} model calls in ${scene.api.hits.length} requests, ` +
        `${unknown} tools of unknown outcome; turns took ${seconds(at(turnMs, 0.5))} (p50), ${seconds(at(turnMs, 0.95))} (p95), ${seconds(at(turnMs, 1))} at most`,
    );

    expect(talks.flatMap(({ acknowledged }, c) => violations(histories[c] ?? [], acknowledged))).toEqual([]);
    expect(scene.api.problems).toEqual([]);
    expect(doneTwice(scene)).toEqual([]);
    expect(toldWrong(scene, histories.flat())).toEqual([]);
    // A request that was answered in full is paid for: only a kill between the answer and its commit may ask again.
    expect(whole).toBeLessThanOrEqual(calls + storm.kills());
    expect(scene.api.hits.length).toBeLessThanOrEqual(calls + 2 * storm.kills() + CONVERSATIONS);
  },
  WITHIN_MS,
);

/** One turn after the other; every second one calls a tool. */
async function talk(scene: Scene, c: number, mayEnd: () => boolean): Promise<Talk> {
  const id = scene.id();
  const acknowledged: Acknowledged[] = [];
  const turnMs: number[] = [];
  for (let t = 1; t <= TURNS || !mayEnd(); t++) {
    const messageId = `talk ${c} turn ${t}${t % 2 === 1 ? '' : t % 4 === 0 ? ' note' : ' pay'}`;
    const begin = Date.now();
    const result = await scene.client.send(id, { id: messageId, text: messageId }, { start: {} });
    turnMs.push(Date.now() - begin);
    acknowledged.push({ messageId, result, expectedText: answerTo(messageId) });
  }
  return { id, acknowledged, turnMs };
}

/** Slow enough that most kills meet a model that speaks. What it was told must be all that was said, in order, once. */
function answerInTime(request: ApiRequest): Reply {
  const said = saidIn(request);
  said.forEach((text, i) => {
    if (!new RegExp(`^talk \\d turn ${i + 1}\\b`).test(text)) throw new Error(`said was ${said.join(', ')}`);
  });
  const reply = echo(request, (text) => {
    const tool = /(note|pay)$/.exec(text)?.[0];
    return tool === undefined ? [] : [{ name: tool, input: { item: text, ms: Math.floor(600 * random()) } }];
  });
  return { ...reply, chunks: { size: 4, delayMs: 50 + Math.floor(250 * random()) } };
}

function startStorm(scene: Scene, workers: WorkerProcess[]) {
  const over = new AbortController();
  let kills = 0;
  let next = Promise.resolve();
  const storm = (async () => {
    for (;;) {
      const pause = sleep(BETWEEN_KILLS_MS * (0.5 + random()), undefined, { signal: over.signal });
      // On a slow machine a worker takes longer to start than the next kill is away: it should live to do something.
      await Promise.all([pause, next.then(() => sleep(BETWEEN_KILLS_MS / 2, undefined, { signal: over.signal }))]);
      const which = random() < 0.5 ? 0 : 1;
      await workers[which]?.kill();
      kills += 1;
      next = scene.startWorker().then((worker) => void (workers[which] = worker));
    }
  })().catch((error: unknown) => {
    if (!over.signal.aborted) throw error;
  });
  return {
    kills: () => kills,
    failed: storm.then(() => new Promise<never>(() => undefined)),
    async end() {
      over.abort();
      await Promise.all([storm, next]);
    },
  };
}

function at(sorted: readonly number[], part: number): number {
  return sorted[Math.ceil(part * sorted.length) - 1] ?? 0;
}

function doneTwice(scene: Scene): string[] {
  const begun = scene.ledger().flatMap(({ what, name, item }) => (what === 'start' && name === 'pay' ? [item] : []));
  return begun.filter((item, i) => begun.indexOf(item) !== i);
}

/** Results that say what the ledger does not. */
function toldWrong(scene: Scene, entries: readonly Entry[]): string[] {
  const ended = new Set(scene.ledger().flatMap(({ what, item }) => (what === 'end' ? [`done: ${item}`] : [])));
  return entries.flatMap(({ message }) => {
    if (message.role !== 'tool' || typeof message.text !== 'string') return [];
    const right = message.outcome === 'ok' ? ended.has(message.text) : message.outcome === 'unknown' && message.name === 'pay';
    return right ? [] : [`${message.name} ended as ${message.outcome}: ${message.text}`];
  });
}
