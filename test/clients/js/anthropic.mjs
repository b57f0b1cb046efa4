import Anthropic from '@anthropic-ai/sdk';
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod';
import { z } from 'zod';
import { BOTH, PNG, TOKEN, URL, check, failing, same } from './checks.mjs';

const client = new Anthropic({ baseURL: URL, apiKey: TOKEN });
const input_schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const tools = ['weather', 'time_in'].map((name) => ({ name, description: name, input_schema }));
const said = (content, more = {}) => ({ model: 'default', max_tokens: 1000, messages: [{ role: 'user', content }], ...more });
const ask = (content, more) => client.messages.create(said(content, more));
const words = ({ content }) => content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('');
const calls = ({ content }) => content.filter(({ type }) => type === 'tool_use');

await check('plain and streamed', async () => {
  same(words(await ask('hello')), 'You said: hello');
  const stream = client.messages.stream(said('in a stream'));
  same(await stream.finalText(), 'You said: in a stream');
  same((await stream.finalMessage()).usage.output_tokens > 0, true);
});

await check('tools, a forced choice beside results, one call at a time', async () => {
  const first = await ask(BOTH, { tools });
  same([calls(first).map(({ name }) => name), first.stop_reason], [['weather', 'time_in'], 'tool_use']);
  const results = calls(first).map(({ id }) => ({ type: 'tool_result', tool_use_id: id, content: 'rain' }));
  const messages = [
    { role: 'user', content: BOTH },
    { role: 'assistant', content: first.content },
    { role: 'user', content: results },
  ];
  const forced = await client.messages.create({ ...said(''), messages, tools, tool_choice: { type: 'tool', name: 'time_in' } });
  same(
    calls(forced).map(({ name }) => name),
    ['time_in'],
  );
  const one = await ask(BOTH, { tools, tool_choice: { type: 'any', disable_parallel_tool_use: true } });
  same(calls(one).length, 1);
});

await check('toolRunner', async () => {
  const weather = betaZodTool({
    name: 'weather',
    description: 'Weather',
    inputSchema: z.object({ city: z.string() }),
    run: ({ city }) => `rain in ${city}`,
  });
  const last = await client.beta.messages.toolRunner(said('call weather {"city": "Oslo"}', { tools: [weather] }));
  same(words(last), 'The tools answered: rain in Oslo');
});

await check('structured output by output_config', async () => {
  const schema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'], additionalProperties: false };
  const answer = await ask('a city', { output_config: { format: { type: 'json_schema', schema } } });
  same(JSON.parse(words(answer)), { name: 'text' });
});

await check('a picture, of a person and of a tool', async () => {
  const picture = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } };
  same(JSON.parse(words(await ask([picture, { type: 'text', text: 'report' }]))).pictures, 1);
  const first = await ask('call weather {"city": "Oslo"}', { tools });
  const results = calls(first).map(({ id }) => ({ type: 'tool_result', tool_use_id: id, content: [picture] }));
  const messages = [
    { role: 'user', content: 'call weather {"city": "Oslo"}' },
    { role: 'assistant', content: first.content },
    { role: 'user', content: [...results, { type: 'text', text: 'report' }] },
  ];
  same(JSON.parse(words(await client.messages.create({ ...said(''), messages, tools }))).pictures, 1);
});

await check('cut and continued, refused', async () => {
  const cut = await ask('cut Half of');
  same([words(cut), cut.stop_reason], ['Half of', 'max_tokens']);
  const messages = [
    { role: 'user', content: 'cut Half of' },
    { role: 'assistant', content: cut.content },
    { role: 'user', content: 'continue' },
  ];
  same(words(await client.messages.create({ ...said(''), messages })), 'You said: continue');
  const refused = await ask('refuse I would rather not');
  same([words(refused), refused.stop_reason], ['I would rather not', 'refusal']);
  const streamed = client.messages.stream(said('cut Half of it'));
  same([words(await streamed.finalMessage()), (await streamed.finalMessage()).stop_reason], ['Half of it', 'max_tokens']);
});

await check('errors, with the id of the request', async () => {
  const failed = await failing(client.messages.create(said('fail'), { maxRetries: 0 }));
  same(/this cannot be/.test(failed.message), true);
  const wrong = await failing(new Anthropic({ baseURL: URL, apiKey: 'wrong' }).messages.create(said('x')));
  same([wrong.status, wrong.requestID === null || wrong.requestID === undefined], [401, false]);
});

await check('a time-out and its retry are one answer', async () => {
  const text = `slow ${'so it is said once. '.repeat(2)}${Date.now()}`;
  const answer = await client.messages.create(said(text), { timeout: 2_500, maxRetries: 5 });
  same(words(answer), text.slice('slow '.length));
});

await check('cancelled in mid-stream, then the next is answered', async () => {
  const stream = await client.messages.create({ ...said('slow this is cancelled by its client'), stream: true });
  for await (const event of stream) if (event.type === 'content_block_delta') break;
  stream.controller.abort();
  same(words(await ask('after that')), 'You said: after that');
});

await check('counted tokens, models', async () => {
  const { input_tokens } = await client.messages.countTokens({ model: 'default', messages: [{ role: 'user', content: 'How many?' }] });
  same(input_tokens > 0, true);
  const ids = [];
  for await (const model of client.models.list()) ids.push(model.id);
  same(ids.includes('default'), true);
});
