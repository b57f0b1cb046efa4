// @ts-check
/** A client with the types that openapi-typescript makes of `/openapi.json`: `tsc` reads this file, strictly, before it runs. */
import createClient from 'openapi-fetch';
import { check, same, TOKEN, URL } from './checks.mjs';

/** @type {import('openapi-fetch').Client<import('./perdura.js').paths>} */
const api = createClient({ baseUrl: URL ?? '', headers: { authorization: `Bearer ${TOKEN}` } });
const title = 'By a typed client';

/** @param {string} id @param {string} text */
const send = (id, text) =>
  api.POST('/v1/conversations/{id}/messages', { params: { path: { id }, query: { mode: 'enqueue' } }, body: { text } });

async function start() {
  const { data, error } = await api.POST('/v1/conversations', { body: { title } });
  if (data === undefined) throw new Error(error.detail);
  return data.id;
}

await check('start, list, send and wait, read', async () => {
  const id = await start();
  const listed = await api.GET('/v1/conversations', { params: { query: { text: title, running: 'true', limit: 500 } } });
  same(listed.data?.conversations.map((one) => one.id).includes(id), true);
  const { data } = await api.POST('/v1/conversations/{id}/messages', {
    params: { path: { id }, query: { wait: 60 } },
    body: { text: 'say hello', payload: { of: ['any', 'kind'] } },
  });
  if (typeof data !== 'object' || !('stopReason' in data)) throw new Error(`not answered in time: ${JSON.stringify(data)}`);
  same([data.text, data.stopReason], ['hello', 'end']);
  const turn = data.turnId ?? '';
  const read = await api.GET('/v1/conversations/{id}/turns/{turn}', { params: { path: { id, turn }, query: { wait: 0 } } });
  same(read.data, data);
  const { data: all } = await api.GET('/v1/conversations/{id}/entries', { params: { path: { id } } });
  same(
    all?.entries.flatMap(({ message }) => (message.role === 'user' && typeof message.text === 'string' ? [message.text] : [])).length,
    1,
  );
});

await check('send, see what waits, approve it, read the answer', async () => {
  const id = await start();
  const sent = await send(id, 'run write_file {"path": "Makefile", "content": "all:"}');
  const turn = typeof sent.data === 'object' && 'messageId' in sent.data ? (sent.data.turn ?? '') : '';
  for (let tries = 0; tries < 120; tries += 1) {
    const { data } = await api.GET('/v1/conversations/{id}/approvals', { params: { path: { id } } });
    const [waiting] = data?.approvals ?? [];
    if (waiting !== undefined) {
      same([waiting.kind, waiting.tool, waiting.turnId], ['approval', 'write_file', turn]);
      const body = /** @type {const} */ ({ callId: waiting.callId, hash: waiting.hash, decision: 'approve' });
      const decided = await api.POST('/v1/conversations/{id}/decide', { params: { path: { id } }, body });
      same(decided.data, { callId: waiting.callId, decision: 'approve' });
      break;
    }
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  const ended = await api.GET('/v1/conversations/{id}/turns/{turn}', { params: { path: { id, turn }, query: { wait: 60 } } });
  same(ended.data !== undefined && 'toolCalls' in ended.data ? [ended.data.toolCalls, ended.data.stopReason] : ended, [1, 'end']);
});

await check('what is not there is a typed problem', async () => {
  const id = await start();
  const path = { id, turn: 'turn_0009' };
  const { error, response } = await api.GET('/v1/conversations/{id}/turns/{turn}', { params: { path, query: { wait: 0 } } });
  same([response.status, error?.status, error?.title], [404, 404, 'not-found']);
});

/** What the types refuse. They would let it pass if they were no types at all. */
export const refused = () => [
  // @ts-expect-error A message has a text.
  api.POST('/v1/conversations/{id}/messages', { params: { path: { id: 'x' } }, body: { words: 'hello' } }),
  // @ts-expect-error There is no such path.
  api.GET('/v1/conversation', {}),
  // @ts-expect-error A decision is one of two.
  api.POST('/v1/conversations/{id}/decide', { params: { path: { id: 'x' } }, body: { callId: 'x', decision: 'perhaps' } }),
];
