/** A worker dies in the middle of a turn, and the one that goes on stands on a machine whose clock is half a minute off. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { httpError } from '../support/provider-apis/faults.js';
import type { ApiRequest } from '../support/provider-apis/api-request.js';
import { gate, type Reply, type ToolCall } from '../support/provider-apis/reply.js';
import { answerTo, echo, saidIn } from '../support/echo-model.js';
import { replayProblems } from '../support/replays.js';
import { runsOf } from '../support/run-chain.js';
import { sceneTest, until, type Scene } from '../support/scene.js';
import type { WorkerProcess } from '../support/worker-process.js';
import { violations, type Acknowledged } from './invariants.js';
import { startScreen } from './screen.js';

const OFF_MS = 30_000;
const EXPIRY_MS = 5_000;
const APPROVALS = [{ tool: 'pay', policy: 'ask' }];
const AGENT = { approvals: APPROVALS, approvalExpiryMs: EXPIRY_MS };

const CALLS: Readonly<Record<string, ToolCall>> = {
  wait: { name: 'wait_until', input: { seconds: 4 } },
  sleep: { name: 'wait_until', input: { seconds: 6 } },
  pay: { name: 'pay', input: { item: 'nobody allows it' } },
  buy: { name: 'pay', input: { item: 'somebody allows it' } },
};

for (const [name, offBy] of [
  ['ahead', OFF_MS],
  ['behind', -OFF_MS],
] as const) {
  const held = gate();
  const model = createModel();
  sceneTest(
    `kill -9 in mid-turn, and the next worker's clock is 30 s ${name}: one answer each, in order, and every wait as long as it should be`,
    { redis: true, ledger: true, agent: AGENT, answer: model.answer },
    async (scene) => {
      scene.letToolsEnd();
      const id = scene.id();
      const acknowledged: Acknowledged[] = [];
      const send = async (words: string): Promise<void> => {
        const result = await scene.client.send(id, { id: words, text: words });
        acknowledged.push({ messageId: words, result, expectedText: answerTo(words) });
      };
      const startOff = (): Promise<WorkerProcess> =>
        scene.startWorker({ preload: join(__dirname, '..', 'support', 'clock-off.cjs'), env: { CLOCK_OFF_MS: String(offBy) } });

      const first = await scene.startWorker();
      await scene.client.start(id);
      const screen = startScreen(scene, id);
      await send('one');
      model.once('two', { hold: held });
      const two = send('two');
      await held.reached;
      const three = send('three');
      await until('it waits', async () => (await scene.client.status(id)).queued === 1);
      await first.kill();
      const second = await startOff();
      await Promise.all([two, three]);

      await send('wait');
      await send('pay');
      model.once('again', httpError(429, { retryAfter: new Date(Date.now() + 3_000) }));
      await send('again');

      const [sleep, killedAt] = [send('sleep'), until('it sleeps', () => isWaiting(scene, id)).then(() => second.kill())];
      await killedAt;
      const third = await scene.startWorker();
      await sleep;
      // A dead worker takes longer than the one before was waited for.
      const patient = { approvals: APPROVALS, approvalExpiryMs: 60_000 };
      await writeFile(join(scene.dir, 'agents', 'default', 'agent.json'), JSON.stringify(patient));
      const buy = send('buy');
      await until('it asks', async () => (await scene.client.status(id)).pendingApprovals === 1);
      await third.kill();
      await startOff();
      await scene.client.decide(id, { callId: 'turn_0008/c1', decision: 'approve' });
      await buy;
      expect(await scene.client.reset(id)).toMatchObject({ reply: 'Session cleared.' });
      await send('last');

      // Temporal's own clock runs them: what a worker whose clock is off has asked for is what counts.
      const [waited, expired, retried, slept, patience] = await timersOf(scene, id);
      expect([waited, expired, slept, patience]).toEqual([4_000, EXPIRY_MS, 6_000, 60_000]);
      // A date 3 s away, by a clock that is half a minute off.
      expect(retried).toBeLessThan(OFF_MS);
      expect(violations(await scene.client.history(id), acknowledged)).toEqual([]);
      expect(model.asked()).toEqual({ one: 1, two: 2, three: 1, wait: 2, pay: 2, again: 2, sleep: 2, buy: 2, last: 1 });
      expect(scene.ledger().map(({ what, item }) => `${what} ${item}`)).toEqual(['start somebody allows it', 'end somebody allows it']);
      expect(await scene.client.status(id)).toMatchObject({ phase: 'idle', queued: 0, pendingApprovals: 0, session: 2, turns: 9 });
      await until('every end on the screen', () => screen.ends.length === 9);
      expect(screen).toMatchObject({ text: answerTo('last'), ends: Array(9).fill('end') });
      expect(scene.api.problems).toEqual([]);
      expect(await replayProblems(scene)).toEqual([]);
    },
  );
}

async function isWaiting({ client }: Scene, id: string): Promise<boolean> {
  const { waitingFor } = await client.status(id);
  return waitingFor?.includes('wait_until') === true;
}

/** How long each timer of the conversation was to run, in milliseconds, in their order. */
async function timersOf(scene: Scene, id: string): Promise<number[]> {
  const events = (await runsOf(scene, id)).flat();
  return events.flatMap(({ timerStartedEventAttributes: timer }) => {
    const { seconds = 0, nanos = 0 } = timer?.startToFireTimeout ?? {};
    return timer ? [Number(seconds) * 1_000 + Number(nanos) / 1e6] : [];
  });
}

interface ScriptedModel {
  readonly answer: (request: ApiRequest) => Reply;
  /** The first time that this is answered, so. */
  once(said: string, how: Reply): void;
  /** How often it was asked about each message. */
  asked(): Readonly<Record<string, number>>;
}

function createModel(): ScriptedModel {
  const counts: Record<string, number> = {};
  const once = new Map<string, Reply>();
  return {
    once: (said, how) => void once.set(said, how),
    asked: () => counts,
    answer(request) {
      const said = saidIn(request).at(-1) ?? '';
      counts[said] = (counts[said] ?? 0) + 1;
      const how = once.get(said);
      once.delete(said);
      const call = CALLS[said];
      return { ...echo(request, () => (call ? [call] : [])), ...how };
    },
  };
}
