/** `kill -9` of the Temporal server in the middle of a turn, and another one on the same file. */
import { gate, text } from '../../src/testing/reply.js';
import { answerTo, echo } from '../support/echo-model.js';
import { figure, outage, sceneTest, seconds } from '../support/scene.js';
import { violations } from './invariants.js';

const OUTAGE_MS = 3_000;

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
    const signalled = scene.client.message(id, { id: 'signal', text: 'signal' });
    held.release();
    await outage(OUTAGE_MS);
    await scene.restartTemporal();
    const backAt = Date.now();

    await signalled;
    const results = await Promise.all([during, ...sent, scene.client.send(id, { id: 'signal', text: 'signal' })]);
    figure(`Temporal killed for 3 s in a turn: all answered ${seconds(Date.now() - backAt)} after it was back`);
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
