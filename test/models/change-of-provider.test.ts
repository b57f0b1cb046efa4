import type { AssistantBlock, AssistantMessage, ConversationMessage } from '../../src/records/message.js';
import { normalize } from '../../src/models/normalize.js';
import type { Reply } from '../support/provider-apis/reply.js';
import { request, result, user } from './builders.js';
import { KEY, subjects, type Api, type Subject } from './subjects.js';

const tools = [{ name: 'read_file', description: 'Reads.', inputSchema: { type: 'object', properties: {} } }];
const calls: Reply = {
  thinking: { text: 'I should look.', signature: 'c2lnbmF0dXJl' },
  text: 'Let me look.',
  toolCalls: [
    { name: 'read_file', input: { path: 'a.txt' } },
    { name: 'read_file', input: { path: 'b.txt' } },
  ],
};

const servers = new Map<string, Api>();

beforeAll(async () => {
  for (const subject of subjects) servers.set(subject.provider, await subject.start());
});

afterAll(async () => {
  for (const api of servers.values()) await api.close();
});

async function ask(subject: Subject, reply: Reply, history: readonly ConversationMessage[]): Promise<AssistantMessage> {
  const { provider, model } = subject;
  const api = servers.get(provider) as Api;
  api.play({ reply });
  const { blocks, stop } = await subject
    .create({ apiKey: KEY, url: api.url })
    .stream(request({ model, tools, messages: normalize(history, { provider }) }), {
      signal: new AbortController().signal,
      onDelta: () => {},
    });
  expect(api.problems).toEqual([]);
  return { role: 'assistant', blocks: withOurIds(blocks, history.length), stop, model: `${provider}/${model}` };
}

/** As the activity gives them. */
function withOurIds(blocks: readonly AssistantBlock[], turn: number): AssistantBlock[] {
  return blocks.map((block, at) => (block.kind === 'tool-call' ? { ...block, callId: `turn_${turn}/c${at}` } : block));
}

function resultsOf({ blocks }: AssistantMessage): ConversationMessage[] {
  return blocks.flatMap((block) =>
    block.kind === 'tool-call' ? [result(block.callId, `read ${JSON.stringify(block.input)}`, 'ok', block.name)] : [],
  );
}

/** A turn of one provider: two calls at once, their results, an answer. */
async function turnOf(subject: Subject, history: readonly ConversationMessage[]): Promise<ConversationMessage[]> {
  const asked = [...history, user('What is in them?')];
  const called = await ask(subject, calls, asked);
  const answered = [...asked, called, ...resultsOf(called)];
  return [...answered, await ask(subject, { text: 'Words.' }, answered)];
}

const pairs = subjects.flatMap((from) => subjects.flatMap((to) => (from === to ? [] : [[from.provider, to.provider, from, to] as const])));

test.each(pairs)('a conversation begun with %s goes on with %s, its tools included', async (_from, _to, from, to) => {
  const history = await turnOf(to, await turnOf(from, []));
  const api = servers.get(to.provider) as Api;
  const sent = JSON.stringify(api.hits.at(-1)?.body);
  // Both turns' calls and results are there, and of the first one's thinking nothing.
  expect(sent.split('a.txt').length - 1).toBe(4);
  expect(history.filter(({ role }) => role === 'tool')).toHaveLength(4);
  expect(sent.split('c2lnbmF0dXJl').length - 1).toBe(to.signsThinking ? 1 : 0);
  const spoken = to.provider === 'anthropic' ? 1 : to.provider === 'openai-responses' ? 1 : 0;
  expect(sent.split('I should look.').length - 1).toBe(spoken);
});

test.each(pairs)('a turn that %s began in the middle of its tools is finished by %s', async (_from, _to, from, to) => {
  const asked = [user('What is in them?')];
  const called = await ask(from, calls, asked);
  const answer = await ask(to, { text: 'Words.' }, [...asked, called, ...resultsOf(called)]);
  expect(answer.stop).toBe('end');
});

test('a conversation that goes through all of them and back is taken by each', async () => {
  let history: ConversationMessage[] = [];
  for (const subject of [...subjects, ...subjects]) history = await turnOf(subject, history);
  expect(history.filter(({ role }) => role === 'tool')).toHaveLength(20);
});
