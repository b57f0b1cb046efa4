/** Two tenants and the operator before one gateway: who presents `acme` or `globex` is that tenant, with the role behind it. */
import { randomUUID } from 'node:crypto';
import { createGateway } from '../../src/gateway/app.js';
import { createEntrance, type Authenticate } from '../../src/gateway/access/entrance.js';
import type { Role } from '../../src/gateway/access/principal.js';
import type { GivenAway, SpentRecord } from '../../src/gateway/access/spent.js';
import type { GatewayApp } from '../../src/gateway/context.js';
import { timeoutSignal } from '../../src/platform/promises.js';
import type { World } from './world.js';

export const TENANT_KEY = 'a-key-that-only-tests-have-0123456789';

/** Tokens such as `acme/user`; `/admin` alone is the operator's. */
export const byName: Authenticate = (presented) => {
  const [tenant = '', role = 'admin'] = presented.split('/');
  return Promise.resolve({ name: presented, role: role as Role, ...(tenant !== '' && { tenant }) });
};

export function tenantGateway({ client }: Pick<World, 'client'>): GatewayApp {
  const agents = (tenant?: string): Promise<string[]> => Promise.resolve(tenant === 'globex' ? ['default'] : ['default', 'house']);
  const describeAgent = async (name: string, tenant?: string) =>
    (await agents(tenant)).includes(name) ? { name, config: {}, tools: [], servers: [], system: '' } : undefined;
  const { browsers } = createEntrance({ secrets: [TENANT_KEY], spent: spentInMemory() });
  return createGateway({
    client,
    describeAgent,
    authenticate: byName,
    browsers,
    tenantKey: TENANT_KEY,
    agents,
    requestsPerMinute: 100_000,
  });
}

/** Used codes and sign-outs of gateways that no test starts again, by the promises of test/gateway/access/spent.test.ts. */
export function spentInMemory(): SpentRecord {
  const [record, spent] = [randomUUID(), new Set<string>()];
  const isSpent = (given: GivenAway): boolean => given.record !== record || spent.has(`${given.kind} ${given.id}`);
  return {
    id: () => Promise.resolve(record),
    isSpent: (given) => Promise.resolve(isSpent(given)),
    spend: (given) => {
      const isFirst = !isSpent(given);
      spent.add(`${given.kind} ${given.id}`);
      return Promise.resolve(isFirst);
    },
  };
}

const PATIENCE_MS = 150_000;

export interface Asked {
  readonly body?: unknown;
  readonly bytes?: Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Answer {
  readonly status: number;
  readonly text: string;
  readonly json: unknown;
}

export async function ask(app: GatewayApp, token: string, method: string, path: string, asked: Asked = {}): Promise<Answer> {
  const { body, bytes, headers } = asked;
  // A stream that should have been refused would never end.
  const signal = timeoutSignal(PATIENCE_MS);
  const response = await app.request(`http://localhost${path}`, {
    method,
    signal,
    headers: { host: 'localhost', authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(bytes && { body: Buffer.from(bytes) }),
  });
  const text = await response.text();
  const isJson = (response.headers.get('content-type') ?? '').includes('json');
  return { status: response.status, text, json: isJson ? (JSON.parse(text) as unknown) : undefined };
}
