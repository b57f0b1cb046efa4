import { getEventListeners } from 'node:events';
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

test('one signal serves many calls, and keeps nothing of them', async () => {
  world = await startWorld({ script: Array.from({ length: 12 }, () => ({ reply: text('Yes.') })) });
  const warnings: string[] = [];
  const onWarning = ({ name }: Error): void => void warnings.push(name);
  process.on('warning', onWarning);
  const leave = new AbortController();
  const id = world.id();
  for (let turn = 0; turn < 12; turn++) await world.client.send(id, 'and?', { start: {}, signal: leave.signal });
  expect(getEventListeners(leave.signal, 'abort')).toHaveLength(0);
  process.off('warning', onWarning);
  expect(warnings).not.toContain('MaxListenersExceededWarning');
});

test('a signal that is aborted ends the waiting, and the turn goes on', async () => {
  let answer!: () => void;
  const hold = new Promise<void>((resolve) => (answer = resolve));
  world = await startWorld({ script: [{ reply: { ...text('Late.'), hold } }] });
  const id = world.id();
  const leave = new AbortController();
  const sent = world.client.send(id, { id: 'm1', text: 'hi' }, { start: {}, signal: leave.signal });
  await world.api.waitForHit(1);
  leave.abort();
  await expect(sent).rejects.toThrow();
  answer();
  await expect(world.client.send(id, { id: 'm1', text: 'hi' })).resolves.toMatchObject({ text: 'Late.' });
});
