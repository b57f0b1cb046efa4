/**
 * kill -9 of the only worker in the middle of a turn: clients that read no stream hear of it in their protocol's words, and the turn goes on
 * once a worker is back; the same request has its answer then, and the model was not asked for another.
 */
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { timeoutSignal } from '../../src/platform/promises.js';
import { answerText } from '../../src/records/message.js';
import { listedIds } from '../support/listed-ids.js';
import { gate, text } from '../support/provider-apis/reply.js';
import { sceneTest, until } from '../support/scene.js';
import { saidIn } from '../support/echo-model.js';

const held = gate({ chars: 4 });
/** Far more than the patience of `perdura serve`: only a request without an end meets it. */
const BOUND_MS = 150_000;
const model = 'default';

sceneTest(
  'each client has an error in bounded time, and one answer later',
  { redis: true, impatient: true, answer: (request) => ({ ...text(`You said: ${saidIn(request).at(-1)}`), hold: held }) },
  async (scene) => {
    const worker = await scene.startWorker();
    const { url, token } = await scene.startGateway();
    const openai = new OpenAI({ apiKey: token, baseURL: `${url}/v1`, maxRetries: 0, timeout: BOUND_MS });
    const anthropic = new Anthropic({ authToken: token, apiKey: null, baseURL: url, maxRetries: 0, timeout: BOUND_MS });
    const named = scene.id();
    const user = (content: string) => ({ role: 'user' as const, content });
    const options = (idempotencyKey: string) => ({ idempotencyKey, headers: { 'Idempotency-Key': idempotencyKey } });
    const native = async (): Promise<string> => {
      const response = await fetch(`${url}/v1/conversations/${named}/messages?wait=60`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ id: 'native', text: 'native', start: {} }),
        signal: timeoutSignal(BOUND_MS),
      });
      const answer = (await response.json()) as { text?: string; detail?: string };
      if (!response.ok) throw Object.assign(new Error(JSON.stringify(answer)), { status: response.status });
      return answer.text ?? '';
    };
    const requests: readonly (() => Promise<string>)[] = [
      async () =>
        (await openai.chat.completions.create({ model, messages: [user('chat')] }, options('chat'))).choices[0]?.message.content ?? '',
      async () => (await openai.responses.create({ model, input: 'responses' }, options('responses'))).output_text,
      async () => {
        const { content } = await anthropic.messages.create({ model, max_tokens: 99, messages: [user('messages')] }, options('messages'));
        return content.map((block) => (block.type === 'text' ? block.text : '')).join('');
      },
      native,
    ];
    const first = requests.map((request) => request().then(String, (error: unknown) => error));
    await until('the middle of each turn', () => scene.api.hits.length === requests.length);
    await worker.kill();
    expect((await Promise.all(first)).map((error) => ({ ...(error as object), words: String(error) }))).toMatchObject(
      first.map(() => ({ status: 503, words: expect.stringMatching(/no worker takes work/) as string })),
    );
    held.release();
    await scene.startWorker();
    const answers = await Promise.all(requests.map((request) => until('the answer', request)));
    expect(answers).toEqual(['chat', 'responses', 'messages', 'native'].map((what) => `You said: ${what}`));
    const all = await listedIds(scene.client);
    expect(all).toHaveLength(requests.length);
    for (const id of all) {
      expect((await scene.client.status(id)).turns).toBe(1);
      const said = (await scene.client.history(id)).map(({ message }) => (message.role === 'user' ? 'user' : answerText(message)));
      expect(said).toEqual(['user', expect.stringMatching(/^You said: /)]);
    }
    // One call that died with its worker, and one in its place.
    expect(scene.api.hits).toHaveLength(2 * requests.length);
  },
);
