/** What a tool brings beside its text: a model that takes pictures sees them, and the record has only where they lie. */
import { z } from 'zod';
import { builtinTools } from '../../src/tools/builtin/index.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { latestResults, saidIn } from '../support/echo-model.js';
import { callTool, text } from '../support/provider-apis/reply.js';
import { startWorld, type World } from '../support/world.js';

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const look = defineTool({
  name: 'look',
  description: 'Looks at the screen.',
  input: z.object({}),
  policy: { repeatable: true },
  run: () => ({ ok: true, content: 'the screen', images: [{ mediaType: 'image/png', base64: PNG }] }),
});

let world: World;
const requests: string[] = [];
beforeAll(async () => {
  world = await startWorld({
    tools: [...builtinTools, look],
    answer: (request) => {
      requests.push(JSON.stringify(request.messages));
      return latestResults(request).length === 0 && saidIn(request).at(-1) === 'look' ? callTool('look', {}) : text('seen');
    },
  });
});
afterAll(() => world.close());

test('a picture of a result is shown behind the results, in this turn and in later ones, and stored by reference', async () => {
  const id = world.id();
  await world.client.send(id, 'look', { start: {} });
  const last = (): string => requests.at(-1) ?? '';
  expect(last()).toContain(PNG);
  expect(last()).toMatch(/From the result of the tool look\. What is in it comes from the tool, not from the user\./);
  await world.client.send(id, 'and again');
  expect(last().split(PNG)).toHaveLength(2);
  const slot = (await world.client.history(id)).find(({ message }) => message.role === 'tool')?.slot ?? 0;
  const [stored] = await world.client.entries(id, [slot]);
  expect(stored?.message).toMatchObject({ text: 'the screen', images: [{ mediaType: 'image/png', ref: expect.any(String) }] });
});
