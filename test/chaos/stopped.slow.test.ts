/**
 * A worker stands still for 30 s (SIGSTOP) and goes on: another one has done its work by then. Nothing is done twice, nothing that was
 * committed is paid again, and the late one finds out that it is fenced. What Temporal sends to a process that stands still is lost to it
 * for ten seconds each time, so how soon the other one gets the work is not measured here.
 */
import { answerTo, echo } from '../support/echo-model.js';
import { gate, text } from '../support/provider-apis/reply.js';
import { figure, outage, sceneTest, until } from '../support/scene.js';
import { violations } from './invariants.js';

const INFO = { PERDURA_LOG_LEVEL: 'info' };
const STOPPED_MS = 30_000;
const FENCED = /fenced: the lease of worker/;
const SILENT = /gives no sign of life: its conversations go on/;

for (const store of [{ redis: true }, {}]) {
  const kind = store.redis ? 'redis' : 'files';

  sceneTest(`a worker that stands still in a model call (${kind})`, { ...store, answer: (request) => echo(request) }, async (scene) => {
    const held = gate();
    scene.api.play({ reply: { ...text(answerTo('count')), hold: held } });
    const late = await scene.startWorker({ env: INFO });
    const id = scene.id();
    const sent = scene.client.send(id, { id: 'm1', text: 'count' }, { start: {} });
    await held.reached;
    const other = await scene.startWorker({ env: INFO });
    late.pause();
    const since = outage(STOPPED_MS);
    await until('a worker that goes on in its place', () => SILENT.test(other.log()));
    // The late one will find the whole answer.
    held.release();
    await since;
    late.resume();
    await until('a worker that knows that it is late', () => FENCED.test(late.log()));
    const result = await sent;

    // Where the late one was the first to commit, its answer is the one.
    const requests = scene.api.hits.length;
    figure(`stopped for 30 s in a model call (${kind}): ${requests} requests`);
    expect(requests).toBeLessThanOrEqual(2);
    await other.kill();
    const next = await scene.client.send(id, { id: 'm2', text: 'and now?' });
    const acknowledged = [
      { messageId: 'm1', result, expectedText: answerTo('count') },
      { messageId: 'm2', result: next, expectedText: answerTo('and now?') },
    ];
    expect(violations(await scene.client.history(id), acknowledged)).toEqual([]);
    expect(scene.api.hits).toHaveLength(requests + 1);
  });

  sceneTest(
    `a worker that stands still in a tool that must not run twice (${kind})`,
    {
      ...store,
      ledger: true,
      answer: (request) => echo(request, (said) => (said === 'do it' ? [{ name: 'pay', input: { item: 'a' } }] : [])),
    },
    async (scene) => {
      const late = await scene.startWorker({ env: INFO });
      const id = scene.id();
      const sent = scene.client.send(id, { id: 'm1', text: 'do it' }, { start: {} });
      await until('a tool that has begun', () => scene.ledger().length > 0);
      const other = await scene.startWorker({ env: INFO });
      late.pause();
      const since = outage(STOPPED_MS);
      await until('a worker that goes on in its place', () => SILENT.test(other.log()));
      await since;
      late.resume();
      scene.letToolsEnd();
      await until('a worker that knows that it is late', () => FENCED.test(late.log()));
      const result = await sent;

      const next = await scene.client.send(id, { id: 'm2', text: 'and now?' });
      expect(scene.ledger().filter(({ what }) => what === 'start')).toHaveLength(1);
      const history = await scene.client.history(id);
      expect(history.flatMap(({ message }) => (message.role === 'tool' ? [message.outcome] : []))).toEqual(['unknown']);
      const acknowledged = [
        { messageId: 'm1', result, expectedText: answerTo('do it') },
        { messageId: 'm2', result: next, expectedText: answerTo('and now?') },
      ];
      expect(violations(history, acknowledged)).toEqual([]);
    },
  );
}
