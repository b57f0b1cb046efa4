/**
 * kill -9 of a worker while one conversation hears its model, one runs a tool that may run again and one a tool that must not; on Redis, that
 * server dies too. The other points at which a process can die, and the servers, are in the slow files of this folder.
 */
import { gate } from '../support/provider-apis/reply.js';
import { answerTo, echo, latestResults, resultText, saidIn } from '../support/echo-model.js';
import { sceneTest, until, type Scene } from '../support/scene.js';
import { violations } from './invariants.js';
import { startScreen } from './screen.js';

for (const store of ['files', 'redis'] as const) {
  const half = gate({ chars: 10 });
  let talks = 0;
  sceneTest(
    `kill -9 in mid-stream and in mid-tool: another worker gives each message one answer, and runs again only what may run again (${store})`,
    {
      ...{ redis: store === 'redis', impatient: true, ledger: true },
      answer(request) {
        const said = saidIn(request).at(-1) ?? '';
        const reply = echo(request, () => (said === 'talk' ? [] : [{ name: said, input: { item: said } }]));
        return said === 'talk' && ++talks === 1 ? { ...reply, hold: half } : reply;
      },
    },
    async (scene) => {
      const worker = await scene.startWorker();
      const lives = ['talk', 'note', 'pay'].map((said) => ({ said, id: scene.id() }));
      const [talk, note, pay] = lives.map(({ id }) => id) as [string, string, string];
      await scene.client.start(talk);
      const screen = startScreen(scene, talk);
      const sent = lives.map(({ id, said }) => scene.client.send(id, { id: said, text: said }, { start: {} }));
      await until('half an answer and two tools that have begun', () => screen.text !== '' && scene.ledger().length === 2);
      expect(screen.text).not.toBe(answerTo('talk'));

      await worker.kill();
      if (store === 'redis') {
        await scene.redis.kill();
        await scene.restartRedis();
      }
      scene.letToolsEnd();
      await scene.startWorker();
      const results = await Promise.all(sent);

      for (const [n, { id, said }] of lives.entries()) {
        const acknowledged = [{ messageId: said, result: results[n]!, expectedText: answerTo(said) }];
        expect([said, violations(await scene.client.history(id), acknowledged)]).toEqual([said, []]);
      }
      await until('the end on the screen', () => screen.ends.length > 0);
      expect(screen).toMatchObject({ text: answerTo('talk'), resets: 1, ends: ['end'] });
      expect(talks).toBe(2);
      const ran = scene.ledger().map(({ what, item }) => `${item}: ${what}`);
      expect(ran.sort()).toEqual(['note: end', 'note: start', 'note: start', 'pay: start']);
      expect(toldTo(scene, 'note')).toEqual(['done: note']);
      expect(toldTo(scene, 'pay')).toEqual([expect.stringContaining('outcome unknown')]);
      expect(await outcomesOf(scene, note)).toEqual(['ok']);
      expect(await outcomesOf(scene, pay)).toEqual(['unknown']);
      expect(scene.api.problems).toEqual([]);
    },
  );
}

/** What the model was told last of the tools that it had called. */
function toldTo(scene: Scene, said: string): string[] {
  const request = scene.api.hits.findLast(({ body }) => body !== undefined && saidIn(body).includes(said))?.body;
  return request === undefined ? [] : latestResults(request).map(resultText);
}

async function outcomesOf({ client }: Scene, id: string): Promise<string[]> {
  return (await client.history(id)).flatMap(({ message }) => (message.role === 'tool' ? [message.outcome] : []));
}
