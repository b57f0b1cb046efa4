/** What left a prompt and can be looked at again: the note in its place says how, and the tool shows it. */
import { z } from 'zod';
import { openMemory } from '../../src/tools/builtin/memory-tools.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { callTool, callTools, text } from '../support/provider-apis/reply.js';
import type { ApiRequest } from '../support/provider-apis/api-request.js';
import { createStage, say } from '../support/stage.js';
import { startWorld, type World } from '../support/world.js';

/** PNG of one pixel: the bytes after its end are another file for each number. */
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const picture = (n: number): string => Buffer.concat([Buffer.from(PIXEL, 'base64'), Buffer.from([n])]).toString('base64');

const shoot = defineTool({
  name: 'shoot',
  description: 'Takes a picture.',
  input: z.object({ n: z.number() }),
  policy: { repeatable: true },
  run: ({ n }) => ({ ok: true, content: `picture ${n}`, images: [{ mediaType: 'image/png', base64: picture(n) }] }),
});

const stage = createStage({ by: 'last' });
let world: World;

beforeAll(async () => {
  world = await startWorld({ answer: stage.answer, tools: [shoot, openMemory] });
});
afterAll(() => world.close());

const shows = (request: ApiRequest | undefined, n: number): boolean => JSON.stringify(request?.messages).includes(picture(n));

test('the oldest pictures of tools leave a prompt with the address at which open_memory shows them again', async () => {
  const id = world.id();
  let address = '';
  stage.play(
    id,
    callTools(...Array.from({ length: 21 }, (_, n) => ({ name: 'shoot', input: { n } }))),
    (request) => {
      const note = /picture 3\\n\[a file of this result[^\]]*open_memory shows it again, at ([0-9a-f]{12}\/\d+)\]/;
      address = note.exec(JSON.stringify(request.messages))?.[1] ?? 'none';
      return callTool('open_memory', { at: address, around: 0 });
    },
    text('I see it again.'),
  );
  await world.client.start(id);
  await world.client.send(id, say(id, 'take pictures'));
  const [, before, after] = stage.requests(id);
  expect(address).toMatch(/^[0-9a-f]{12}\/\d+$/);
  expect([shows(before, 3), shows(before, 20)]).toEqual([false, true]);
  expect([shows(after, 3), shows(after, 4)]).toEqual([true, false]);
  expect(JSON.stringify(after?.messages.at(-1))).toContain('a file');
});

describe('a picture that a person sent', () => {
  test('is told with the summary that its message became, in a fork too, with the address at which it is shown again', async () => {
    const [id, fork] = [world.id(), world.id()];
    const note = /a file of turn 1 at ([0-9a-f]{12}\/\d+)/;
    const open = (request: ApiRequest) =>
      callTool('open_memory', { at: note.exec(JSON.stringify(request.messages))?.[1] ?? 'none', around: 0 });
    await world.client.send(
      id,
      { text: say(id, 'what is this?'), images: [{ mediaType: 'image/png', base64: picture(1) }] },
      { start: { scope: 'pictures' } },
    );
    for (let n = 2; n <= 8; n++) await world.client.send(id, say(id, `and then ${n}`));
    expect(await world.client.compact(id)).toMatchObject({ kind: 'compacted' });
    await world.client.send(id, say(id, 'go on'));
    stage.play(id, open, text('I see it again.'));
    await world.client.send(id, say(id, 'look at it again'));
    const [before, after] = stage.requests(id).slice(-2);
    expect([shows(before, 1), shows(after, 1)]).toEqual([false, true]);

    await world.client.fork(id, { at: 'turn_0009', id: fork });
    stage.play(fork, open, text('I see it too.'));
    await world.client.send(fork, say(fork, 'look at it again'));
    const [without, again] = stage.requests(fork).slice(-2);
    expect([shows(without, 1), shows(again, 1)]).toEqual([false, true]);
  });
});
