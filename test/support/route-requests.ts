/** Requests that name a conversation, for each route of each protocol: what it needs to be asked well, and where the id stands in it. */
import { taskName } from '../../src/gateway/a2a/task.js';
import { publicCallId } from '../../src/gateway/core/client-calls.js';
import { responseId } from '../../src/gateway/openai/responses.js';
import type { Asked } from './tenants.js';

export const TURN = 'turn_0001';
export const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

export interface Request extends Asked {
  readonly method: string;
  readonly path: string;
}

export const post = (path: string, body: object, headers: Record<string, string> = {}): Request => ({
  method: 'POST',
  path,
  body,
  headers,
});
export const rpc = (path: string, method: string, params: object): Request =>
  post(path, { jsonrpc: '2.0', id: 1, method, params }, { 'a2a-version': '1.0', accept: 'application/json, text/event-stream' });
export const user = { role: 'user', content: 'what is the word?' };
export const said = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'what is the word?' }] };

/** What a route needs to be asked well, where it needs something. */
const NEEDS: Readonly<Record<string, Asked>> = {
  'POST /v1/conversations/:id/queue': { body: { op: 'clear' } },
  'POST /v1/conversations/:id/dispatch': { body: { type: 'ticket.updated' } },
  'POST /v1/conversations/:id/messages': { body: { text: 'what is the word?' } },
  'POST /v1/conversations/:id/attachments': { bytes: PNG, headers: { 'content-type': 'image/png' } },
  'POST /v1/conversations/:id/decide': { body: { callId: 'turn_0002/c1', decision: 'approve' } },
  'POST /v1/conversations/:id/fork': { body: { at: TURN } },
  'POST /v1/conversations/:id/rewind': { body: { to: TURN } },
  'POST /v1/conversations/:id/edit': { body: { text: 'what was the word?' } },
  'PATCH /v1/conversations/:id': { body: { title: 'mine now' } },
  'PUT /v1/conversations/:id/breakpoints': { body: { onError: true } },
};
const a2a =
  (path: string) =>
  (id: string): Request[] => {
    const { task } = taskName(id, TURN);
    return [
      ...['GetTask', 'CancelTask', 'SubscribeToTask'].map((method) => rpc(path, method, { id: task })),
      rpc(path, 'SendMessage', { message: { ...said, taskId: task } }),
      rpc(path, 'SendStreamingMessage', { message: { ...said, taskId: task } }),
      rpc(path, 'ListTasks', { contextId: id }),
    ];
  };
/** Routes of which the request names a conversation elsewhere than in its path. */
export const NAMING: Readonly<Record<string, (id: string) => readonly Request[]>> = {
  'GET /v1/events': (id) => [{ method: 'GET', path: `/v1/events?conversation=${id}` }],
  'POST /v1/responses': (id) => [
    post('/v1/responses', { model: 'default', input: 'and?', previous_response_id: responseId(id, TURN) }),
    post('/v1/responses', {
      ...{ model: 'default', previous_response_id: responseId(id, TURN) },
      input: [{ type: 'function_call_output', call_id: publicCallId(id, `${TURN}/c1`), output: 'x' }],
    }),
  ],
  'POST /v1/chat/completions': (id) => {
    const call = { id: publicCallId(id, `${TURN}/c1`), type: 'function', function: { name: 'look', arguments: '{}' } };
    const messages = [user, { role: 'assistant', tool_calls: [call] }, { role: 'tool', tool_call_id: call.id, content: 'x' }];
    return [post('/v1/chat/completions', { model: 'default', messages }, { 'x-perdura-conversation': id })];
  },
  'POST /v1/messages': (id) => {
    const use = { type: 'tool_use', id: publicCallId(id, `${TURN}/c1`, 'toolu_'), name: 'look', input: {} };
    const result = { role: 'user', content: [{ type: 'tool_result', tool_use_id: use.id, content: 'x' }] };
    const thread = { type: 'continue', previous_message_id: `msg_${id}-${TURN}` };
    const messages = [user, { role: 'assistant', content: [use] }, result];
    return [post('/v1/messages', { model: 'default', max_tokens: 9, thread, messages })];
  },
  'POST /api/chat': (id) => {
    const part = { type: 'tool-look', toolCallId: `${TURN}/c1`, state: 'output-available', input: {}, output: 'x' };
    const asked = { id: 'm1', role: 'user', parts: [{ type: 'text', text: 'x' }] };
    return [
      post('/api/chat', { id, messages: [asked] }),
      post('/api/chat', { id, messages: [asked, { id: TURN, role: 'assistant', parts: [part] }] }),
    ];
  },
  'POST /agui': (id) => [
    post('/agui', { threadId: id, runId: 'r', messages: [], resume: [{ interruptId: `${TURN}/c1`, status: 'cancelled' }] }),
    post('/agui', { threadId: id, runId: 'r', messages: [{ id: 'm', ...user }] }),
  ],
  'POST /a2a': a2a('/a2a'),
  'POST /a2a/': a2a('/a2a/'),
  'POST /a2a/:agent': a2a('/a2a/default'),
  'POST /a2a/:agent/': a2a('/a2a/default/'),
  'POST /mcp': (conversation) => [
    ...['get_status', 'get_history', 'interrupt_conversation', 'list_approvals'].map((name) =>
      rpc('/mcp', 'tools/call', { name, arguments: { conversation } }),
    ),
    rpc('/mcp', 'tools/call', { name: 'send_message', arguments: { conversation, text: 'what is the word?', wait_seconds: 1 } }),
    rpc('/mcp', 'tools/call', {
      name: 'decide_approval',
      arguments: { conversation, call_id: 'turn_0002/c1', hash: 'x', decision: 'approve' },
    }),
    rpc('/mcp', 'resources/read', { uri: `conversation://${conversation}` }),
  ],
};
function fill(path: string, id: string): string {
  const filled: Record<string, string> = { ':turn': TURN, ':messageId': 'm1', ':item': 'mem_1', ':chunk': 'chunk_1', ':position': '1' };
  const own = path.startsWith('/v1/responses') ? responseId(id, TURN) : id;
  return path.replace(/:\w+/g, (name) => (name === ':id' ? own : (filled[name] ?? name)));
}

export function requestsOf(route: string, id: string): readonly Request[] {
  const [method = '', path = ''] = route.split(' ');
  return NAMING[route]?.(id) ?? [{ method, path: fill(path, id), ...(NEEDS[route] ?? (method === 'GET' ? {} : { body: {} })) }];
}
