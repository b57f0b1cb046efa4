/** kill -9 of the gateway in the middle of a request that its client then repeats by itself: still one conversation, and one run of its tool. */
import OpenAI from 'openai';
import { latestResults, resultText } from '../support/echo-model.js';
import { listedIds } from '../support/listed-ids.js';
import { callTool, gate, text } from '../support/provider-apis/reply.js';
import { sceneTest, until } from '../support/scene.js';

const held = gate({ chars: 4 });

sceneTest(
  'an unmodified client, and another gateway on the same Redis',
  {
    redis: true,
    ledger: true,
    answer: (request) => {
      const [result] = latestResults(request);
      return result ? { ...text(`It said ${resultText(result)}.`), hold: held } : callTool('note', { item: 'milk' });
    },
  },
  async (scene) => {
    await scene.startWorker();
    scene.letToolsEnd();
    const gateway = await scene.startGateway();
    const sent: (string | null)[] = [];
    const client = new OpenAI({
      apiKey: gateway.token,
      baseURL: `${gateway.url}/v1`,
      maxRetries: 20,
      fetch: (at, init) => {
        sent.push(new Headers(init?.headers).get('x-stainless-retry-count'));
        return fetch(at, init);
      },
    });
    const answer = client.chat.completions.create({ model: 'default', messages: [{ role: 'user', content: 'note milk' }] });
    answer.catch(() => undefined);
    await until('the answer to what the tool said', () => scene.api.hits.length === 2);
    await gateway.kill();
    await scene.startGateway({ port: gateway.port });
    held.release();
    expect((await answer).choices[0]?.message.content).toMatch(/^It said /);
    expect([sent[0], Number(sent.at(-1)) > 0]).toEqual(['0', true]);
    expect(scene.ledger().filter(({ what }) => what === 'start')).toHaveLength(1);
    expect(scene.api.hits).toHaveLength(2);
    expect(await listedIds(scene.client)).toHaveLength(1);
  },
);
