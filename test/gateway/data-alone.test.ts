/** An answer that has to fit a schema is that data alone, whatever the model said before it (core/data-alone). */
import OpenAI from 'openai';
import type { GatewayApp } from '../../src/gateway/context.js';
import { createGateway } from '../../src/gateway/app.js';
import { oneToken } from '../../src/gateway/access/entrance.js';
import { latestResults, saidIn } from '../support/echo-model.js';
import { TOKEN } from '../support/event-reader.js';
import { begunSince, listedIds } from '../support/listed-ids.js';
import type { ApiRequest } from '../support/provider-apis/api-request.js';
import { callTools, text, type Reply } from '../support/provider-apis/reply.js';
import { fetchInto } from '../support/into-app.js';
import { startWorld, type World } from '../support/world.js';

const DATA = { city: 'Oslo' };
const JSON_TEXT = JSON.stringify(DATA);
const SCHEMA = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false };

/** What the model says before the data: beside a call of a tool, and in place of the data, which it then corrects. */
const ASIDES = { look: 'I look it up.', mend: 'It is Oslo.', wrong: '{"town":"Oslo"}', wait: 'I ask you.' } as const;

let world: World;
let app: GatewayApp;
let openai: OpenAI;

function answer(request: ApiRequest): Reply {
  const said = saidIn(request);
  const what = said.find((one) => one in ASIDES || Object.keys(ASIDES).some((word) => one.startsWith(word))) ?? '';
  const results = latestResults(request).length;
  if (what.startsWith('look') && results === 0) return { text: ASIDES.look, ...callTools({ name: 'get_time', input: {} }) };
  if (what.startsWith('wait') && results === 0) return { text: ASIDES.wait, ...callTools({ name: 'client__where', input: {} }) };
  const isMended = JSON.stringify(request.messages).includes('does not fit the schema');
  if (what.startsWith('mend') && !isMended) return text(ASIDES.mend);
  if (what.startsWith('wrong') && !isMended) return text(ASIDES.wrong);
  return text(JSON_TEXT);
}

beforeAll(async () => {
  world = await startWorld({ engine: 'memory', answer });
  app = createGateway({ client: world.client, authenticate: oneToken(TOKEN), agents: () => Promise.resolve(['default']) });
  const fetch = fetchInto(app);
  openai = new OpenAI({ apiKey: TOKEN, baseURL: 'http://localhost/v1', maxRetries: 0, fetch });
});
afterAll(() => world.close());

const model = 'default';
const response_format = { type: 'json_schema' as const, json_schema: { name: 'place', schema: SCHEMA, strict: true } };
const format = { type: 'json_schema' as const, name: 'place', schema: SCHEMA, strict: true };
const user = (content: string) => ({ role: 'user' as const, content });

describe.each(['look', 'mend', 'wrong'] as const)('%s', (what) => {
  test('chat completions, streamed and not, and the next message goes on in the same conversation', async () => {
    const first = user(`${what} one`);
    const whole = await openai.chat.completions.parse({ model, messages: [first], response_format });
    expect(whole.choices[0]?.message).toMatchObject({ content: JSON_TEXT, parsed: DATA });
    const streamed = openai.chat.completions.stream({ model, messages: [user(`${what} two`)], response_format });
    expect((await streamed.finalChatCompletion()).choices[0]?.message).toMatchObject({ content: JSON_TEXT });
    const before = await listedIds(world.client);
    const messages = [first, { role: 'assistant' as const, content: JSON_TEXT }, user('and again')];
    await openai.chat.completions.create({ model, messages, response_format });
    expect(await begunSince(world.client, before)).toEqual([]);
  });

  test('responses, streamed and not, and asked for later: other words are no message of the answer', async () => {
    const output = [
      { type: 'reasoning', summary: [{ text: ASIDES[what] }] },
      { type: 'message', content: [{ text: JSON_TEXT }] },
    ];
    const whole = await openai.responses.parse({ model, input: `${what} three`, text: { format } });
    expect(whole).toMatchObject({ output_text: JSON_TEXT, output_parsed: DATA, output });
    expect(await openai.responses.retrieve(whole.id)).toMatchObject({ output, text: { format: { schema: SCHEMA } } });
    const stream = openai.responses.stream({ model, input: `${what} four`, text: { format } });
    const done = [];
    for await (const event of stream) if (event.type === 'response.output_item.done') done.push(event.item);
    expect(done).toMatchObject(output);
    expect(await stream.finalResponse()).toMatchObject({ output_text: JSON_TEXT, output });
  });

  test('native: text and payload, waited for and streamed', async () => {
    const send = (accept: string) =>
      app.request(`http://localhost/v1/conversations/${world.id()}/messages`, {
        method: 'POST',
        headers: { host: 'localhost', authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json', accept },
        body: JSON.stringify({ text: `${what} five`, output: SCHEMA, start: {} }),
      });
    const expected = { text: JSON_TEXT, payload: DATA };
    expect(await (await send('application/json')).json()).toMatchObject(expected);
    const last = (await (await send('text/event-stream')).text()).split('\n').findLast((line) => line.startsWith('data: {')) ?? '';
    expect(JSON.parse(last.slice('data: '.length))).toMatchObject({ kind: 'turn-finished', result: expected });
  });
});

test('words beside a call that the client runs are no answer, and the turn goes on from a history without them', async () => {
  const tools = [{ type: 'function' as const, function: { name: 'where', parameters: { type: 'object', properties: {} }, strict: true } }];
  const first = user('wait for me');
  const asked = await openai.chat.completions.parse({ model, messages: [first], response_format, tools });
  const message = asked.choices[0]?.message;
  expect(message).toMatchObject({ content: null, tool_calls: [{ function: { name: 'where' } }] });
  const [call] = message?.tool_calls ?? [];
  const before = await listedIds(world.client);
  const messages: OpenAI.ChatCompletionMessageParam[] = [
    first,
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: call?.id ?? '', type: 'function', function: { name: 'where', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: call?.id ?? '', content: 'Norway' },
  ];
  const streamed = openai.chat.completions.stream({ model, messages, response_format, tools });
  expect((await streamed.finalChatCompletion()).choices[0]?.message).toMatchObject({ content: JSON_TEXT });
  const next = [...messages, { role: 'assistant' as const, content: JSON_TEXT }, user('and again')];
  await openai.chat.completions.create({ model, messages: next, response_format, tools });
  expect(await begunSince(world.client, before)).toEqual([]);
});
