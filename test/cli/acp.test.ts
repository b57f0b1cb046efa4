/** `perdura acp`, as an editor starts it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Readable, Writable } from 'node:stream';
import { saidIn } from '../support/echo-model.js';
import { text } from '../support/provider-apis/reply.js';
import { PERDURA, perduraEnvironment } from '../support/run-perdura.js';
import { startWorld, type World } from '../support/world.js';

let world: World;

beforeAll(async () => {
  world = await startWorld({ answer: (request) => text(`You said: ${saidIn(request).at(-1)}`) });
});
afterAll(() => world.close());

test('it speaks the protocol and nothing else on its stdout, and ends with its stdin', async () => {
  const { client, ndJsonStream, PROTOCOL_VERSION } = await import('@agentclientprotocol/sdk');
  const child = spawn(process.execPath, [PERDURA, 'acp'], {
    cwd: world.dir,
    env: perduraEnvironment(world),
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let heard = '';
  let written = '';
  child.stderr.on('data', (bytes: Buffer) => (heard += bytes.toString()));
  child.stdout.on('data', (bytes: Buffer) => (written += bytes.toString()));
  const ended = once(child, 'exit');
  let answer = '';
  const connection = client({ name: 'test' })
    .onNotification('session/update', ({ params: { update } }) => {
      if (update.sessionUpdate === 'agent_message_chunk' && update.content.type === 'text') answer += update.content.text;
    })
    .connect(ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>));
  try {
    await connection.agent.request('initialize', { protocolVersion: PROTOCOL_VERSION, clientCapabilities: {} });
    const { sessionId } = await connection.agent.request('session/new', { cwd: world.dir, mcpServers: [] });
    const prompt = [{ type: 'text' as const, text: 'hello' }];
    expect(await connection.agent.request('session/prompt', { sessionId, prompt })).toEqual({ stopReason: 'end_turn' });
    expect(answer).toBe('You said: hello');
    child.stdin.end();
    expect(await ended).toEqual([0, null]);
    expect(heard).toContain('over stdin and stdout');
    const lines = written.split('\n').filter((line) => line !== '');
    expect(lines.map((line) => (JSON.parse(line) as { jsonrpc: string }).jsonrpc)).toEqual(lines.map(() => '2.0'));
  } finally {
    connection.close();
    child.kill('SIGKILL');
  }
});
