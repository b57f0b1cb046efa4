/** Two tenants do anything with one set of ids, in any order: each has what it would have alone. */
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import type { GatewayApp } from '../../../src/gateway/context.js';
import { isFromPerson, shownText, type Entry } from '../../../src/records/message.js';
import { text } from '../../support/provider-apis/reply.js';
import { saidIn } from '../../support/echo-model.js';
import { ask, tenantGateway, type Answer } from '../../support/tenants.js';
import { waitFor } from '../../support/wait-for.js';
import { startWorld, type World } from '../../support/world.js';

const TENANTS = ['initech', 'hooli'] as const;
type Tenant = (typeof TENANTS)[number];
const IDS = ['a', 'b', 'c'] as const;
const ACTS = ['start', 'send', 'send', 'send', 'fork', 'reset', 'close', 'delete', 'entries', 'memory', 'approvals', 'list'] as const;

interface Known {
  state: 'running' | 'ended' | 'deleted';
  readonly said: string[];
  /** Conversations that begin with its turns. */
  readonly forks: Known[];
}
type Model = Record<Tenant, Map<string, Known>>;

let world: World;
let app: GatewayApp;
beforeAll(async () => {
  world = await startWorld({ answer: (request) => text(`You said: ${saidIn(request).at(-1)}`) });
  app = tenantGateway(world);
});
afterAll(() => world.close());

const step = fc.record({
  tenant: fc.constantFrom(...TENANTS),
  act: fc.constantFrom(...ACTS),
  id: fc.constantFrom(...IDS),
  other: fc.constantFrom(...IDS),
});

test('what one does shows in nothing of the other', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 12, maxLength: 30 }), async (steps) => {
      const run = randomUUID().slice(0, 8);
      const model: Model = { initech: new Map(), hooli: new Map() };
      for (const [at, one] of steps.entries()) {
        const named = { ...one, id: `${one.id}-${run}`, other: `${one.other}-${run}`, words: `${one.tenant} says ${at}` };
        const answers = await act(model[one.tenant], named);
        const stranger = one.tenant === 'initech' ? 'hooli' : 'initech';
        for (const { text: shown } of answers) expect(shown).not.toMatch(new RegExp(`${stranger}|t-[0-9a-f]{12}-`));
      }
      for (const tenant of TENANTS) {
        for (const id of IDS.map((name) => `${name}-${run}`)) await entriesAsKnown(tenant, id, model[tenant].get(id));
      }
    }),
    { numRuns: 8, endOnFailure: true, ...(process.env['SEED'] !== undefined && { seed: Number(process.env['SEED']) }) },
  );
});

interface Step {
  readonly tenant: Tenant;
  readonly act: (typeof ACTS)[number];
  readonly id: string;
  readonly other: string;
  readonly words: string;
}

async function act(known: Map<string, Known>, { tenant, act: what, id, other, words }: Step): Promise<Answer[]> {
  const asked = (method: string, path: string, body?: object): Promise<Answer> => ask(app, tenant, method, path, body && { body });
  const one = known.get(id);
  const isThere = one !== undefined && one.state !== 'deleted';
  const of = `/v1/conversations/${id}`;
  switch (what) {
    case 'start': {
      // A name whose conversation was deleted is not used again here: Temporal deletes in the background.
      if (one && one.state !== 'running') return [];
      const answer = await asked('POST', '/v1/conversations', { id });
      expect(answer).toMatchObject({ status: 201, json: { id, attached: one !== undefined } });
      if (!one) known.set(id, { state: 'running', said: [], forks: [] });
      return [answer];
    }
    case 'send': {
      const answer = await asked('POST', `${of}/messages`, { text: words });
      if (one?.state === 'running') {
        expect(answer).toMatchObject({ status: 200, json: { text: `You said: ${words}` } });
        one.said.push(words);
      } else expect([404, 409]).toContain(answer.status);
      return [answer];
    }
    case 'fork': {
      const answer = await asked('POST', `${of}/fork`, { at: 'turn_0001', id: other });
      const target = known.get(other);
      const [first] = one?.said ?? [];
      if (!one || one.state === 'deleted' || first === undefined) expect(answer.status).toBe(404);
      else if (target?.state === 'running') expect(answer.status).toBe(409);
      else if (target) {
        // A new life of a name that was used: the end of the old one is another test's.
        known.set(other, forkOf(one, first));
        expect(answer.status).toBe(201);
      } else {
        expect(answer).toMatchObject({ status: 201, json: { id: other } });
        known.set(other, forkOf(one, first));
      }
      return [answer];
    }
    case 'reset': {
      const answer = await asked('POST', `${of}/reset`, {});
      expect(answer.status === 200).toBe(one?.state === 'running');
      return [answer];
    }
    case 'close': {
      const answer = await asked('POST', `${of}/close`, { memory: false });
      if (one?.state !== 'running') return [answer];
      expect(answer.status).toBe(202);
      await waitFor(
        () => asked('GET', of),
        ({ json }) => (json as { state: string }).state !== 'running',
      );
      one.state = 'ended';
      return [answer];
    }
    case 'delete': {
      const answer = await asked('DELETE', of);
      if (!isThere) expect([200, 404]).toContain(answer.status);
      else if (one.state === 'running' || one.forks.some(({ state }) => state !== 'deleted')) expect(answer.status).toBe(409);
      else {
        expect(answer).toMatchObject({ status: 200, json: { scopes: ['default'] } });
        one.state = 'deleted';
      }
      return [answer];
    }
    case 'entries':
      return [await entriesAsKnown(tenant, id, one)];
    case 'memory': {
      const answer = await asked('GET', `${of}/memory`);
      if (one?.state !== 'deleted') expect(answer.status).toBe(one ? 200 : 404);
      return [answer];
    }
    case 'approvals': {
      const [all, own] = [await asked('GET', '/v1/approvals'), await asked('GET', `${of}/approvals`)];
      expect(all).toMatchObject({ status: 200, json: { approvals: [] } });
      if (one?.state === 'running') expect(own).toMatchObject({ status: 200, json: { approvals: [] } });
      if (!one) expect(own.status).toBe(404);
      return [all, own];
    }
    case 'list': {
      const run = id.slice(1);
      const expected = [...known].flatMap(([name, { state }]) => (state === 'deleted' ? [] : [name])).sort();
      return [
        await waitFor(
          () => asked('GET', '/v1/conversations?limit=500'),
          ({ json }) => {
            const { conversations } = json as { conversations: { id: string }[] };
            const own = conversations.map((row) => row.id).filter((name) => name.endsWith(run));
            return JSON.stringify(own.sort()) === JSON.stringify(expected);
          },
        ),
      ];
    }
  }
}

function forkOf(one: Known, first: string): Known {
  const fork: Known = { state: 'running', said: [first], forks: [] };
  one.forks.push(fork);
  return fork;
}

async function entriesAsKnown(tenant: Tenant, id: string, one: Known | undefined): Promise<Answer> {
  const answer = await ask(app, tenant, 'GET', `/v1/conversations/${id}/entries?limit=1000`);
  // Of what was deleted a moment ago Temporal may still know the name, and nothing else is left.
  if (one?.state === 'deleted') expect(answer.text).not.toContain('says');
  else if (!one) expect(answer.status).toBe(404);
  else {
    expect(answer.status).toBe(200);
    const { entries } = answer.json as { entries: Entry[] };
    const said = entries.flatMap(({ message }) => (isFromPerson(message) && message.role === 'user' ? [shownText(message.text)] : []));
    expect(said).toEqual(one.said);
  }
  return answer;
}
