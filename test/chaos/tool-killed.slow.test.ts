/** A worker ends while a tool runs, after it has run, or only seems to have ended. */
import { startCuttingProxy } from '../support/cutting-proxy.js';
import { answerTo, echo, latestResults, resultText } from '../support/echo-model.js';
import { portOf, sceneTest, until, type Scene } from '../support/scene.js';
import { textOf, violations } from './invariants.js';

for (const wasDone of [false, true]) {
  sceneTest(
    `kill -9 while a tool runs that can find out what became of it: it runs again only if it had not been done (${wasDone ? 'it had' : 'it had not'})`,
    { ledger: true, answer: (request) => echo(request, () => [{ name: 'ship', input: { item: 'a' } }]) },
    async (scene) => {
      const { id, first, sent } = await whileToolRuns(scene);
      await first.kill();
      if (wasDone) scene.noteShipped();
      scene.letToolsEnd();
      await scene.startWorker();
      const result = await sent;

      expect(scene.ledger().map(({ what }) => what)).toEqual(wasDone ? ['start'] : ['start', 'start', 'end']);
      expect(resultsSeen(scene)).toEqual([wasDone ? expect.stringContaining('it was shipped') : 'done: a']);
      expect(violations(await scene.client.history(id), [{ messageId: 'm1', result, expectedText: answerTo('do it') }])).toEqual([]);
    },
  );
}

sceneTest(
  'kill -9 between the end of a tool that must not run twice and its report: the model gets the result after all',
  { ledger: true, answer: (request) => echo(request, () => [{ name: 'pay', input: { item: 'a' } }]) },
  async (scene) => {
    const proxy = await startCuttingProxy(portOf(scene.address));
    scene.onClose(() => proxy.close());
    const { id, first, sent } = await whileToolRuns(scene, `127.0.0.1:${proxy.port}`);

    proxy.blackHole();
    scene.letToolsEnd();
    await until('the result in the store', async () => (await scene.client.history(id)).some((entry) => textOf(entry) === 'done: a'));
    await first.kill();
    await scene.startWorker();

    const result = await sent;
    expect(scene.ledger().map(({ what }) => what)).toEqual(['start', 'end']);
    expect(resultsSeen(scene)).toEqual(['done: a']);
    expect(violations(await scene.client.history(id), [{ messageId: 'm1', result, expectedText: answerTo('do it') }])).toEqual([]);
  },
);

sceneTest(
  'a worker that lost its link to Temporal ends a tool after another worker has gone on: its late result changes nothing',
  { ledger: true, answer: (request) => echo(request, () => [{ name: 'pay', input: { item: 'a' } }]) },
  async (scene) => {
    const proxy = await startCuttingProxy(portOf(scene.address));
    const { id, sent } = await whileToolRuns(scene, `127.0.0.1:${proxy.port}`);

    await proxy.close();
    await scene.startWorker();
    const result = await sent;
    scene.letToolsEnd();
    await until('the end of the tool', () => scene.ledger().some(({ what }) => what === 'end'));
    const next = await scene.client.send(id, { id: 'm2', text: 'and now?' });

    expect(scene.ledger().map(({ what, item }) => `${what} ${item}`)).toEqual(['start a', 'end a', 'start a', 'end a']);
    const acknowledged = [
      { messageId: 'm1', result, expectedText: answerTo('do it') },
      { messageId: 'm2', result: next, expectedText: answerTo('and now?') },
    ];
    const history = await scene.client.history(id);
    expect(violations(history, acknowledged)).toEqual([]);
    expect(history.flatMap(({ message }) => (message.role === 'tool' ? [message.outcome] : []))).toEqual(['unknown', 'ok']);
  },
);

async function whileToolRuns(scene: Scene, address?: string) {
  const id = scene.id();
  const first = await scene.startWorker({ address });
  const sent = scene.client.send(id, { id: 'm1', text: 'do it' }, { start: {} });
  await until('a tool that has begun', () => scene.ledger().length > 0);
  return { id, first, sent };
}

/** What the last request told the model about the tools it had called. */
function resultsSeen(scene: Scene): string[] {
  const body = scene.api.hits.at(-1)?.body;
  return body ? latestResults(body).map(resultText) : [];
}
