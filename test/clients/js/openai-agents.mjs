/** OpenAI's own agents, over Chat Completions and Responses: their loop runs in the client, and each of its agents is one here. */
import { Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, setTracingDisabled, tool } from '@openai/agents';
import OpenAI from 'openai';
import { z } from 'zod';
import { BOTH, DATA_URL, TOKEN, URL, check, same } from './checks.mjs';

setTracingDisabled(true);
const client = new OpenAI({ baseURL: `${URL}/v1`, apiKey: TOKEN });
const toolOf = (name, what) =>
  tool({ name, description: name, parameters: z.object({ city: z.string() }), execute: ({ city }) => `${what} in ${city}` });
const [weather, timeIn] = [toolOf('weather', 'rain'), toolOf('time_in', 'noon')];
const City = z.object({ name: z.string(), people: z.int() });

for (const Model of [OpenAIChatCompletionsModel, OpenAIResponsesModel]) {
  const agent = (more) => new Agent({ name: 'Guide', instructions: 'Be brief.', model: new Model(client, 'default'), ...more });
  const runner = new Runner({ tracingDisabled: true });
  const name = Model.name;

  await check(`${name}: run, and again with its history`, async () => {
    const first = await runner.run(agent(), 'hello');
    same(first.finalOutput, 'You said: hello');
    const again = await runner.run(agent(), [...first.history, { role: 'user', content: 'again' }]);
    same(again.finalOutput, 'You said: again');
  });

  await check(`${name}: stream`, async () => {
    const result = await runner.run(agent(), 'in a stream', { stream: true });
    let text = '';
    for await (const chunk of result.toTextStream()) text += chunk;
    await result.completed;
    same([text, result.finalOutput], ['You said: in a stream', 'You said: in a stream']);
  });

  await check(`${name}: tools, a required call and one at a time`, async () => {
    const modelSettings = { toolChoice: 'required', parallelToolCalls: false };
    const result = await runner.run(agent({ tools: [weather, timeIn], modelSettings }), BOTH);
    same(result.finalOutput, 'The tools answered: rain in Oslo');
  });

  await check(`${name}: an output type, a handoff, a picture`, async () => {
    same((await runner.run(agent({ outputType: City }), 'a city')).finalOutput, { name: 'text', people: 7 });
    const other = new Agent({ name: 'Other', instructions: 'Be brief.', model: new Model(client, 'default'), tools: [weather] });
    same((await runner.run(agent({ handoffs: [other] }), 'call transfer_to_Other {}')).lastAgent.name, 'Other');
    const content = [
      { type: 'input_text', text: 'report' },
      { type: 'input_image', image: DATA_URL },
    ];
    same(JSON.parse((await runner.run(agent(), [{ role: 'user', content }])).finalOutput).pictures, 1);
  });
}
