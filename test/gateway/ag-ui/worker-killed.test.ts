/** kill -9 of the worker in the middle of a run: who watched and who runs the same again end with the store's text, byte for byte. */
import { HttpAgent, type BaseEvent } from '@ag-ui/client';
import { oneToken } from '../../../src/gateway/access/tokens.js';
import { serveGateway } from '../../../src/gateway/serve.js';
import { answerText } from '../../../src/records/message.js';
import { callTools, gate, text } from '../../support/provider-apis/reply.js';
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

sceneTest(
  'a worker that dies while the client’s tool is waited for: its message goes on in another gateway, with another worker',
  { redis: true, impatient: true },
  async (scene) => {
    scene.api.play({ reply: { text: 'I look.', ...callTools({ name: 'client__look' }) } }, { reply: text(ANSWER) });
    const serve = async (): Promise<string> => {
      const gateway = await serveGateway({ client: scene.client, authenticate: oneToken(TOKEN), port: 0 });
      scene.onClose(() => gateway.close());
      return `${gateway.url}/agui`;
    };
    const [one, two] = [await serve(), await serve()];
    const threadId = scene.id();
    const agentAt = (url: string): HttpAgent => new HttpAgent({ url, threadId, headers: { authorization: `Bearer ${TOKEN}` } });
    const run = async (agent: HttpAgent): Promise<BaseEvent | undefined> => {
      let last: BaseEvent | undefined;
      const tools = [{ name: 'look', description: 'Looks.', parameters: { type: 'object' } }];
      await agent.runAgent({ tools }, { onEvent: ({ event }) => void (last = event) });
      return last;
    };
    const first = await scene.startWorker();
    const agent = agentAt(one);
    agent.addMessage({ id: 'm1', role: 'user', content: 'look' });
    expect(await run(agent)).toMatchObject({ outcome: { pendingToolCallIds: ['turn_0001/c1'] } });
    await first.kill();
    const other = agentAt(two);
    other.setMessages(agent.messages);
    other.addMessage({ id: 'mine', role: 'tool', toolCallId: 'turn_0001/c1', content: 'seen' });
    const going = run(other);
    await scene.startWorker();
    expect(await going).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'success' } });
    expect(other.messages.flatMap((m) => (m.role === 'assistant' && m.content ? [m.content] : []))).toEqual(['I look.', ANSWER]);
    expect(scene.api.hits).toHaveLength(2);
  },
);
