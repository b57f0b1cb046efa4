/** Long texts travel by reference, so that no history grows with them, and are whole wherever they are read. */
import { z } from 'zod';
import { callTool, text } from '../support/provider-apis/reply.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { runsOf, workflowTaskFailures } from '../support/run-chain.js';
import { createStage, resultTexts, say } from '../support/stage.js';
import { startWorld, type World } from '../support/world.js';

const page = (letter: string, bytes: number): string => `${letter}: ${letter.repeat(bytes - 7)} end`;

const read = defineTool({
  name: 'read',
  description: 'Reads so many bytes.',
  input: z.object({ bytes: z.int() }),
  policy: { repeatable: true },
  run: ({ bytes }) => page('t', bytes),
});
const write = defineTool({
  name: 'write',
  description: 'Counts characters.',
  input: z.object({ content: z.string() }),
  run: ({ content }) => `${content.length} characters`,
});

const stage = createStage();
let world: World;

beforeAll(async () => {
  world = await startWorld({ answer: stage.answer, tools: [read, write] });
});
afterAll(() => world.close());
afterEach(() => expect(world.api.problems).toEqual([]));

async function started(): Promise<string> {
  const id = world.id();
  await world.client.start(id);
  return id;
}

/** Bytes of the conversation's events, as they lie in Temporal. */
async function historyBytes(id: string): Promise<number> {
  return JSON.stringify(await runsOf(world, id), (_key, value: unknown) =>
    value instanceof Uint8Array ? `${value.length}`.padEnd(value.length) : value,
  ).length;
}

test('a result over 4 KiB is a reference in the history, and whole in the prompt', async () => {
  const id = await started();
  stage.play(id, callTool('read', { bytes: 4_096 }), callTool('read', { bytes: 40_000 }), text('Read.'));
  expect(await world.client.send(id, say(id, 'read'))).toMatchObject({ text: 'Read.', toolCalls: 2 });
  expect(resultTexts(stage.requests(id)[1])).toEqual([page('t', 4_096)]);
  expect(resultTexts(stage.requests(id)[2])).toEqual([page('t', 40_000)]);
  expect(await historyBytes(id)).toBeLessThan(40_000);
  const results = (await world.client.history(id)).flatMap(({ message }) => (message.role === 'tool' ? [message.text] : []));
  expect(results).toEqual([page('t', 4_096), page('t', 40_000)]);
});

test('a recording goes to the store whole, and the model is told of it where it takes none', async () => {
  const id = await started();
  stage.play(id, text('I cannot hear it.'));
  const audio = [{ mediaType: 'audio/mpeg', base64: 'QUJD'.repeat(10_000) }];
  await world.client.send(id, { text: say(id, 'listen'), audio });
  expect(JSON.stringify(stage.requests(id)[0]?.messages)).toContain('[audio: audio/mpeg, 30000 bytes; this model does not take audio]');
  const said = (await world.client.history(id)).flatMap(({ message }) => (message.role === 'user' ? [message.audio] : []));
  expect(said).toEqual([audio]);
});

test('an answer of 100 KB comes as a preview with a reference, and is whole in the history and in the next prompt', async () => {
  const id = await started();
  const long = page('a', 100_000);
  stage.play(id, { text: long, chunks: { size: 4_000, delayMs: 0 } });
  const result = await world.client.send(id, say(id, 'talk'));
  expect(result.stopReason).toBe('end');
  expect(result.text.length).toBeLessThan(5_000);
  expect(long.startsWith(result.text.replace(/…$/, ''))).toBe(true);
  expect(result.textRef).toMatchObject({ bytes: 100_000, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) });
  expect((await world.client.history(id)).at(-1)?.message).toMatchObject({ blocks: [{ kind: 'text', text: long }] });
  await world.client.send(id, say(id, 'again'));
  expect(JSON.stringify(stage.requests(id)[1]?.messages).includes(long)).toBe(true);
  expect(await historyBytes(id)).toBeLessThan(50_000);
});

test('long arguments of a tool call reach the tool, and go back to the model as they were', async () => {
  const id = await started();
  const content = page('c', 100_000);
  stage.play(id, { ...callTool('write', { content }), chunks: { size: 4_000, delayMs: 0 } }, text('Written.'));
  expect(await world.client.send(id, say(id, 'write'))).toMatchObject({ text: 'Written.' });
  expect(resultTexts(stage.requests(id)[1])).toEqual(['100000 characters']);
  expect(stage.requests(id)[1]?.messages[1]).toMatchObject({ content: [{ type: 'tool_use', input: { content } }] });
  expect(await historyBytes(id)).toBeLessThan(50_000);
});

test('the bytes that a turn adds to the history do not grow with the conversation', async () => {
  const id = await started();
  const grown: number[] = [];
  for (let n = 1, before = await historyBytes(id); n <= 20; n++) {
    await world.client.send(id, say(id, `message ${n}`.padEnd(1_000, '.')));
    const now = await historyBytes(id);
    grown.push(now - before);
    before = now;
  }
  expect(Math.max(...grown.slice(10))).toBeLessThan(1.2 * Math.max(...grown.slice(1, 10)));
  expect(await workflowTaskFailures(world, id)).toEqual([]);
});
