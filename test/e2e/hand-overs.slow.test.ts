/** Senders race the hand-over of a conversation to its next run (continue-as-new), here every 20 events. */
import { WorkflowUpdateFailedError } from '@temporalio/client';
import { isWorthAnotherTry } from '../../src/client/errors.js';
import type { TurnResult } from '../../src/conversation/protocol/contract.js';
import { violations } from '../chaos/invariants.js';
import { answerTo, echo } from '../support/echo-model.js';
import { replayProblems } from '../support/replays.js';
import { createRandom, figure, LONG, sceneTest, seconds, until, type Scene } from '../support/scene.js';

const CONVERSATIONS = 10;
const SENDERS = 7;
/** In so many of them somebody asks again and again how a turn ended that lies so far back. */
const ASKED = 3;
const TURNS_BACK = 20;
const MESSAGES = LONG ? 100 : 20;

sceneTest(
  `${CONVERSATIONS * MESSAGES} sends race hand-overs every 20 events, some of them twice: each is answered once, by id`,
  { redis: true, agent: { limits: { handOver: { events: 20 } } }, answer: (request) => echo(request) },
  async (scene) => {
    await scene.startWorker();
    const random = createRandom();
    const begin = Date.now();
    const ids = Array.from({ length: CONVERSATIONS }, () => scene.id());
    const all = await Promise.all(ids.map((id, c) => converse(scene, id, c < ASKED, random.next)));
    const took = Date.now() - begin;

    for (const [c, id] of ids.entries()) {
      const { acknowledged, again } = all[c] ?? { acknowledged: [], again: [] };
      expect(acknowledged).toHaveLength(MESSAGES);
      expect(violations(await scene.client.history(id), acknowledged, { inOrder: false })).toEqual([]);
      for (const { messageId, result } of again) {
        const first = acknowledged.find((one) => one.messageId === messageId)?.result;
        expect(result).toMatchObject({ turnId: first?.turnId, text: first?.text, stopReason: 'end' });
      }
    }
    expect(scene.api.hits).toHaveLength(CONVERSATIONS * MESSAGES);
    expect(scene.api.problems).toEqual([]);
    expect(await replayProblems(scene)).toEqual([]);
    const runs = await Promise.all(ids.map((id) => until('several runs', async () => atLeast(2, await countRuns(scene, id)))));
    const repeated = all.reduce((sum, { again }) => sum + again.length, 0);
    figure(
      `hand-overs (seed ${random.seed}): ${CONVERSATIONS * MESSAGES} sends and ${repeated} repeated or asked for again over ${runs.reduce((a, b) => a + b)} runs: ` +
        `all answered once by id, in ${seconds(took)}`,
    );
  },
  LONG ? 600_000 : 400_000,
);

/** Several senders at once; one message in eight is sent twice at the same time, as somebody who is not sure sends it. */
async function converse(scene: Scene, id: string, asks: boolean, random: () => number) {
  await scene.client.start(id);
  const names = Array.from({ length: MESSAGES - 1 }, (_, n) => `message ${n + 1}`);
  const send = async (messageId: string) => {
    const message = { id: messageId, text: messageId };
    const result = await (random() < 1 / 4 ? byUpdate(scene, id, 'send', message) : scene.client.send(id, message));
    return { messageId, result, expectedText: answerTo(messageId) };
  };
  const first = await send('message 0');
  const acknowledged = [first];
  const again: (typeof first)[] = [];
  const speak = async (): Promise<void> => {
    for (let name = names.shift(); name !== undefined; name = names.shift()) {
      const twice = random() < 1 / 8;
      const [one, other] = await Promise.all([send(name), ...(twice ? [send(name)] : [])]);
      acknowledged.push(one);
      if (other) again.push(other);
    }
  };
  /** Its text has left the later runs: they look it up in the store, and must not hand over before they have said it. */
  const ask = async (): Promise<void> => {
    while (names.length > 0) {
      const one = acknowledged.at(-TURNS_BACK) ?? first;
      again.push({ ...one, result: await byUpdate(scene, id, 'turn', { turnId: one.result.turnId }) });
    }
  };
  await Promise.all([...Array.from({ length: SENDERS }, speak), ...(asks ? [ask()] : [])]);
  return { acknowledged, again };
}

/** As a program without our client does, which says again only what was not taken: an update that was taken is answered by its run. */
async function byUpdate(scene: Scene, id: string, name: 'send' | 'turn', argument: object): Promise<TurnResult> {
  const update = (): Promise<TurnResult> =>
    scene.temporal.workflow
      .getHandle(id)
      .executeUpdate<TurnResult, [object]>(name, { args: [argument] })
      .catch((error: unknown) => {
        if (!isWorthAnotherTry(error) || error instanceof WorkflowUpdateFailedError) throw error;
        return update();
      });
  const result = await update();
  return result.turnId === null || result.stopReason === 'end' ? result : scene.client.turn(id, result.turnId);
}

function atLeast(least: number, count: number): number | undefined {
  return count >= least ? count : undefined;
}

async function countRuns(scene: Scene, id: string): Promise<number> {
  let runs = 0;
  for await (const _ of scene.temporal.workflow.list({ query: `WorkflowId = '${id}'` })) runs += 1;
  return runs;
}
