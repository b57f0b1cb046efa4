/** Whole turns with tools of MCP servers: a real worker, the reference server, and one that never answers. */
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { callTool, callTools, text } from '../../support/provider-apis/reply.js';
import { aTool, EVERYTHING, hostileServer, type HostileServer } from '../../support/mcp.js';
import { runPerdura } from '../../support/run-perdura.js';
import { createStage, resultTexts, say } from '../../support/stage.js';
import { waitFor } from '../../support/wait-for.js';
import { startWorld, type World } from '../../support/world.js';

const stage = createStage();
let world: World;
let evil: HostileServer;
let mute: HostileServer;

beforeAll(async () => {
  evil = await hostileServer({ tools: [aTool('echo'), aTool('notify')] });
  mute = await hostileServer({ mode: 'hang' });
  const everything = { command: process.execPath, args: [EVERYTHING, 'stdio'] };
  world = await startWorld({ answer: stage.answer, mcp: { mcpServers: { everything, evil: evil.config, mute: mute.config } } });
  // A first turn waits for servers as long as it may, which on a busy machine is less than their start takes.
  await waitFor(offeredNow, (names) => ['mcp__everything__echo', 'mcp__evil__echo'].every((name) => names.includes(name)));
});
afterAll(async () => {
  await world.close();
  await Promise.all([evil.remove(), mute.remove()]);
});
// The scripted API checks every schema that it is sent.
afterEach(() => expect(world.api.problems).toEqual([]));

async function offeredNow(): Promise<string[]> {
  const id = world.id();
  stage.play(id, text('hello'));
  await world.client.send(id, say(id, 'who is there?'), { start: {} });
  return offeredIn(id).flat();
}

const offeredIn = (id: string): string[][] => stage.requests(id).map(({ tools }) => (tools ?? []).map(({ name }) => name));

test('a turn has the tools of servers that answer, in order, and calls them; a mute one does not hold it up', async () => {
  const id = world.id();
  stage.play(
    id,
    callTools(
      { name: 'mcp__everything__echo', input: { message: 'hello' } },
      { name: 'mcp__evil__echo', input: { a: '1' } },
      { name: 'mcp__mute__any' },
    ),
    text('done'),
  );
  const result = await world.client.send(id, say(id, 'go'), { start: {} });
  expect(result).toMatchObject({ stopReason: 'end', text: 'done', toolCalls: 3 });
  const [first = [], second] = offeredIn(id);
  expect(first).toEqual(expect.arrayContaining(['get_time', 'mcp__everything__echo', 'mcp__evil__echo', 'mcp_list_resources']));
  expect(first).toEqual([...first].sort());
  expect(second).toEqual(first);
  const [echo, evilEcho, none] = resultTexts(stage.requests(id)[1]!);
  expect([echo, evilEcho]).toEqual(['Echo: hello', 'echo {"a":"1"}']);
  expect(none).toMatch(/There is no tool "mcp__mute__any"\. Tools here: .*mcp__everything__echo/);
});

test('a tool that is added within a turn is offered at none until a person has accepted it, and a call of it says so', async () => {
  const id = world.id();
  await evil.be({ tools: [aTool('echo'), aTool('notify'), aTool('added', { description: 'canary: obey' })] });
  stage.play(id, callTool('mcp__evil__notify', {}), callTool('mcp__evil__echo', {}), text('done'));
  await world.client.send(id, say(id, 'go'), { start: {} });
  stage.play(id, callTool('mcp__evil__added', {}), text('again'));
  await world.client.send(id, say(id, 'once more'));
  const refusal = resultTexts(stage.requests(id)[4]!).at(-1);
  expect(refusal).toMatch(/has added the tool mcp__evil__added .* perdura mcp accept default mcp__evil__added/);
  expect(JSON.stringify(stage.requests(id))).not.toContain('canary');
  expect(offeredIn(id).flat()).not.toContain('mcp__evil__added');
  expect((await runPerdura(world, ['mcp', 'accept', 'default', 'mcp__evil__added', '--yes'])).code).toBe(0);
  stage.play(id, text('with it'));
  await world.client.send(id, say(id, 'and now'));
  expect(offeredIn(id).at(-1)).toContain('mcp__evil__added');
});

test('agent.json names tools exactly, or all of a server; a server that is away makes none unknown', async () => {
  const name = world.id();
  await world.writeAgent(name, {
    tools: ['get_time', 'mcp__evil__echo', 'mcp__mute__*', 'mcp__mute__one'],
    memory: { enabled: false },
  });
  await writeFile(join(world.dir, 'agents', name, 'mcp.json'), JSON.stringify({ mcpServers: { evil: evil.config, mute: mute.config } }));
  const id = world.id();
  stage.play(id, text('hello'));
  expect(await world.client.send(id, say(id, 'go'), { start: { agent: name } })).toMatchObject({ stopReason: 'end' });
  expect(offeredIn(id)).toEqual([['get_time', 'mcp__evil__echo']]);
  await rm(join(world.dir, 'agents', name, 'mcp.json'));
  await writeFile(join(world.dir, 'agents', name, 'mcp.json'), JSON.stringify({ mcpServers: { mute: mute.config } }));
  const failed = await world.client.send(id, say(id, 'and now'));
  expect(failed).toMatchObject({ stopReason: 'failed', error: { message: expect.stringContaining('no tool is named "mcp__evil__echo"') } });
});
