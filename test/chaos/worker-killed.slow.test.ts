/** A worker ends when the model has spoken, by `kill -9`, and while it speaks, by SIGTERM; a `kill -9` in mid-stream is in killed.test.ts. */
import { gate, text } from '../support/provider-apis/reply.js';
import { startCuttingProxy } from '../support/cutting-proxy.js';
import { figure, portOf, sceneTest, seconds, until } from '../support/scene.js';
import { textOf, violations } from './invariants.js';
import { startScreen } from './screen.js';

const LONG_ANSWER = 'One two three four five six seven eight nine ten eleven twelve.';

sceneTest('kill -9 between the commit of an answer and its report: the answer is not paid for twice', {}, async (scene) => {
  const held = gate();
  scene.api.play({ reply: { ...text(LONG_ANSWER), hold: held } });
  const id = scene.id();
  const proxy = await startCuttingProxy(portOf(scene.address));
  scene.onClose(() => proxy.close());
  const first = await scene.startWorker({ address: `127.0.0.1:${proxy.port}` });
  const sent = scene.client.send(id, { id: 'm1', text: 'count' }, { start: {} });
  await held.reached;

  proxy.blackHole();
  held.release();
  await until('the answer in the store', async () => (await scene.client.history(id)).some((entry) => textOf(entry) === LONG_ANSWER));
  await first.kill();
  await scene.startWorker();

  const result = await sent;
  expect(result).toMatchObject({ text: LONG_ANSWER, stopReason: 'end' });
  expect(scene.api.hits).toHaveLength(1);
  expect(violations(await scene.client.history(id), [{ messageId: 'm1', result, expectedText: LONG_ANSWER }])).toEqual([]);
});

sceneTest('SIGTERM while an answer streams that ends within the grace: it is finished there, and the exit code is 0', {}, async (scene) => {
  const id = scene.id();
  scene.api.play({ reply: { ...text(LONG_ANSWER), chunks: { size: 4, delayMs: 200 } } });
  const first = await scene.startWorker();
  await scene.client.start(id);
  const screen = startScreen(scene, id);
  const sent = scene.client.send(id, { id: 'm1', text: 'count' });
  await until('the beginning of an answer', () => screen.text !== '');

  first.term();
  expect(await first.ended).toEqual({ code: 0, signal: null });
  await until('the end of the turn on the screen', () => screen.ends.length > 0);
  expect(screen).toMatchObject({ text: LONG_ANSWER, resets: 0, ends: ['end'] });
  expect(scene.api.hits.map(({ aborted }) => aborted)).toEqual([false]);

  await scene.startWorker();
  const result = await sent;
  expect(result).toMatchObject({ text: LONG_ANSWER, stopReason: 'end' });
  expect(scene.api.hits).toHaveLength(1);
  expect(violations(await scene.client.history(id), [{ messageId: 'm1', result, expectedText: LONG_ANSWER }])).toEqual([]);
});

sceneTest(
  'SIGTERM while an answer streams that takes longer than the grace: it moves to another worker, and nothing is interrupted',
  {},
  async (scene) => {
    const id = scene.id();
    scene.api.play({ reply: { ...text(LONG_ANSWER), hold: gate({ chars: 20 }) } }, { reply: text(LONG_ANSWER) });
    const first = await scene.startWorker();
    await scene.client.start(id);
    const screen = startScreen(scene, id);
    const sent = scene.client.send(id, { id: 'm1', text: 'count' });
    await until('half an answer on the screen', () => screen.text !== '' && screen.text !== LONG_ANSWER);

    await scene.startWorker();
    first.term();
    const toldAt = Date.now();
    const result = await sent;
    figure(`SIGTERM with a long answer: it moved and was whole after ${seconds(Date.now() - toldAt)} (grace 10 s)`);
    expect(result).toMatchObject({ text: LONG_ANSWER, stopReason: 'end' });
    expect(await first.ended).toEqual({ code: 0, signal: null });
    expect(scene.api.hits.map(({ aborted }) => aborted)).toEqual([true, false]);
    await until('the whole answer on the screen', () => screen.text === LONG_ANSWER && screen.ends.length > 0);
    expect(screen).toMatchObject({ resets: 1, ends: ['end'] });
    expect(violations(await scene.client.history(id), [{ messageId: 'm1', result, expectedText: LONG_ANSWER }])).toEqual([]);
  },
);
