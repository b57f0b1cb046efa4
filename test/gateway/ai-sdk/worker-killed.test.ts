/** kill -9 of the worker in the middle of a stream: who watched and who comes back end with the store's text, byte for byte. */
import { DefaultChatTransport, readUIMessageStream, type UIMessage, type UIMessageChunk } from 'ai';
import { oneToken } from '../../../src/gateway/access/tokens.js';
import { serveGateway } from '../../../src/gateway/serve.js';
import { answerText } from '../../../src/records/message.js';
import { gate, text } from '../../support/provider-apis/reply.js';
import { sceneTest } from '../../support/scene.js';

const TOKEN = 'a-token-that-only-tests-have';
const ANSWER = 'Eins zwei drei vier fünf sechs sieben acht neun zehn — 🦔 elf zwölf.';

async function textOf(stream: ReadableStream<UIMessageChunk> | null): Promise<string> {
  let last: UIMessage | undefined;
  if (stream === null) throw new Error('there is no stream');
  for await (const message of readUIMessageStream({ stream, terminateOnError: true })) last = message;
  const parts = last?.parts ?? [];
  return parts
    .flatMap((part) => (part.type === 'text' && part.providerMetadata?.['perdura']?.['void'] !== true ? [part.text] : []))
    .join('');
}

sceneTest(
  'a stream that was open and one that was resumed end with the whole answer, once',
  { redis: true, impatient: true },
  async (scene) => {
    const held = gate({ chars: 20 });
    scene.api.play({ reply: { ...text(ANSWER), hold: held } }, { reply: text(ANSWER) });
    const gateway = await serveGateway({ client: scene.client, authenticate: oneToken(TOKEN), port: 0 });
    scene.onClose(() => gateway.close());
    const first = await scene.startWorker();
    const chatId = scene.id();
    const transport = new DefaultChatTransport({ api: `${gateway.url}/api/chat`, headers: { authorization: `Bearer ${TOKEN}` } });
    const messages: UIMessage[] = [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'count' }] }];
    const open = textOf(
      await transport.sendMessages({ chatId, messages, trigger: 'submit-message', messageId: undefined, abortSignal: undefined }),
    );
    await held.reached;
    await first.kill();
    const resumed = textOf(await transport.reconnectToStream({ chatId }));
    await scene.startWorker();
    const texts = await Promise.all([open, resumed]);
    const stored = (await scene.client.history(chatId)).map(({ message }) => answerText(message)).join('');
    expect(stored).toBe(ANSWER);
    expect(texts).toEqual([stored, stored]);
    expect(scene.api.hits).toHaveLength(2);
  },
);
