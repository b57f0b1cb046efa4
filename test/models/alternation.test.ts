/** After a compaction two of a person's messages stand side by side: what is left of earlier turns, and the question. */
import { renderRequest as anthropic } from '../../src/models/anthropic/render.js';
import { renderRequest as gemini } from '../../src/models/gemini/client.js';
import { renderRequest as ollama } from '../../src/models/ollama/client.js';
import { renderChat as chat } from '../../src/models/openai/render-chat.js';
import { call, request, result, says, user } from './builders.js';

const picture = { mediaType: 'image/png', base64: 'aGk=' };
const messages = [
  user('What was said before: the boat is red.'),
  user('Which colour?'),
  says('Red.', call('turn_0001/c1', 'look', {})),
  result('turn_0001/c1', 'still red'),
  says('Red it is.'),
  { ...user('And this?'), images: [picture] },
  user('Quickly.'),
];
const asked = request({ model: 'some-model', messages });

type Sent = readonly { readonly role?: string; readonly content?: unknown; readonly parts?: unknown }[];

test.each<[string, Sent]>([
  ['anthropic', anthropic(asked).messages],
  ['gemini', gemini(asked).contents as Sent],
  ['ollama', ollama(asked).messages as Sent],
  ['openai chat', chat(asked).messages as Sent],
])('%s is sent one message for two, with all that they say in its order', (_, sent) => {
  const roles = sent.map(({ role }) => (role === 'model' ? 'assistant' : role)).filter((role) => role !== 'system');
  expect(roles.filter((role, at) => role === 'user' && roles[at + 1] === 'user')).toEqual([]);
  const first = JSON.stringify(sent.find(({ role }) => role === 'user'));
  expect(first).toMatch(/the boat is red.*Which colour/);
  const last = JSON.stringify(sent.at(-1));
  expect(last).toMatch(/And this\?.*Quickly\./);
  expect(last).toContain('aGk=');
});
