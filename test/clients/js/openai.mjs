import OpenAI from 'openai';
import { zodResponseFormat, zodTextFormat } from 'openai/helpers/zod';
import { z } from 'zod';
import { BOTH, DATA_URL, TOKEN, URL, check, failing, same } from './checks.mjs';

const client = new OpenAI({ baseURL: `${URL}/v1`, apiKey: TOKEN });
const City = z.object({ name: z.string(), people: z.int() });
const CITY = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false };
const said = (content) => ({ model: 'default', messages: [{ role: 'user', content }] });
const ask = (content, more = {}) => client.chat.completions.create({ ...said(content), ...more });
const respond = (input, more = {}) => client.responses.create({ model: 'default', input, ...more });
const tools = ['weather', 'time_in'].map((name) => ({
  type: 'function',
  function: { name, description: name, parameters: CITY, strict: true },
}));
const flatTools = tools.map(({ function: { name, description, parameters } }) => ({
  type: 'function',
  name,
  description,
  parameters,
  strict: true,
}));

await check('Chat: plain and streamed, with usage', async () => {
  same((await ask('hello')).choices[0].message.content, 'You said: hello');
  const stream = client.chat.completions.stream({ ...said('in a stream'), stream_options: { include_usage: true } });
  same(await stream.finalContent(), 'You said: in a stream');
  same((await stream.totalUsage()).completion_tokens > 0, true);
});

await check('Chat: runTools', async () => {
  const runnable = {
    type: 'function',
    function: {
      name: 'weather',
      description: 'Weather',
      parameters: CITY,
      parse: JSON.parse,
      function: ({ city }) => `rain in ${city}`,
    },
  };
  const runner = client.chat.completions.runTools({ ...said('call weather {"city": "Oslo"}'), tools: [runnable] });
  same(await runner.finalContent(), 'The tools answered: rain in Oslo');
  const streamed = client.chat.completions.runTools({ ...said('call weather {"city": "Bergen"}'), tools: [runnable], stream: true });
  same(await streamed.finalContent(), 'The tools answered: rain in Bergen');
});

await check('Chat: a forced choice beside results, none, one call at a time', async () => {
  const first = await ask(BOTH, { tools });
  same(first.choices[0].finish_reason, 'tool_calls');
  const { message } = first.choices[0];
  same(
    message.tool_calls.map((call) => call.function.name),
    ['weather', 'time_in'],
  );
  const results = message.tool_calls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: 'rain' }));
  const messages = [...said(BOTH).messages, message, ...results];
  const forced = await client.chat.completions.create({
    ...{ model: 'default', messages, tools },
    tool_choice: { type: 'function', function: { name: 'weather' } },
  });
  same(forced.choices[0].message.tool_calls[0].function.name, 'weather');
  same((await ask(BOTH, { tools, parallel_tool_calls: false })).choices[0].message.tool_calls.length, 1);
  same((await ask('hello', { tools, tool_choice: 'none' })).choices[0].message.content, 'You said: hello');
});

await check('Chat: structured output by parse, also after a tool call', async () => {
  const format = { response_format: zodResponseFormat(City, 'city') };
  const parsed = await client.chat.completions.parse({ ...said('a city'), ...format });
  same(parsed.choices[0].message.parsed, { name: 'text', people: 7 });
  const first = await ask('call weather {"city": "Oslo"}', { tools, ...format });
  const { message } = first.choices[0];
  const result = { role: 'tool', tool_call_id: message.tool_calls[0].id, content: 'rain' };
  const messages = [...said('call weather {"city": "Oslo"}').messages, message, result];
  const after = await client.chat.completions.parse({ model: 'default', messages, tools, ...format });
  same(after.choices[0].message.parsed, { name: 'text', people: 7 });
});

await check('Chat: a picture', async () => {
  const content = [
    { type: 'text', text: 'report' },
    { type: 'image_url', image_url: { url: DATA_URL } },
  ];
  same(JSON.parse((await ask(content)).choices[0].message.content).pictures, 1);
});

await check('Chat: an answer that was cut keeps its words, and goes on', async () => {
  const cut = await ask('cut Half of');
  same([cut.choices[0].message.content, cut.choices[0].finish_reason], ['Half of', 'length']);
  const streamed = client.chat.completions.stream(said('cut Half of it'));
  const completion = await streamed.finalChatCompletion().catch((error) => error);
  same(completion.choices?.[0]?.finish_reason ?? completion.name, 'length');
  const messages = [...said('cut Half of').messages, cut.choices[0].message, { role: 'user', content: 'continue' }];
  same((await client.chat.completions.create({ model: 'default', messages })).choices[0].message.content, 'You said: continue');
});

await check('Chat: a refusal keeps its words, with its reason', async () => {
  const { choices } = await ask('refuse I would rather not');
  same([choices[0].message.content ?? choices[0].message.refusal, choices[0].finish_reason], ['I would rather not', 'content_filter']);
});

await check('Chat: errors', async () => {
  const failed = await failing(client.chat.completions.create(said('fail'), { maxRetries: 0 }));
  same(failed instanceof OpenAI.APIError, true);
  same(/this cannot be/.test(failed.message), true);
  same((await failing(new OpenAI({ baseURL: `${URL}/v1`, apiKey: 'wrong' }).models.list())).status, 401);
});

await check('Chat: a time-out and its retry are one conversation', async () => {
  const words = `slow ${'so it is said once. '.repeat(2)}${Date.now()}`;
  const answer = await client.chat.completions.create(said(words), { timeout: 2_500, maxRetries: 5 });
  same(answer.choices[0].message.content, words.slice('slow '.length));
  const { data } = await (await fetch(`${URL}/v1/conversations?limit=50`, { headers: { authorization: `Bearer ${TOKEN}` } })).json();
  const listed = JSON.stringify(data ?? {});
  same(listed.split(words.slice(0, 40)).length - 1 <= 1, true);
});

await check('Chat: cancelled in mid-stream, then the next is answered', async () => {
  const stream = await client.chat.completions.create({ ...said('slow this is cancelled by its client'), stream: true });
  for await (const chunk of stream) {
    if (chunk.choices[0]?.delta?.content) break;
  }
  stream.controller.abort();
  same((await ask('after that')).choices[0].message.content, 'You said: after that');
});

await check('Responses: plain, streamed, continued and read again', async () => {
  const first = await respond('hello');
  same([first.output_text, first.status], ['You said: hello', 'completed']);
  const second = await respond('again', { previous_response_id: first.id, metadata: { a: 'b' }, temperature: 0.5 });
  same([second.output_text, second.metadata, second.temperature], ['You said: again', { a: 'b' }, 0.5]);
  const read = await client.responses.retrieve(second.id);
  same([read.output_text, read.usage.output_tokens], ['You said: again', second.usage.output_tokens]);
  const stream = client.responses.stream({ model: 'default', input: 'in a stream' });
  let text = '';
  for await (const event of stream) if (event.type === 'response.output_text.delta') text += event.delta;
  same([text, (await stream.finalResponse()).output_text], ['You said: in a stream', 'You said: in a stream']);
});

await check('Responses: tools, a forced choice, one call at a time', async () => {
  const first = await respond(BOTH, { tools: flatTools });
  const calls = first.output.filter(({ type }) => type === 'function_call');
  same(
    calls.map(({ name }) => name),
    ['weather', 'time_in'],
  );
  const results = calls.map(({ call_id }) => ({ type: 'function_call_output', call_id, output: 'rain' }));
  const input = [{ role: 'user', content: BOTH }, ...first.output, ...results];
  same((await respond(input, { tools: flatTools })).output_text, 'The tools answered: rain, rain');
  const forced = await respond(BOTH, { tools: flatTools, tool_choice: { type: 'function', name: 'time_in' }, parallel_tool_calls: false });
  same(
    forced.output.flatMap((one) => (one.type === 'function_call' ? [one.name] : [])),
    ['time_in'],
  );
});

await check('Responses: structured output, cut, refused', async () => {
  const parsed = await client.responses.parse({ model: 'default', input: 'a city', text: { format: zodTextFormat(City, 'city') } });
  same(parsed.output_parsed, { name: 'text', people: 7 });
  same(parsed.text.format.type, 'json_schema');
  const cut = await respond('cut Half of');
  same([cut.output_text, cut.status, cut.incomplete_details.reason], ['Half of', 'incomplete', 'max_output_tokens']);
  const refused = await respond('refuse I would rather not');
  same([refused.output_text, refused.incomplete_details.reason], ['I would rather not', 'content_filter']);
});

await check('Responses: a conversation of its own, in the background', async () => {
  const begun = await respond('later', { background: true });
  let read = begun;
  while (['queued', 'in_progress'].includes(read.status)) {
    await new Promise((resolve) => setTimeout(resolve, 200));
    read = await client.responses.retrieve(begun.id);
  }
  same(read.output_text, 'You said: later');
});
