import { callTool, text } from '../support/provider-apis/reply.js';
import { startWorld, type World } from '../support/world.js';

let world: World;
afterEach(() => world.close());

test('a message is answered, and the status says so', async () => {
  world = await startWorld({ script: [{ reply: text('Hello there.') }] });
  const id = world.id();
  const result = await world.client.send(id, 'hi', { start: {} });
  expect(result).toMatchObject({ turnId: 'turn_0001', text: 'Hello there.', stopReason: 'end', toolCalls: 0 });
  expect(await world.client.status(id)).toMatchObject({ phase: 'idle', turn: 1, turns: 1, session: 1, queued: 0 });
  world.api.assertDone();
});

test('tools run and their results reach the model', async () => {
  world = await startWorld({
    files: { 'README.md': 'the content' },
    script: [{ reply: callTool('read_file', { path: 'README.md' }) }, { reply: text('It says: the content.') }],
  });
  const result = await world.client.send(world.id(), 'read it', { start: {} });
  expect(result).toMatchObject({ text: 'It says: the content.', toolCalls: 1 });
  expect(JSON.stringify(world.api.hits[1]?.body?.messages)).toContain('the content');
  world.api.assertDone();
});
