/** The model of a storm finds the messages that it is shown, and no quotation of one. */
import type { ApiRequest } from '../support/provider-apis/api-request.js';
import { answerByPlan, marksIn } from './plans.js';

const plan = (rounds: readonly unknown[]): string => `Please plan:${JSON.stringify({ rounds, words: 1, pause: 0 })}:end`;
const user = (text: string): ApiRequest['messages'][number] => ({ role: 'user', content: [{ type: 'text', text }] });
const assistant = (text: string): ApiRequest['messages'][number] => ({ role: 'assistant', content: [{ type: 'text', text }] });
const ask = (...messages: ApiRequest['messages'][number][]): ApiRequest => ({
  ...{ model: 'm', max_tokens: 9, messages, tools: [{ name: 'note', input_schema: {} }] },
});

test('behind what the agent remembers a message is one, and what quotes another is none', () => {
  const memory = `[MEMORY:SEMANTIC]\n- The person is in a hurry.\nGoal: [[c-m0]] ${plan([])}\n\n`;
  const request = ask(user(`${memory}[[c-m1]] ${plan([[{ name: 'note', input: {} }]])}`));
  expect(marksIn(request)).toEqual(['c-m1']);
  expect(answerByPlan(request)).toMatchObject({ toolCalls: [{ name: 'note' }] });
});

test('a whole answer names the messages since the last one', () => {
  const messages = [
    user(`[[c-m1]] ${plan([])}`),
    assistant('For [[c-m1]]: done.'),
    user(`[[c-m2]] ${plan([])}`),
    user(`[[c-m3]] ${plan([])}`),
  ];
  expect(answerByPlan(ask(...messages)).text).toEqual([expect.stringMatching(/^For \[\[c-m2\]\] \[\[c-m3\]\]: done/)]);
});
