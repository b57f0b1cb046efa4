/** The AI SDK, with the providers that people name: Responses, Chat Completions and Messages. */
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, jsonSchema, Output, stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';
import { BOTH, PNG, TOKEN, URL, check, failing, same } from './checks.mjs';

const baseURL = `${URL}/v1`;
const openai = createOpenAI({ baseURL, apiKey: TOKEN });
const MODELS = {
  'openai, Responses': openai('default'),
  'openai, Chat': openai.chat('default'),
  anthropic: createAnthropic({ baseURL, apiKey: TOKEN })('default'),
  'openai-compatible': createOpenAICompatible({
    name: 'perdura',
    baseURL,
    apiKey: TOKEN,
    supportsStructuredOutputs: true,
    includeUsage: true,
  })('default'),
};
const toolOf = (what) =>
  tool({ description: what, inputSchema: z.object({ city: z.string() }), execute: ({ city }) => `${what} in ${city}` });
const tools = { weather: toolOf('rain'), time_in: toolOf('noon') };
const City = z.object({ name: z.string(), people: z.number().int() });

for (const [name, model] of Object.entries(MODELS)) {
  const base = { model, maxRetries: 0 };

  await check(`${name}: generateText and streamText`, async () => {
    same((await generateText({ ...base, prompt: 'hello' })).text, 'You said: hello');
    const stream = streamText({ ...base, prompt: 'in a stream' });
    let text = '';
    for await (const part of stream.textStream) text += part;
    same([text, await stream.finishReason, (await stream.usage).outputTokens > 0], ['You said: in a stream', 'stop', true]);
  });

  await check(`${name}: tools over several steps`, async () => {
    const { text, steps } = await generateText({ ...base, tools, stopWhen: stepCountIs(4), prompt: BOTH });
    same([text, steps.length], ['The tools answered: rain in Oslo, noon in Oslo', 2]);
  });

  await check(`${name}: a forced choice, and none`, async () => {
    const stop = {
      tools: {
        time_in: tool({ inputSchema: z.object({ city: z.string() }) }),
        weather: tool({ inputSchema: z.object({ city: z.string() }) }),
      },
    };
    const forced = await generateText({ ...base, ...stop, toolChoice: { type: 'tool', toolName: 'time_in' }, prompt: BOTH });
    same(
      forced.toolCalls.map((call) => call.toolName),
      ['time_in'],
    );
    same((await generateText({ ...base, ...stop, toolChoice: 'none', prompt: 'hello' })).text, 'You said: hello');
  });

  await check(`${name}: an output by a schema, whole and streamed`, async () => {
    const output = Output.object({ schema: City });
    same((await generateText({ ...base, output, prompt: 'a city' })).output, { name: 'text', people: 7 });
    const stream = streamText({ ...base, output: Output.object({ schema: jsonSchema(z.toJSONSchema(City)) }), prompt: 'a city' });
    await stream.consumeStream();
    same(await stream.output, { name: 'text', people: 7 });
  });

  await check(`${name}: a picture`, async () => {
    const content = [
      { type: 'text', text: 'report' },
      { type: 'file', data: Buffer.from(PNG, 'base64'), mediaType: 'image/png' },
    ];
    same(JSON.parse((await generateText({ ...base, messages: [{ role: 'user', content }] })).text).pictures, 1);
  });

  await check(`${name}: cut, refused, failed`, async () => {
    const cut = await generateText({ ...base, prompt: 'cut Half of' });
    same([cut.text, cut.finishReason], ['Half of', 'length']);
    const refused = await generateText({ ...base, prompt: 'refuse I would rather not' });
    same([refused.text, refused.finishReason], ['I would rather not', 'content-filter']);
    const failed = await failing(generateText({ ...base, prompt: 'fail' }));
    same(/this cannot be/.test(failed.message), true);
  });

  await check(`${name}: cancelled in mid-stream, then the next is answered`, async () => {
    const leave = new AbortController();
    const stream = streamText({
      ...base,
      prompt: 'slow this is cancelled by its client',
      abortSignal: leave.signal,
      onError: () => undefined,
    });
    await stream.textStream[Symbol.asyncIterator]().next();
    leave.abort();
    same((await generateText({ ...base, prompt: 'after that' })).text, 'You said: after that');
  });
}
