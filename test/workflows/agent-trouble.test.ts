/** An agent that cannot be used fails the turn, says why and where, and is read again for the next one. */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { MAX_MEMORY } from '../../src/stores/store.js';
import { text } from '../support/provider-apis/reply.js';
import { workflowTaskFailures } from '../support/run-chain.js';
import { createStage, say } from '../support/stage.js';
import { startWorld, type World } from '../support/world.js';

const stage = createStage();
let world: World;
let keyless: World;

beforeAll(async () => {
  world = await startWorld({ answer: stage.answer });
  keyless = await startWorld({ answer: stage.answer, withoutKey: true });
});
afterAll(async () => {
  await world.close();
  await keyless.close();
});
afterEach(() => expect(world.api.problems).toEqual([]));

async function writeAgent(agent: string, config: string): Promise<string> {
  const folder = join(world.dir, 'agents', agent);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'agent.json'), config);
  return join(folder, 'agent.json');
}

test('an agent that is not there fails the turn with the path, and once it is there the next turn works', async () => {
  const id = world.id();
  await world.client.start(id, { agent: 'ghost' });
  const failed = await world.client.send(id, say(id, 'hi'));
  expect(failed).toMatchObject({ turnId: 'turn_0001', text: '', stopReason: 'failed', toolCalls: 0 });
  expect(failed.error).toEqual({ type: 'unknown-agent', message: expect.stringContaining(join('agents', 'ghost', 'agent.json')) });
  await writeAgent('ghost', '{}');
  stage.play(id, text('Boo.'));
  expect(await world.client.send(id, say(id, 'and now?'))).toMatchObject({ turnId: 'turn_0002', text: 'Boo.', stopReason: 'end' });
  expect(await workflowTaskFailures(world, id)).toEqual([]);
});

test.each([
  ['no JSON', '{ "model": ', 'is not JSON'],
  ['a field that nobody knows', '{ "modle": "anthropic/claude-x" }', 'modle'],
  ['a wrong type', '{ "limits": { "maxToolRounds": "many" } }', 'maxToolRounds'],
  ['a model without its provider', '{ "model": "claude-x" }', 'provider/model'],
  ['a compactor that is not there', '{ "context": { "compactor": "Owm" } }', 'there are: WorkingFlowCompactor'],
  ['a tool that is not there', '{ "tools": ["get_time", "teleport"] }', 'teleport'],
])('an agent.json with %s fails the turn with the reason, and the mended file works', async (what, config, words) => {
  const id = world.id();
  const agent = what.replaceAll(' ', '-');
  const file = await writeAgent(agent, config);
  await world.client.start(id, { agent });
  const { stopReason, error } = await world.client.send(id, say(id, 'hi'));
  expect([stopReason, error?.type]).toEqual(['failed', 'bad-config']);
  expect(error?.message).toContain(words);
  if (!what.endsWith('that is not there')) expect(error?.message).toContain(file);
  expect(stage.requests(id)).toHaveLength(0);
  await writeFile(file, '{}');
  expect(await world.client.send(id, say(id, 'and now?'))).toMatchObject({ stopReason: 'end' });
  expect(await workflowTaskFailures(world, id)).toEqual([]);
});

test('an agent whose files leave no room for a message fails the turn with their names and sizes, unpaid', async () => {
  const id = world.id();
  const file = await writeAgent('wordy', '{ "context": { "maxTokens": 20000 } }');
  const soul = join(dirname(file), 'SOUL.md');
  await writeFile(soul, 'You are kind. '.repeat(14_000));
  await world.client.start(id, { agent: 'wordy' });
  const { stopReason, error } = await world.client.send(id, say(id, 'hi'));
  expect([stopReason, error?.type]).toEqual(['failed', 'bad-config']);
  expect(error?.message).toMatch(/no room for a message.* SOUL\.md \(196000 bytes\).* context\.maxTokens/);
  expect(stage.requests(id)).toHaveLength(0);
  await writeFile(soul, 'You are kind.');
  expect(await world.client.send(id, say(id, 'and now?'))).toMatchObject({ stopReason: 'end' });
});

test.each<[string, (file: string) => Promise<void>, RegExp]>([
  ['in another encoding', (file) => writeFile(file, Buffer.from('Gr\xf6\xdfe', 'latin1')), /it is not UTF-8; save it as UTF-8/],
  ['that is too long', (file) => writeFile(file, 'x'.repeat(MAX_MEMORY + 1)), /at most \d+ are read; shorten it/],
  ['that is a folder', (file) => mkdir(file).then(() => undefined), /it is no regular file; put the file itself there/],
])('a MEMORY.md %s fails the turn with what to do, and once it is mended the next one is answered', async (what, spoil, words) => {
  const id = world.id();
  const agent = `memory-${what.replaceAll(' ', '-')}`;
  await writeAgent(agent, '{}');
  const folder = join(world.dir, 'memory', 'agents', agent);
  await mkdir(folder, { recursive: true });
  await spoil(join(folder, 'MEMORY.md'));
  await world.client.start(id, { agent });
  for (const turn of [1, 2]) {
    const { stopReason, error } = await world.client.send(id, say(id, `hi ${turn}`));
    expect([stopReason, error?.type]).toEqual(['failed', 'bad-memory']);
    expect(error?.message).toMatch(words);
  }
  expect(stage.requests(id)).toHaveLength(0);
  await rm(join(folder, 'MEMORY.md'), { recursive: true });
  await writeFile(join(folder, 'MEMORY.md'), Buffer.from('\ufeff- The person likes größere cups.', 'utf16le'));
  expect(await world.client.send(id, say(id, 'hello'))).toMatchObject({ stopReason: 'end' });
  expect(JSON.stringify(stage.requests(id).at(-1)?.system)).toContain('> - The person likes größere cups.');
  expect(await workflowTaskFailures(world, id)).toEqual([]);
});

test('an agent that is taken away and brought back between turns loses no message', async () => {
  const id = world.id();
  await writeAgent('fickle', '{}');
  await world.client.start(id, { agent: 'fickle' });
  expect(await world.client.send(id, say(id, 'one'))).toMatchObject({ stopReason: 'end' });
  await rm(join(world.dir, 'agents', 'fickle'), { recursive: true });
  expect(await world.client.send(id, say(id, 'two'))).toMatchObject({ stopReason: 'failed', error: { type: 'unknown-agent' } });
  await writeAgent('fickle', '{}');
  expect(await world.client.send(id, say(id, 'three'))).toMatchObject({ stopReason: 'end' });
  const said = JSON.stringify(stage.requests(id).at(-1)?.messages);
  expect(['one', 'two', 'three'].every((words) => said.includes(say(id, words)))).toBe(true);
});

test('a model of a provider that nobody knows fails the turn and names the known ones', async () => {
  const id = world.id();
  await world.client.start(id, { model: 'acme/brain-1' });
  const { stopReason, error } = await world.client.send(id, say(id, 'hi'));
  expect([stopReason, error?.type]).toEqual(['failed', 'not-found']);
  expect(error?.message).toMatch(/"acme".*anthropic/);
});

test('without an API key a turn fails at once, and says which setting is missing', async () => {
  const id = keyless.id();
  await keyless.client.start(id);
  const { stopReason, error } = await keyless.client.send(id, say(id, 'hi'));
  expect([stopReason, error?.type]).toEqual(['failed', 'missing-key']);
  expect(error?.message).toContain('ANTHROPIC_API_KEY');
  expect(await keyless.client.status(id)).toMatchObject({ phase: 'idle', turns: 1 });
  expect(await keyless.client.send(id, say(id, 'and now?'))).toMatchObject({ turnId: 'turn_0002', stopReason: 'failed' });
  expect(stage.requests(id)).toHaveLength(0);
  expect(await workflowTaskFailures(keyless, id)).toEqual([]);
});
