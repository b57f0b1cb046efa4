/** LangChain's models and its agent: Chat Completions, Responses and Messages behind one interface. */
import { ChatAnthropic } from '@langchain/anthropic';
import { HumanMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { ChatOpenAI } from '@langchain/openai';
import { createAgent } from 'langchain';
import { z } from 'zod';
import { BOTH, DATA_URL, PNG, TOKEN, URL, check, same } from './checks.mjs';

const openai = { model: 'default', apiKey: TOKEN, maxRetries: 0, configuration: { baseURL: `${URL}/v1` } };
const MODELS = {
  ChatOpenAI: new ChatOpenAI(openai),
  'ChatOpenAI, Responses': new ChatOpenAI({ ...openai, useResponsesApi: true }),
  ChatAnthropic: new ChatAnthropic({ model: 'default', apiKey: TOKEN, anthropicApiUrl: URL, maxTokens: 1000, maxRetries: 0 }),
};
const City = z.object({ name: z.string(), people: z.number().int() });
const toolOf = (name, what) =>
  tool(({ city }) => `${what} in ${city}`, { name, description: name, schema: z.object({ city: z.string() }) });
const tools = [toolOf('weather', 'rain'), toolOf('time_in', 'noon')];

for (const [name, model] of Object.entries(MODELS)) {
  await check(`${name}: invoke and stream`, async () => {
    same((await model.invoke('hello')).text, 'You said: hello');
    let text = '';
    for await (const chunk of await model.stream('in a stream')) text += chunk.text;
    same(text, 'You said: in a stream');
  });

  await check(`${name}: tools, and a choice beside their results`, async () => {
    const said = [new HumanMessage(BOTH)];
    const first = await model.bindTools(tools).invoke(said);
    same(
      first.tool_calls.map((call) => call.name),
      ['weather', 'time_in'],
    );
    said.push(first, ...(await Promise.all(first.tool_calls.map((call, at) => tools[at].invoke({ ...call, type: 'tool_call' })))));
    const second = await model
      .bindTools(tools, { tool_choice: name === 'ChatAnthropic' ? { type: 'tool', name: 'time_in' } : 'time_in' })
      .invoke(said);
    same(
      second.tool_calls.map((call) => call.name),
      ['time_in'],
    );
  });

  for (const method of name === 'ChatAnthropic' ? ['functionCalling'] : ['functionCalling', 'jsonMode', 'jsonSchema']) {
    await check(`${name}: structured output by ${method}`, async () => {
      const asked = method === 'jsonMode' ? 'say {"name": "text", "people": 7}' : 'a city';
      same(await model.withStructuredOutput(City, { method, name: 'city' }).invoke(asked), { name: 'text', people: 7 });
    });
  }

  await check(`${name}: createAgent, with tools and an answer by a schema`, async () => {
    const agent = createAgent({ model, tools });
    const { messages } = await agent.invoke({ messages: [new HumanMessage(BOTH)] });
    same(messages.at(-1).text, 'The tools answered: rain in Oslo, noon in Oslo');
  });

  await check(`${name}: a picture`, async () => {
    const picture =
      name === 'ChatAnthropic'
        ? { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } }
        : { type: 'image_url', image_url: { url: DATA_URL } };
    const answer = await model.invoke([new HumanMessage({ content: [picture, { type: 'text', text: 'report' }] })]);
    same(JSON.parse(answer.text).pictures, 1);
  });

  await check(`${name}: an answer that was cut keeps its words`, async () => {
    const cut = await model.invoke('cut Half of');
    same(cut.text, 'Half of');
    same(/length|max_tokens|incomplete/.test(JSON.stringify(cut.response_metadata)), true);
  });
}
