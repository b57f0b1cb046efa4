/**
 * Two tenants say the same things at the same time, under the same ids, in every protocol that has conversations, on both stores: each has
 * its own text, tools, approvals, usage, memory and files, and its model never reads a word of the other's.
 */
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { GatewayApp } from '../../../src/gateway/context.js';
import { latestResults, resultText, saidIn } from '../../support/echo-model.js';
import { callTool, text, type Reply } from '../../support/provider-apis/reply.js';
import type { ApiRequest } from '../../support/provider-apis/api-request.js';
import { startRedis, type RedisServer } from '../../support/redis-server.js';
import { ask, tenantGateway, type Answer } from '../../support/tenants.js';
import { waitFor } from '../../support/wait-for.js';
import { startWorld, type World } from '../../support/world.js';

const TENANTS = ['initech', 'hooli'] as const;
type Tenant = (typeof TENANTS)[number];
const PROTOCOLS = ['native', 'responses', 'ai-sdk', 'ag-ui', 'a2a'] as const;
type Protocol = (typeof PROTOCOLS)[number];

let run = '';
const idOf = (protocol: Protocol): string => `desk-${protocol}-${run}`;
const secretOf = (tenant: Tenant, place: string): string => `what ${tenant} keeps in ${place}`;
const other = (tenant: Tenant): Tenant => (tenant === 'initech' ? 'hooli' : 'initech');

/** It writes a file, which a person must allow, reads it, and says what stands there; or has a sub-agent do so. */
function answer(request: ApiRequest): Reply {
  const [, tenant = '', does = '', place = ''] = /(\w+) (notes|delegates) in ([\w-]+)/.exec(saidIn(request).at(-1) ?? '') ?? [];
  const [result] = latestResults(request).map(resultText);
  if (does === 'delegates') {
    return result === undefined
      ? callTool('delegate', { task: `${tenant} notes in sub-${place}`, title: 'note' })
      : text(`It has: ${result}`);
  }
  const file = `${place}.txt`;
  if (result === undefined) return callTool('write_file', { path: file, content: secretOf(tenant as Tenant, place) });
  return result.includes('keeps in') ? text(`There stands: ${result}`) : callTool('read_file', { path: file });
}

interface Waiting {
  /** What the client has been shown up to the question. */
  readonly shown: string;
  /** Allows it, and resolves with all that the client is shown then. */
  allow(): Promise<string>;
}

describe.each(['files', 'redis'] as const)('on %s', (kind) => {
  let redis: RedisServer | undefined;
  let world: World;
  let app: GatewayApp;

  beforeAll(async () => {
    run = randomUUID().slice(0, 8);
    redis = kind === 'redis' ? await startRedis() : undefined;
    world = await startWorld({
      ...(redis && { redisUrl: redis.url }),
      agent: { approvals: [{ tool: 'write_file', policy: 'ask' }] },
      answer,
    });
    app = tenantGateway(world);
    for (const tenant of TENANTS) {
      const key = { namespace: 'default', scope: `${tenant}.default`, conversation: 'before', life: 'l' };
      const fact = { ts: 1, fact: `The word of ${tenant} is known.`, tags: [], confidence: 1, salience: 1 };
      await world.store.facts.add(key, 'batch', [fact], { conversation: 'before', turn_ids: ['turn_0001'] });
    }
  });
  afterAll(async () => {
    await world.close();
    await redis?.stop();
  });

  const as =
    (tenant: Tenant) =>
    async (method: string, path: string, body?: object, headers: Record<string, string> = {}): Promise<Answer> => {
      const answered = await ask(app, tenant, method, path, { ...(body && { body }), headers });
      expect(answered.text).not.toMatch(new RegExp(`${other(tenant)}|t-[0-9a-f]{12}-|${tenant}\\.`));
      return answered;
    };

  interface Pending {
    readonly conversation: string;
    readonly callId: string;
    readonly hash: string;
    readonly arguments: { readonly content: string };
  }
  const pendingIn = async (tenant: Tenant, id: string): Promise<Pending> => {
    const found = await waitFor(
      () => as(tenant)('GET', `/v1/conversations/${id}/approvals`),
      ({ json }) => (json as { approvals?: unknown[] } | undefined)?.approvals?.length === 1,
    );
    return (found.json as { approvals: Pending[] }).approvals[0] as Pending;
  };
  /** Its protocol shows no approvals, or the request waits meanwhile: the native routes have them. */
  const decidedBeside = async (tenant: Tenant, id: string, sending: Promise<Answer>): Promise<Waiting> => {
    const pending = await pendingIn(tenant, id);
    const { callId, hash, conversation } = pending;
    const decide = (token: Tenant) =>
      as(token)('POST', `/v1/conversations/${id}/decide`, { callId, hash, conversation, decision: 'approve' });
    return {
      shown: JSON.stringify(pending),
      async allow() {
        // The same call of the other tenant's conversation of that name is another one: it has other arguments.
        expect((await decide(other(tenant))).status).toBeGreaterThanOrEqual(400);
        expect((await decide(tenant)).status).toBeLessThan(300);
        return (await sending).text;
      },
    };
  };
  const chunksIn = (stream: string): Record<string, unknown>[] =>
    [...stream.matchAll(/^data: (\{.*\})$/gm)].map(([, data = '']) => JSON.parse(data) as Record<string, unknown>);

  const begin: Record<Protocol, (tenant: Tenant, words: string) => Promise<Waiting>> = {
    native: (tenant, words) =>
      decidedBeside(tenant, idOf('native'), as(tenant)('POST', `/v1/conversations/${idOf('native')}/messages`, { text: words, start: {} })),
    responses: (tenant, words) =>
      decidedBeside(
        tenant,
        idOf('responses'),
        as(tenant)('POST', '/v1/responses', { model: 'default', input: words, conversation: idOf('responses') }),
      ),
    async 'ai-sdk'(tenant, words) {
      const user = { id: 'm1', role: 'user', parts: [{ type: 'text', text: words }] };
      const { text: shown } = await as(tenant)('POST', '/api/chat', { id: idOf('ai-sdk'), messages: [user] });
      const chunks = chunksIn(shown);
      const { messageId } = chunks.find(({ type }) => type === 'start') as { messageId: string };
      const { toolCallId, input } = chunks.find(({ type }) => type === 'tool-input-available') as { toolCallId: string; input: object };
      const approval = { id: toolCallId, approved: true };
      const parts = [{ type: 'tool-write_file', toolCallId, input, state: 'approval-responded', approval }];
      const messages = [user, { id: messageId, role: 'assistant', parts }];
      return {
        shown,
        allow: async () =>
          (await as(tenant)('POST', '/api/chat', { id: idOf('ai-sdk'), messages, messageId, trigger: 'submit-message' })).text,
      };
    },
    async 'ag-ui'(tenant, words) {
      const user = { id: 'm1', role: 'user', content: words };
      const run = { threadId: idOf('ag-ui'), runId: 'r1' };
      const { text: shown } = await as(tenant)('POST', '/agui', { ...run, messages: [user] });
      const frames = chunksIn(shown);
      const { toolCallId } = frames.find(({ type }) => type === 'TOOL_CALL_START') as { toolCallId: string };
      const { delta } = frames.find(({ type }) => type === 'TOOL_CALL_ARGS') as { delta: string };
      const call = { id: toolCallId, type: 'function', function: { name: 'write_file', arguments: delta } };
      const messages = [user, { id: 'a1', role: 'assistant', toolCalls: [call] }];
      const resume = [{ interruptId: toolCallId, status: 'resolved', payload: { approved: true } }];
      return { shown, allow: async () => (await as(tenant)('POST', '/agui', { ...run, runId: 'r2', messages, resume })).text };
    },
    a2a: (tenant, words) => sayInA2a(tenant, 'm1', words),
  };

  async function sayInA2a(tenant: Tenant, messageId: string, words: string, isBelow = false): Promise<Waiting> {
    const rpc = (method: string, params: object): Promise<Answer> =>
      as(tenant)('POST', '/a2a', { jsonrpc: '2.0', id: 1, method, params }, { 'a2a-version': '1.0' });
    const send = (message: object): Promise<Answer> =>
      rpc('SendMessage', {
        message: { role: 'ROLE_USER', contextId: idOf('a2a'), ...message },
        ...(isBelow && { configuration: { returnImmediately: true } }),
      });
    const sent = await send({ messageId, parts: [{ text: words }] });
    const { id } = (sent.json as { result: { task: { id: string } } }).result.task;
    const until = (state: string): Promise<Answer> =>
      waitFor(
        () => rpc('GetTask', { id }),
        (answered) => answered.text.includes(state),
      );
    const { text: shown } = await until('TASK_STATE_INPUT_REQUIRED');
    const [, code = ''] = /approve ([0-9a-f]{12})/.exec(shown) ?? [];
    return {
      shown,
      async allow() {
        await send({ messageId: `${messageId}-yes`, taskId: id, parts: [{ text: `approve ${code}` }] });
        return (await until('TASK_STATE_COMPLETED')).text;
      },
    };
  }

  test('the same ids in five protocols at the same time: text, tools, approvals and files are each one’s own', async () => {
    const begun = await Promise.all(
      TENANTS.flatMap((tenant) =>
        PROTOCOLS.map(async (protocol) => ({
          ...{ tenant, protocol },
          waiting: await begin[protocol](tenant, `${tenant} notes in ${protocol}`),
        })),
      ),
    );
    for (const { tenant, protocol, waiting } of begun) expect(waiting.shown).toContain(secretOf(tenant, protocol));
    for (const tenant of TENANTS) {
      const all = await waitFor(
        () => as(tenant)('GET', '/v1/approvals'),
        ({ json }) => (json as { approvals: Pending[] }).approvals.length === PROTOCOLS.length,
      );
      const { approvals } = all.json as { approvals: Pending[] };
      expect(approvals.map(({ conversation, arguments: { content } }) => `${conversation}: ${content}`).sort()).toEqual(
        PROTOCOLS.map((protocol) => `${idOf(protocol)}: ${secretOf(tenant, protocol)}`).sort(),
      );
    }
    await Promise.all(
      begun.map(async ({ tenant, protocol, waiting }) => {
        expect(await waiting.allow()).toContain(`There stands: `);
        const file = join(world.dir, 'workspace', tenant, `${protocol}.txt`);
        expect(await readFile(file, 'utf8')).toBe(secretOf(tenant, protocol));
        const entries = await as(tenant)('GET', `/v1/conversations/${idOf(protocol)}/entries`);
        expect(entries.text).toContain(secretOf(tenant, protocol));
      }),
    );
  });

  test('what a sub-agent asks is decided through its own tenant’s gateway, natively and in A2A', async () => {
    const begun = await Promise.all(
      TENANTS.flatMap((tenant) => [
        decidedBeside(
          tenant,
          idOf('native'),
          as(tenant)('POST', `/v1/conversations/${idOf('native')}/messages`, { text: `${tenant} delegates in native` }),
        ).then((waiting) => ({ ...{ tenant, place: 'native' as const }, waiting })),
        sayInA2a(tenant, 'm2', `${tenant} delegates in a2a`, true).then((waiting) => ({ ...{ tenant, place: 'a2a' as const }, waiting })),
      ]),
    );
    await Promise.all(
      begun.map(async ({ tenant, place, waiting }) => {
        expect(waiting.shown).toContain(secretOf(tenant, `sub-${place}`));
        expect(waiting.shown).toContain(`"conversation":"${idOf(place)}:turn_0002:1"`);
        expect(await waiting.allow()).toContain('It has: ');
        expect(await readFile(join(world.dir, 'workspace', tenant, `sub-${place}.txt`), 'utf8')).toBe(secretOf(tenant, `sub-${place}`));
      }),
    );
  });

  test('memory, usage and lists are each one’s own, and no model has read a word of the other', async () => {
    for (const tenant of TENANTS) {
      const { json: memory } = await as(tenant)('GET', '/v1/memory/default');
      expect(memory).toMatchObject({ facts: [{ fact: `The word of ${tenant} is known.` }] });
      const usage = (await as(tenant)('GET', '/v1/usage?by=conversation')).json as { sums: { of: string; calls: number }[] };
      const below = [`${idOf('a2a')}:turn_0002:1`, `${idOf('native')}:turn_0002:1`];
      const known = (id: string): boolean => below.includes(id) || PROTOCOLS.some((protocol) => idOf(protocol) === id);
      expect(usage.sums.map(({ of }) => of).filter((of) => !known(of))).toEqual([]);
      expect(usage.sums.length).toBeGreaterThanOrEqual(PROTOCOLS.length);
      const listed = await waitFor(
        () => as(tenant)('GET', '/v1/conversations'),
        ({ json }) => (json as { conversations: unknown[] }).conversations.length >= PROTOCOLS.length,
      );
      const ids = (listed.json as { conversations: { id: string }[] }).conversations.map(({ id }) => id);
      expect(ids).toEqual(expect.arrayContaining(PROTOCOLS.map(idOf)));
    }
    const read = world.api.hits.map(({ body }) => JSON.stringify(body));
    expect(read.length).toBeGreaterThan(30);
    for (const body of read) expect(TENANTS.filter((tenant) => body.includes(tenant))).toHaveLength(1);
    expect(read.filter((body) => /The word of (initech|hooli) is known/.test(body)).length).toBeGreaterThan(10);
  });
});
