/** kill -9 of the worker in the middle of a run: who watched and who runs the same again end with the store's text, byte for byte. */
import { HttpAgent, type BaseEvent } from '@ag-ui/client';
import { oneToken } from '../../../src/gateway/access/tokens.js';
import { serveGateway } from '../../../src/gateway/serve.js';
import { answerText } from '../../../src/records/message.js';
import { gate, text } from '../../support/provider-apis/reply.js';
import { sceneTest } from '../../support/scene.js';

const TOKEN = 'a-token-that-only-tests-have';
const ANSWER = 'Eins zwei drei vier fünf sechs sieben acht neun zehn — 🦔 elf zwölf.';

async function textOf(agent: HttpAgent): Promise<string> {
  let last: BaseEvent | undefined;
  await agent.runAgent({ runId: 'r1' }, { onEvent: ({ event }) => void (last = event) });
  expect(last).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'success' } });
  return agent.messages.map((one) => (one.role === 'assistant' ? String(one.content) : '')).join('');
}

sceneTest(
  'a run that was open and the same one run again end with the whole answer, once',
  { redis: true, impatient: true },
  async (scene) => {
    const held = gate({ chars: 20 });
    scene.api.play({ reply: { ...text(ANSWER), hold: held } }, { reply: text(ANSWER) });
    const gateway = await serveGateway({ client: scene.client, authenticate: oneToken(TOKEN), port: 0 });
    scene.onClose(() => gateway.close());
    const first = await scene.startWorker();
    const threadId = scene.id();
    const agentOf = (): HttpAgent => {
      const agent = new HttpAgent({ url: `${gateway.url}/agui`, threadId, headers: { authorization: `Bearer ${TOKEN}` } });
      agent.addMessage({ id: 'm1', role: 'user', content: 'count' });
      return agent;
    };
    const open = textOf(agentOf());
    await held.reached;
    await first.kill();
    const again = textOf(agentOf());
    await scene.startWorker();
    const texts = await Promise.all([open, again]);
    const stored = (await scene.client.history(threadId)).map(({ message }) => answerText(message)).join('');
    expect(stored).toBe(ANSWER);
    expect(texts).toEqual([stored, stored]);
    expect(scene.api.hits).toHaveLength(2);
  },
);
