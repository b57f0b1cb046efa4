/** A server is away for 20 s in the middle of a turn and comes back with what it has on disk: Redis frozen, Redis killed, Temporal killed. */
import { gate, text } from '../support/provider-apis/reply.js';
import { answerTo, echo } from '../support/echo-model.js';
import { figure, outage, sceneTest, seconds, until } from '../support/scene.js';
import { textOf, violations } from './invariants.js';

const OUTAGE_MS = 20_000;
const ANSWER = 'An answer that was paid for.';

for (const how of ['frozen', 'killed'] as const) {
  sceneTest(
    `Redis is ${how} for 20 s during a model call: the answer arrives, is paid for once, and is recorded afterwards`,
    { redis: true },
    async (scene) => {
      const id = scene.id();
      const held = gate();
      scene.api.play({ reply: text('Hello.') }, { reply: { ...text(ANSWER), hold: held } }, { reply: text('Yes, all of it.') });
      await scene.startWorker();
      const first = await scene.client.send(id, { id: 'm1', text: 'hi' }, { start: {} });
      const sent = scene.client.send(id, { id: 'm2', text: 'tell me' });
      await held.reached;

      if (how === 'frozen') {
        process.kill(scene.redis.pid, 'SIGSTOP');
        scene.onClose(() => process.kill(scene.redis.pid, 'SIGCONT'));
      } else await scene.redis.kill();
      const downAt = Date.now();
      let answeredAt = 0;
      void sent.then(
        () => (answeredAt = Date.now()),
        () => undefined,
      );
      held.release();
      await outage(OUTAGE_MS);
      if (how === 'frozen') process.kill(scene.redis.pid, 'SIGCONT');
      else await scene.restartRedis();

      const second = await sent;
      figure(`Redis ${how} for 20 s: the answer came ${seconds(answeredAt - downAt)} after it went away`);
      expect(second).toMatchObject({ text: ANSWER, stopReason: 'end' });
      const recorded = async (): Promise<boolean> => (await scene.client.history(id)).some((entry) => textOf(entry) === ANSWER);
      await until('the answer in the store', recorded);
      const third = await scene.client.send(id, { id: 'm3', text: 'do you remember?' });

      expect(scene.api.hits).toHaveLength(3);
      expect(scene.api.problems).toEqual([]);
      expect(JSON.stringify(scene.api.hits[2]?.body?.messages)).toContain(ANSWER);
      const history = await scene.client.history(id);
      expect(
        violations(history, [
          { messageId: 'm1', result: first, expectedText: 'Hello.' },
          { messageId: 'm2', result: second, expectedText: ANSWER },
          { messageId: 'm3', result: third, expectedText: 'Yes, all of it.' },
        ]),
      ).toEqual([]);
      expect(history.map(textOf)).toEqual(['hi', 'Hello.', 'tell me', ANSWER, 'do you remember?', 'Yes, all of it.']);
    },
  );
}

sceneTest(
  'kill -9 of Temporal in the middle of a turn: the turn ends, and what was said meanwhile is answered once',
  { ownTemporal: true, answer: (request) => echo(request) },
  async (scene) => {
    const id = scene.id();
    const held = gate();
    scene.api.play({ reply: text(answerTo('before')) }, { reply: { ...text(answerTo('during')), hold: held } });
    await scene.startWorker();
    const before = await scene.client.send(id, { id: 'before', text: 'before' }, { start: {} });
    const during = scene.client.send(id, { id: 'during', text: 'during' });
    await held.reached;

    await scene.killTemporal();
    const meanwhile = ['a', 'b', 'c'];
    const sent = meanwhile.map((name) => scene.client.send(id, { id: name, text: name }));
    // Not acknowledged, or only later: whoever said it says it again, with the same id.
    const signalled = scene.client.message(id, { id: 'signal', text: 'signal' }).catch(() => undefined);
    held.release();
    await outage(OUTAGE_MS);
    await scene.restartTemporal();
    const backAt = Date.now();

    await signalled;
    const results = await Promise.all([during, ...sent, scene.client.send(id, { id: 'signal', text: 'signal' })]);
    figure(`Temporal killed for 20 s in a turn: all answered ${seconds(Date.now() - backAt)} after it was back`);
    const acknowledged = ['during', ...meanwhile, 'signal'].map((messageId, i) => {
      const result = results[i];
      if (!result) throw new Error(`no result for ${messageId}`);
      return { messageId, result, expectedText: answerTo(messageId) };
    });
    const all = [{ messageId: 'before', result: before, expectedText: answerTo('before') }, ...acknowledged];
    expect(violations(await scene.client.history(id), all, { inOrder: false })).toEqual([]);
    expect(scene.api.hits).toHaveLength(all.length);
    expect(scene.api.problems).toEqual([]);
  },
);
