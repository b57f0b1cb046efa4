/** What becomes of one conversation in the requests of the AI SDK's packages, and what strict servers say to it. */
import type { ModelRequest, ModelResponse } from '../../src/models/model.js';
import { normalize } from '../../src/models/normalize.js';
import type { ConversationMessage } from '../../src/records/message.js';
import { callTools, text, type Reply } from '../support/provider-apis/reply.js';
import { makers, modelOf, type MakerName } from './ai-sdk-makers.js';
import { call, request, result, says, user } from './builders.js';
import { goldenRequest, oddMessages } from './golden.js';
import type { Api } from './subjects.js';

const names = Object.keys(makers) as MakerName[];
let api: Api;

afterEach(() => api.close());

async function open(name: MakerName) {
  api = await makers[name].start();
  const model = modelOf(name, api.url);
  return async (reply: Reply, parts: Partial<ModelRequest>): Promise<ModelResponse> => {
    api.play({ reply });
    const messages = normalize(parts.messages ?? [user('hello')], { provider: name });
    const whole = request({ model: makers[name].model, ...parts, messages });
    return await model.stream(whole, { signal: new AbortController().signal, onDelta: () => {} });
  };
}

test.each(names)('%s: the golden request', async (name) => {
  const ask = await open(name);
  const { messages, tools } = goldenRequest(makers[name].model);
  await ask(text('You are welcome.'), { messages, tools });
  expect(api.problems).toEqual([]);
  expect(api.hits[0]?.body).toMatchSnapshot();
});
