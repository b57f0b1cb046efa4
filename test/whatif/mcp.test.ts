/** Conversations with tools of MCP servers: what a server answered is in the recording, and no server is called again. */
import { callTool, createScriptedModel } from '../../src/testing/index.js';
import { aTool, EVERYTHING, hostileServer, type HostileServer } from '../support/mcp.js';
import { waitFor } from '../support/wait-for.js';
import { shownText } from '../../src/records/message.js';
import { startRecorder, expectSame, type Recorder } from './recorder.js';

const CALLS: Readonly<Record<string, ReturnType<typeof callTool>>> = {
  call: callTool('mcp__noted__echo', { a: 'tea' }),
  again: callTool('mcp__noted__echo', { a: 'tea' }),
  ask: callTool('mcp__noted__write', { a: 'tea' }),
  list: callTool('mcp_list_resources', {}),
};
const model = createScriptedModel(({ messages }) => {
  const last = messages.at(-1);
  const said = last?.role === 'user' || last?.role === 'tool' ? shownText(last.text) : '';
  return (last?.role === 'user' && CALLS[said]) || `It says: ${said.slice(0, 100)}`;
});

let noted: HostileServer;
let recorder: Recorder;
const tools = [aTool('echo', { annotations: { readOnlyHint: true } }), aTool('write')];
beforeAll(async () => {
  noted = await hostileServer({ tools });
  recorder = await startRecorder(model, {
    mcp: { mcpServers: { noted: noted.config, everything: { command: process.execPath, args: [EVERYTHING, 'stdio'] } } },
    agent: { approvals: [{ tool: 'mcp__noted__write', policy: 'ask' }] },
  });
  // A first turn waits for servers as long as it may, which on a busy machine is less than their start takes.
  await waitFor(
    async () => {
      await recorder.world.client.send(recorder.world.id(), 'who is there?', { start: {} });
      return model.requests.at(-1)?.tools.map(({ name }) => name) ?? [];
    },
    (names) => ['mcp__noted__echo', 'mcp_list_resources'].every((name) => names.includes(name)),
  );
});
afterAll(async () => {
  await recorder.close();
  await noted.remove();
});

async function talk(...messages: readonly string[]): Promise<string> {
  const id = recorder.world.id();
  for (const message of messages) await recorder.world.client.send(id, message, { start: {} });
  return id;
}

test('they are offered as they were and answered as they answered then, whatever has become of the servers', async () => {
  const { client } = recorder.world;
  const id = await talk('call', 'again', 'list', 'thanks');
  await client.message(id, 'ask');
  const [one] = await waitFor(
    () => client.approvals(id),
    (list) => list.length === 1,
  );
  await client.decide(id, { callId: one?.callId ?? '', decision: 'approve' });
  await waitFor(
    () => client.status(id),
    ({ phase }) => phase === 'idle',
  );
  const before = await noted.notes();
  expect(before.filter((line) => line.startsWith('called'))).toEqual(['called echo', 'called echo', 'called write']);
  // One that is called now, or asked for its tools, would say otherwise.
  await noted.be({ mode: 'die', tools: [] });
  const { lane, requests } = await expectSame(recorder, id, { ran: 0 });
  expect(requests.compared).toBe(9);
  expect(lane.turns.map(({ played }) => played?.calls.map(({ name, source, result }) => [name, source, result.slice(0, 14)]))).toEqual([
    [['mcp__noted__echo', 'recording', 'echo {"a":"tea']],
    [['mcp__noted__echo', 'recording', 'echo {"a":"tea']],
    [['mcp_list_resources', 'recording', expect.any(String)]],
    [],
    [['mcp__noted__write', 'recording', 'echo {"a":"tea']],
  ]);
  expect(await noted.notes()).toEqual(before);
  await noted.be({ tools });
});

test.each([
  ['mcp__noted__echo', { a: 'coffee' }],
  ['mcp_read_resource', { server: 'everything', uri: 'demo://x' }],
])('a call of %s that was not made then stops it, with the policy "live" too; a stub says that nothing is known', async (name, input) => {
  const id = await talk('call');
  const other = createScriptedModel(({ messages }) => (messages.at(-1)?.role === 'tool' ? 'So.' : callTool(name, input)));
  const candidate = recorder.projectWith(other);
  const before = await noted.notes();
  const stopped = await recorder.play(id, { candidate });
  expect(stopped.lane.stopped?.why).toContain(`${name} was not called like this then`);
  const live = await recorder.play(id, { candidate, policy: 'live' });
  expect(live.lane.stopped?.why).toMatch(/is of an MCP server, so it does not run/);
  const stubbed = await recorder.play(id, { candidate, policy: 'stub' });
  expect(stubbed.lane.turns[0]?.played?.calls).toMatchObject([
    { source: 'stub', result: expect.stringContaining(`nothing says what ${name}`) },
  ]);
  expect(await noted.notes()).toEqual(before);
});
