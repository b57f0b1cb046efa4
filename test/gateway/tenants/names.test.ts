import fc from 'fast-check';
import type { Description, PerduraClient } from '../../../src/client.js';
import { ClientError } from '../../../src/client/errors.js';
import { ID_PATTERN } from '../../../src/conversation/protocol/contract.js';
import { CHILD_PATTERN, TENANT_PATTERN } from '../../../src/conversation/protocol/limits.js';
import { createTenantClient, createReveal } from '../../../src/client/tenants/client.js';
import { createTenantIds, createKnownConversations } from '../../../src/client/tenants/names.js';

const KEY = 'a-key-that-only-tests-have-0123456789';
const tenant = fc.stringMatching(TENANT_PATTERN);
const id = fc.stringMatching(ID_PATTERN);
const FAMILY = `api-${'0'.repeat(24)}-`;

test('two names are one conversation only where tenant, id and key are the same', () => {
  const name = fc.record({ tenant, id, key: fc.constantFrom(KEY, `${KEY}x`) });
  fc.assert(
    fc.property(name, name, (a, b) => {
      const [one, other] = [a, b].map((of) => createTenantIds(of.tenant, of.key).toWorkflowId(of.id));
      expect(one === other).toBe(a.tenant === b.tenant && a.id === b.id && a.key === b.key);
      expect(one).toMatch(ID_PATTERN);
    }),
  );
});

test('what a tenant names is found under its hash alone, also where that is a hash itself', () => {
  const ids = createTenantIds('acme', KEY);
  const hidden = ids.toWorkflowId('plan');
  expect(hidden.startsWith(ids.prefix)).toBe(true);
  expect(ids.toWorkflowId(hidden)).not.toBe(hidden);
  expect(createTenantIds('globex', KEY).prefix).not.toBe(ids.prefix);
});

test('a sub-agent is below its parent, under the same hash', () => {
  const ids = createTenantIds('acme', KEY);
  expect(ids.toWorkflowId('plan:turn_0001:1:turn_0001:2')).toBe(`${ids.toWorkflowId('plan')}:turn_0001:1:turn_0001:2`);
  expect(ids.toWorkflowId('plan:turn_0001:1')).toMatch(CHILD_PATTERN);
  for (const bad of ['', 'a b', '../x', 'a:b', 'x'.repeat(65), 'memory:acme', 't-x:turn_1:1']) {
    expect(() => ids.toWorkflowId(bad)).toThrow(ClientError);
  }
});

test('conversations of one beginning are listed together', () => {
  const ids = createTenantIds('acme', KEY);
  const prefix = ids.toPrefix(FAMILY) ?? '-';
  expect(ids.toWorkflowId(`${FAMILY}${'1'.repeat(24)}`).startsWith(prefix)).toBe(true);
  expect(ids.toWorkflowId(`${FAMILY}${'2'.repeat(24)}`).startsWith(prefix)).toBe(true);
  expect(ids.toWorkflowId(FAMILY.replace('0', '1') + '1'.repeat(24)).startsWith(prefix)).toBe(false);
  expect(ids.toPrefix('plan-')).toBeUndefined();
});

test('answers name what the tenant knows, and what was said stays as it was said', async () => {
  const ids = createTenantIds('acme', KEY);
  const [own, gone, others] = [ids.toWorkflowId('plan'), ids.toWorkflowId('gone'), createTenantIds('globex', KEY).toWorkflowId('x')];
  const reveal = createReveal({ tenant: 'acme', prefix: ids.prefix, toPublicId: async (one) => (one === own ? 'plan' : undefined) });
  const at = new Date(0);
  expect(
    await reveal.value({
      origin: { conversation: own },
      waitingFor: `memory:acme.default to consolidate; the sub-agent ${own}:turn_0001:1`,
      list: [{ id: gone }, { conversation: others }],
      scope: 'acme.default',
      scopes: ['acme.a', 'b'],
      message: { text: `see ${own}` },
      arguments: { conversation: own, scope: 'acme.default' },
      at,
    }),
  ).toEqual({
    origin: { conversation: 'plan' },
    waitingFor: 'memory:default to consolidate; the sub-agent plan:turn_0001:1',
    list: [{ id: '(deleted)' }, { conversation: '(another conversation)' }],
    scope: 'default',
    scopes: ['a', 'b'],
    message: { text: `see ${own}` },
    arguments: { conversation: own, scope: 'acme.default' },
    at,
  });
  expect(await reveal.error(new ClientError('invalid', `a fork reads ${own}: ${others}`))).toMatchObject({
    kind: 'invalid',
    message: 'a fork reads plan: (another conversation)',
  });
});

test('a sub-agent in a list is named below its parent, though it has no public id', async () => {
  const parent = createTenantIds('acme', KEY).toWorkflowId('plan');
  const rows = [
    { id: parent, tenant: 'acme', publicId: 'plan' },
    { id: `${parent}:turn_0001:1`, tenant: 'acme', publicId: null },
  ];
  const client = { list: () => Promise.resolve(rows) } as unknown as PerduraClient;
  const listed = await createTenantClient(client, 'acme', KEY).list();
  expect(listed.map(({ id: shown }) => shown)).toEqual(['plan', 'plan:turn_0001:1']);
});

test('what a deleted conversation was called is soon forgotten, also by a gateway that did not delete it', async () => {
  let now = 0;
  let called: string | null = 'plan';
  const describe = (id: string): Promise<Description> => {
    if (called === null) return Promise.reject(new ClientError('not-found', `there is no ${id}`));
    return Promise.resolve({ id, tenant: 'acme', publicId: called } as Description);
  };
  const [one, other] = [createKnownConversations(describe, () => now), createKnownConversations(describe, () => now)];
  const calls = async () => [(await one.find('t-1'))?.publicId, (await other.find('t-1'))?.publicId];
  expect(await calls()).toEqual(['plan', 'plan']);
  called = null;
  one.drop('t-1:turn_0001:1');
  expect(await calls()).toEqual([undefined, 'plan']);
  now = 30_000;
  expect(await calls()).toEqual([undefined, undefined]);
});
