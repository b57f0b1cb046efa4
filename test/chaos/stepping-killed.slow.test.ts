/** kill -9 of the worker between any two steps, and in the middle of one: stepping goes on, with the same step, and nothing is done twice. */
import { answerTo, echo } from '../support/echo-model.js';
import { sceneTest, until } from '../support/scene.js';
import { textOf } from './invariants.js';

sceneTest(
  'a worker killed between every two steps: each step is done once, and the conversation is what it would have been',
  { impatient: true, ledger: true, answer: (request) => echo(request, () => [{ name: 'note', input: { item: 'a' } }]) },
  async (scene) => {
    const id = scene.id();
    scene.letToolsEnd();
    let worker = await scene.startWorker();
    await scene.client.start(id, { mode: 'stepping' });
    await scene.client.message(id, { id: 'm1', text: 'do it' });
    const did: string[] = [];
    for (;;) {
      const step = await scene.client.step(id);
      did.push(step.did);
      if (step.did === 'nothing') break;
      await worker.kill();
      worker = await scene.startWorker();
    }
    expect(did).toEqual(['event', 'model-call', 'tool-run', 'model-call', 'nothing']);
    expect(scene.ledger().map(({ what }) => what)).toEqual(['start', 'end']);
    expect(scene.api.hits).toHaveLength(2);
    expect(await scene.client.turn(id, 'turn_0001')).toMatchObject({ text: answerTo('do it'), stopReason: 'end' });
    expect((await scene.client.history(id)).map((entry) => entry.message.role)).toEqual(['user', 'assistant', 'tool', 'assistant']);
  },
);

sceneTest(
  'a worker killed in the middle of a step: its lock is nobody’s for ever, whoever waits gets its result, and others are refused meanwhile',
  { ledger: true, answer: (request) => echo(request, () => [{ name: 'note', input: { item: 'a' } }]) },
  async (scene) => {
    const id = scene.id();
    const worker = await scene.startWorker();
    await scene.client.start(id, { mode: 'stepping' });
    await scene.client.message(id, { id: 'm1', text: 'do it' });
    await scene.client.step(id);
    await scene.client.step(id);
    const step = scene.client.step(id, { id: 'the-tool' });
    await until('the tool runs', () => scene.ledger().some(({ what }) => what === 'start'));
    await worker.kill();
    scene.letToolsEnd();
    await scene.startWorker();
    await expect(scene.client.step(id, { id: 'another' })).rejects.toMatchObject({
      kind: 'cannot-step',
      message: expect.stringContaining('the-tool'),
    });
    expect(await step).toMatchObject({ stepId: 'the-tool', did: 'tool-run' });
    expect(await scene.client.status(id)).toMatchObject({ stepLock: null, mode: 'stepping' });
    expect((await scene.client.history(id)).some((entry) => textOf(entry) === 'done: a')).toBe(true);
    expect(await scene.client.step(id)).toMatchObject({ did: 'model-call' });
  },
);
