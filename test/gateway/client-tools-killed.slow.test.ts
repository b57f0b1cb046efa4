/** A worker that dies while a turn waits for what its client runs, and another gateway that takes the answer. */
import OpenAI from 'openai';
import { oneToken } from '../../src/gateway/access/entrance.js';
import { serveGateway } from '../../src/gateway/index.js';
import { latestResults, resultText, saidIn } from '../support/echo-model.js';
import { listedIds } from '../support/listed-ids.js';
import { callTools, text } from '../support/provider-apis/reply.js';
import { sceneTest } from '../support/scene.js';

const TOKEN = 'a-token-that-only-tests-have';
const WORDS = 'All of this is said in one breath, and it is long enough to be cut in two.';
const tools = [{ type: 'function' as const, function: { name: 'look', parameters: { type: 'object', properties: {} } } }];

let answers = 0;

sceneTest(
  'kill -9 of the worker while the client’s calls wait, and once more while the model answers to their results',
  {
    impatient: true,
    redis: true,
    answer: (request) => {
      const results = latestResults(request);
      if (results.length === 0) return { text: 'Let me see.', ...callTools({ name: 'client__look' }, { name: 'client__look' }) };
      answers += 1;
      return { ...text(`${saidIn(request).at(-1)}: ${results.map(resultText).join()}. ${WORDS}`), chunks: { size: 6, delayMs: 100 } };
    },
  },
  async (scene) => {
    const serve = async (): Promise<OpenAI> => {
      const gateway = await serveGateway({ client: scene.client, authenticate: oneToken(TOKEN), port: 0 });
      scene.onClose(() => gateway.close());
      return new OpenAI({ apiKey: TOKEN, baseURL: `${gateway.url}/v1` });
    };
    const [first, second] = [await serve(), await serve()];
    const worker = await scene.startWorker();
    const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'tell' }];
    const asked = (await first.chat.completions.create({ model: 'default', messages, tools })).choices[0]?.message;
    if (!asked?.tool_calls) throw new Error('no calls');
    await worker.kill();
    const next = await scene.startWorker();
    messages.push(asked, ...asked.tool_calls.map(({ id }, at) => ({ role: 'tool' as const, tool_call_id: id, content: `seen ${at}` })));
    let killed: Promise<unknown> | undefined;
    let streamed = '';
    for await (const { choices } of await second.chat.completions.create({ model: 'default', messages, tools, stream: true })) {
      streamed += choices[0]?.delta.content ?? '';
      if (streamed !== '') killed ??= next.kill().then(() => scene.startWorker());
    }
    await killed;
    expect(streamed).toBe(`tell: seen 0,seen 1. ${WORDS}`);
    const asks = answers;
    const once = await first.chat.completions.create({ model: 'default', messages, tools });
    const more = await second.chat.completions.create({ model: 'default', messages, tools });
    expect([once, more].map(({ choices }) => choices[0]?.message.content)).toEqual([streamed, streamed]);
    expect(answers).toBe(asks);
    const own = await listedIds(scene.client);
    expect(own.filter((id) => id.startsWith('api-'))).toHaveLength(1);
  },
);
