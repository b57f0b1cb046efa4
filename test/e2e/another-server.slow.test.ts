/** A server that speaks the Messages API and is not ours: no pings, CRLF, headers of its own, its bytes cut anywhere. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate as nextTick } from 'node:timers/promises';
import { textOf } from '../chaos/invariants.js';
import { sceneTest } from '../support/scene.js';

sceneTest(
  'an Anthropic-compatible server that is not ours answers, tools included',
  { files: { 'hello.txt': 'grüße' }, agent: { model: 'anthropic/local-9b' } },
  async (scene) => {
    const id = scene.id();
    const server = startForeignServer();
    scene.onClose(() => server.close());
    await new Promise((resolve) => server.once('listening', resolve));
    await scene.startWorker({ apiUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });

    const result = await scene.client.send(id, 'what does hello.txt say?', { start: {} });
    expect(result).toMatchObject({ text: 'It says: grüße 🦜', stopReason: 'end', toolCalls: 1 });
    expect((await scene.client.history(id)).map(textOf)).toEqual(['what does hello.txt say?', '', 'grüße', 'It says: grüße 🦜']);
    expect(scene.api.hits).toEqual([]);
  },
);

function startForeignServer(): Server {
  return createServer((request, response) => void answer(request, response)).listen(0, '127.0.0.1');
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  let asked = '';
  for await (const chunk of request.setEncoding('utf8') as AsyncIterable<string>) asked += chunk;
  const knows = asked.includes('"tool_result"');
  const block = knows ? { type: 'text', text: '' } : { type: 'tool_use', id: 'call_1', name: 'read_file', input: {} };
  const deltas = knows
    ? [...'It says: grüße 🦜'].map((text) => ({ type: 'text_delta', text }))
    : ['{"pa', 'th":"hello.txt"}'].map((json) => ({ type: 'input_json_delta', partial_json: json }));
  const message = { id: 'chatcmpl-7', type: 'message', role: 'assistant', model: 'local-9b', content: [], usage: { input_tokens: 7 } };
  const events = [
    { type: 'message_start', message },
    { type: 'content_block_start', index: 0, content_block: block },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index: 0, delta })),
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: knows ? 'end_turn' : 'tool_use' }, usage: { output_tokens: 5 } },
    { type: 'message_stop' },
  ];
  const lines = events.map((event) => `event:${event.type}\r\ndata:${JSON.stringify(event)}\r\n\r\n`);
  const bytes = Buffer.from(`: hello\r\n\r\n${lines.join('\r\n')}`);
  response.writeHead(200, { 'content-type': 'text/event-stream', server: 'somebody else', 'x-queue-ms': '3' });
  for (let at = 0; at < bytes.length; at += 7) {
    response.write(bytes.subarray(at, at + 7));
    if (at % 70 === 0) await nextTick();
  }
  response.end();
}
