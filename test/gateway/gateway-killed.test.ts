/** A gateway remembers nothing: kill -9 of it in the middle of three answers, and another one goes on with them. */
import { gate, text } from '../support/provider-apis/reply.js';
import { sceneTest, until } from '../support/scene.js';
import { chatClient, eventClient, responsesClient } from '../support/stream-clients.js';

const ANSWER = 'Один два três 四 five six seven eight nine ten — 🦔 eleven twelve, and a last word: déjà vu.';

sceneTest('clients of three protocols end with the whole answer, of one turn each', { redis: true }, async (scene) => {
  const held = gate({ chars: 20 });
  scene.api.play(...Array.from({ length: 3 }, () => ({ reply: { ...text(ANSWER), hold: held } })));
  await scene.startWorker();
  let gateway = await scene.startGateway();
  const where = (): string => gateway.url;
  const clients = [eventClient(where, scene.id()), chatClient(where, scene.id(), ANSWER), responsesClient(where)];
  const another = scene.startGateway();
  await Promise.all(clients.map((client) => client.begin()));
  await gateway.kill();
  gateway = await another;
  const back = clients.map((client) => until('the end of the answer', () => client.comeBack(), 80_000));
  held.release();
  await Promise.all(back);
  expect(clients.map((client) => client.final())).toEqual([ANSWER, ANSWER, ANSWER]);
  expect(scene.api.hits).toHaveLength(3);
  for (const client of clients) expect((await scene.client.status(client.conversation())).turns).toBe(1);
});
