/** Every operation of the native API on real conversations: it takes and answers what `/openapi.json` says, to the last field. */
import { addCase } from '../../src/evals/dataset.js';
import { takeConversation, toCase } from '../../src/evals/from-conversation.js';
import { createGateway } from '../../src/gateway/app.js';
import { createKnownSecrets } from '../../src/platform/known-secrets.js';
import { checkedApi, type CheckedApi } from '../support/api-description.js';
import { latestResults, saidIn } from '../support/echo-model.js';
import { callTool, text } from '../support/provider-apis/reply.js';
import { byName } from '../support/tenants.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

const PNG = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');
const SCOPE = 'answers';

let world: World;
let api: CheckedApi;

beforeAll(async () => {
  world = await startWorld({
    agent: {
      approvals: [{ tool: 'write_file', policy: 'ask' }],
      maxTokens: 500,
      tools: ['read_file', 'write_file'],
      memory: { enabled: false },
      context: { maxTokens: 6_000, safetyMargin: 500 },
    },
    answer: (request) => {
      const said = saidIn(request).at(-1) ?? '';
      if (latestResults(request).length > 0) return text('Done.');
      if (said === 'write it') return callTool('write_file', { path: 'note.txt', content: 'hello' });
      return text(`You said: ${said.slice(0, 200)}`);
    },
  });
  const inputSchema = { type: 'object', properties: {} };
  const pins = [{ tool: 'search', hash: 'abc', description: null, inputSchema: null }];
  const server = { name: 'web', type: 'http', place: 'https://mcp.test', variables: ['KEY'], pins, waiting: pins };
  const tools = [{ name: 'look', description: 'Looks', inputSchema, from: 'built in' }];
  const app = createGateway({
    client: world.client,
    authenticate: byName,
    agents: () => Promise.resolve(['default']),
    describeAgent: (name) => Promise.resolve({ name, config: { model: 'x' }, tools, servers: [server], system: '' }),
    findings: () => Promise.resolve([{ what: 'Store', health: 'broken', found: 'cannot write', mend: 'free space' }]),
    temporalLink: (workflow, run, event) => `http://temporal.test/${workflow}/${run}/${event}`,
    async addToDataset(client, id, turn, { name, labels }) {
      const taken = await takeConversation({ client, store: world.store, secrets: createKnownSecrets() }, id, { withMemory: false });
      const one = toCase(taken, { turn, labels });
      const { cases, isNew, labels: all } = await addCase(world.dir, name, one);
      return { id: one.id, name, cases, isNew, labels: all };
    },
    requestsPerMinute: 100_000,
  });
  api = await checkedApi(app, '/admin');
});
afterAll(() => world.close());

const get = async <T>(path: string): Promise<T> => expectOk(await api.ask('/admin', 'GET', path), path) as T;
const send = async <T>(method: string, path: string, body?: object): Promise<T> =>
  expectOk(await api.ask('/admin', method, path, body === undefined ? {} : { body }), path) as T;
const post = <T>(path: string, body?: object): Promise<T> => send<T>('POST', path, body);

function expectOk({ status, json, text: answered }: Awaited<ReturnType<CheckedApi['ask']>>, path: string): unknown {
  if (status >= 300) throw new Error(`${path} answered ${status}: ${answered}`);
  return json;
}

test('what is said, decided, looked into and taken back', async () => {
  const id = world.id();
  const at = `/v1/conversations/${id}`;
  await post('/v1/conversations', { id, title: 'A trip', scope: SCOPE, budget: { maxCostUsd: 100 } });
  await post(`${at}/messages`, { text: 'hello', start: { title: 'A trip' } });
  const picture = await api.ask('/admin', 'POST', `${at}/attachments`, { bytes: PNG, headers: { 'content-type': 'image/png' } });
  await post(`${at}/messages`, { text: 'look', images: [picture.json], payload: { a: [1] }, context: { who: 'me' } });
  const file = await api.ask('/admin', 'POST', '/v1/attachments', { bytes: PNG, headers: { 'content-type': 'image/png' } });
  const { ref } = file.json as { ref: string };
  await get(`/v1/attachments/${ref}`);
  await post(`${at}/messages`, { text: 'look again', images: [{ ref, mediaType: 'image/png' }] });

  await post(`${at}/messages?mode=enqueue`, { text: 'write it' });
  const { approvals } = await waitFor(
    () => get<{ approvals: { callId: string; hash: string }[] }>(`${at}/approvals`),
    (found) => found.approvals.length > 0,
  );
  await get('/v1/approvals');
  await get(`${at}/turns/turn_0004?wait=0`);
  await get(`${at}/status`);
  await get(`${at}/moments`);
  await post(`${at}/decide`, { callId: approvals[0]!.callId, hash: approvals[0]!.hash, decision: 'approve', note: 'do it' });
  await get(`${at}/turns/turn_0004`);
  await get(at);
  await get(`${at}/turns`);
  await get(`${at}/turns/turn_0004/timeline`);
  const added = await post(`${at}/turns/turn_0004/dataset`, { name: 'written', label: 'good' });
  expect(added).toEqual({ id: expect.stringContaining('turn_0004'), name: 'written', cases: 1, isNew: true, labels: ['good'] });
  const { life } = await get<{ life: string }>(`${at}/status`);
  const key = { namespace: 'default', scope: SCOPE, conversation: id, life };
  const { ref: lies, bytes } = await world.store.bodies.put(key, 'a story');
  const about = { session: 1, type: 'custom' as const, ts: 1_700_000_000, source: 'user', size: 7, tags: ['story'], relatedTo: [] };
  await world.store.items.put(key, [{ v: 1, id: 'mem_1', ...about, content: { ref: lies, bytes, json: false } }]);
  await get(`${at}/items`);
  await get(`${at}/items/mem_1`);

  for (const word of ['alpha', 'beta', 'gamma', 'delta', 'epsilon'])
    await post(`${at}/messages`, { text: `${word} ${'word '.repeat(150)}` });
  const { chunks } = await get<{ chunks: { id: string }[] }>(`${at}/context/chunks`);
  expect(chunks.at(-1)).toMatchObject({ kind: 'WORKING_FLOW' });
  for (const { id: chunk } of [...chunks, { id: 'tools' }]) await get(`${at}/context/chunks/${chunk}`);
  expect(await post(`${at}/compact`, {})).toMatchObject({ kind: 'compacted' });
  const { turns } = await get<{ turns: { whole: string[]; summarized: object[] } }>(`${at}/context/chunks`);
  expect(turns.summarized).not.toEqual([]);
  await get(`${at}/memory`);
  await get(`${at}/context`);
  expect(await get(`${at}/turns/turn_0001/why`)).toMatchObject({ causes: [{ kind: 'compacted' }] });
  await post(`${at}/compact/undo`);
  await post(`${at}/truncate`, {});
  expect(await get(`${at}/context/changes`)).toMatchObject({ changes: [{ kind: 'compacted' }, { kind: 'undone' }] });
  const { last } = await get<{ last: number }>(`${at}/moments?limit=1`);
  await get(`${at}/moments/0`);
  for (const position of [last, Math.floor(last / 2)]) await get(`${at}/moments/${position}`);

  await post(`${at}/retry`, {});
  await post(`${at}/edit`, { text: 'another word' });
  await post(`${at}/rewind`, { to: 'turn_0002' });
  expect(await get(`${at}/branches`)).toMatchObject({ branches: [{ branch: 1 }, { branch: 2 }, { branch: 3 }] });
  for (const query of ['', '?last=2', '?branch=1']) await get(`${at}/entries${query}`);
  const fork = await post<{ id: string }>(`${at}/fork`, { at: 'turn_0001', budget: { maxTokens: 1_000_000 } });
  expect(await get(`/v1/conversations/${fork.id}`)).toMatchObject({ status: { origin: { kind: 'fork', conversation: id } } });
  await post(`${at}/reset`);
  await post(`${at}/interrupt`, { reason: 'enough' });
  await get(`${at}/tree`);
  for (const query of ['', '?current=true']) await get(`/v1/conversations${query}`);
  for (const by of ['model', 'day']) await get(`/v1/usage?by=${by}`);

  await post(`${at}/close`, { memory: false });
  await world.client.outcome(id);
  expect(await get(at)).toMatchObject({ state: 'ended' });
  await post(`${at}/resume`, {});
  await post(`${at}/close`, { memory: false });
  await world.client.outcome(id);
  await send('DELETE', `/v1/conversations/${fork.id}`).catch(() => undefined);
  await world.client.terminate(fork.id);
  await send('DELETE', `/v1/conversations/${fork.id}`);
});

test('what waits for its turn is answered with 202, and done in its turn', async () => {
  const id = world.id();
  const at = `/v1/conversations/${id}`;
  await post('/v1/conversations', { id, scope: SCOPE });
  await post(`${at}/messages?mode=enqueue`, { text: 'write it' });
  await waitFor(
    () => get<{ approvals: unknown[] }>(`${at}/approvals`),
    ({ approvals }) => approvals.length > 0,
  );
  for (const path of ['reset', 'compact']) {
    const body = path === 'compact' ? { body: {} } : {};
    expect([path, await api.ask('/admin', 'POST', `${at}/${path}?wait=0`, body)]).toMatchObject([
      path,
      { status: 202, json: { conversation: id } },
    ]);
  }
  await waitFor(
    () => world.client.status(id),
    ({ session, phase }) => session === 2 && phase === 'idle',
  );
  await world.client.terminate(id);
});

test('step by step, with the queue by hand', async () => {
  const id = world.id();
  const at = `/v1/conversations/${id}`;
  await post('/v1/conversations', { id, mode: 'stepping' });
  for (const said of ['one', 'two', 'three']) await post(`${at}/messages?mode=enqueue`, { id: said, text: said });
  await post(`${at}/dispatch`, { type: 'ticket.updated', payload: { a: 1 } });
  const { queue } = await get<{ queue: { id: string }[] }>(`${at}/queue`);
  await post(`${at}/queue`, { op: 'move', id: queue[2]!.id, before: null });
  await send('DELETE', `${at}/messages/three`);
  await get(at);
  for (const _ of [1, 2, 3]) await post(`${at}/step`, {});
  await send('PUT', `${at}/breakpoints`, { tools: ['write_file'], onError: true, costUsd: 3 });
  await get(`${at}/control`);
  await get(`${at}/moments/3`);
  await post(`${at}/queue`, { op: 'clear' });
  await send('PATCH', at, { title: 'Stepped', model: null, mode: 'auto' });
  await world.client.terminate(id);
});

test('a scope’s memory, and all of the installation', async () => {
  const key = { namespace: 'default', scope: SCOPE };
  const source = { trust: 'tool:look' as const, conversation: 'c', turn_ids: ['turn_0001'], tools: ['look'] };
  const [ts, text, line] = [1_700_000_000, '- Lives in Oslo.\n- Likes tea.\n', '- Lives in Oslo.'];
  const from = (await world.store.documents.memory(key)).version;
  await world.store.documents.writeMemory(key, { id: 'w1', ts, cause: 'consolidation', from, text, lines: [{ line, source }] });
  await world.store.documents.appendHistory(key, { id: 'h1', kind: 'summary', ts, text: 'Oslo was spoken of.' });
  const [proposal] = await world.store.documents.propose(key, 'b1', [{ ts, line: '- Owns a boat.', source }]);
  const fact = { ts, fact: 'Lives in Bergen', tags: ['home'], confidence: 1, salience: 1 };
  const where = { conversation: 'c', turn_ids: ['turn_0001'] };
  await world.store.facts.add(key, 'b1', [fact], where);
  await world.store.facts.add(key, 'b2', [{ ...fact, fact: 'Lives in Oslo' }], where, [
    { fact: 'Lives in Bergen', by: 'Lives in Oslo', ts },
  ]);
  const at = `/v1/memory/${SCOPE}`;
  for (const path of ['', '/blame', '/changes', '/diff', '/facts?all=true', '/history', '/history?query=Oslo']) await get(`${at}${path}`);
  const { hits } = await post<{ hits: { address: string }[] }>('/v1/search', { scope: SCOPE, question: 'Where was Oslo spoken of?' });
  await post('/v1/search/open', { scope: SCOPE, at: hits[0]!.address });
  expect(await get<{ scopes: string[] }>('/v1/scopes')).toMatchObject({ scopes: expect.arrayContaining([SCOPE]) });
  const inAll = await post<{ hits: { scope: string; address: string }[] }>('/v1/search', { question: 'Where was Oslo spoken of?' });
  expect(inAll.hits).toContainEqual(expect.objectContaining({ scope: SCOPE, address: hits[0]!.address }));
  await post(`${at}/review`, { id: proposal!.id, decision: 'accept' });
  expect(await post(`${at}/forget/preview`, { text: 'Lives in Oslo.' })).toMatchObject({
    lines: [line],
    facts: [{ fact: 'Lives in Oslo' }],
  });
  await post(`${at}/forget`, { text: 'Lives in Oslo.' });
  for (const path of ['/me', '/agents', '/agents/default', '/findings', '/workers', '/failures']) await get(`/v1${path}`);
});

test('nothing that is described was left out', () => {
  expect(api.operations.filter((operation) => !api.answered.has(operation))).toEqual([]);
  expect(api.operations.length).toBeGreaterThan(50);
});

test('another answer that needs a step is waited for no longer than was asked, and its turn goes on', async () => {
  const id = world.id();
  const at = `/v1/conversations/${id}`;
  await post('/v1/conversations', { id });
  await post(`${at}/messages`, { text: 'hello' });
  await send('PATCH', at, { mode: 'stepping' });
  const again = await api.ask('/admin', 'POST', `${at}/retry?wait=0.2`, { body: {} });
  expect([again.status, again.json]).toEqual([202, { conversation: id, turn: 'turn_0002' }]);
  const edited = await api.ask('/admin', 'POST', `${at}/edit?wait=0`, { body: { text: 'another word', turn: 'turn_0001' } });
  expect([edited.status, edited.json]).toMatchObject([404, {}]);
  await send('PATCH', at, { mode: 'auto' });
  expect(await get(`${at}/turns/turn_0002`)).toMatchObject({ text: 'You said: hello' });
});

test('what is written to a conversation while it is deleted is answered as what is not there, without its inner name', async () => {
  const id = world.id();
  await post('/v1/conversations', { id });
  const key = await world.client.key(id);
  await world.store.lives.markDeleted(key, [{ life: key.life, at: 1_790_000_000 }]);
  const { status, json } = await api.ask('/admin', 'POST', `/v1/conversations/${id}/attachments`, {
    bytes: PNG,
    headers: { 'content-type': 'image/png' },
  });
  expect([status, json]).toEqual([404, expect.objectContaining({ type: expect.stringContaining('not-found') as unknown })]);
  expect(JSON.stringify(json)).not.toContain(id);
});
