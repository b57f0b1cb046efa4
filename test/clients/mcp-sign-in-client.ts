/** One scenario of MCP's conformance suite by the product's own code: a worker's tools, and a person who follows the links that are asked. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openStore } from '../../src/stores/open.js';
import { createServerTools } from '../../src/tools/mcp/server-tools.js';
import { expandServer, mcpConfigSchema, toServers } from '../../src/tools/mcp/server-config.js';
import { timeoutSignal } from '../../src/platform/promises.js';
import { createSignIns } from '../../src/tools/mcp/sign-in/sign-ins.js';
import { createSignInVisits } from '../../src/tools/mcp/sign-in/visits.js';
import type { ToolContext } from '../../src/tools/tool.js';

const ROUNDS = 4;
const [url = ''] = process.argv.slice(2);
const { client_id: clientId, client_secret: clientSecret } = JSON.parse(process.env['MCP_CONFORMANCE_CONTEXT'] ?? '{}') as Record<
  string,
  string
>;

async function main(): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), 'perdura-sign-in-'));
  const store = openStore({ memoryDir: dir } as Parameters<typeof openStore>[0]);
  const oauth = clientId === undefined ? undefined : { clientId, clientSecret };
  const servers = toServers(mcpConfigSchema.parse({ mcpServers: { suite: { type: 'http', url, ...(oauth && { oauth }) } } }), dir);
  const given = {
    store: store.signIns,
    secrets: ['a secret of the suite that is long enough'] as const,
    publicUrl: 'http://127.0.0.1:7280',
  };
  const signIns = createSignIns(given);
  const visits = createSignInVisits({
    ...given,
    findServer: async ({ server }) => servers.filter(({ name }) => name === server).map((one) => expandServer(one, {}))[0],
    clientDocument: 'https://conformance-test.local/client-metadata.json',
  });
  const log = (line: string): void => console.error(line);
  const theirs = createServerTools({ pins: store.pins, variables: {}, version: '0', log, signIns });
  const offer = () => theirs.of({ namespace: 'suite', agent: 'ada', scope: 'ada', servers, taken: [] }, { patienceMs: 8_000 });
  const context = { signal: timeoutSignal(25_000) } as ToolContext;

  const followLink = async (why: string): Promise<void> => {
    const [, ticket = ''] = /for=([\w-]+)/.exec(why) ?? [];
    const begun = await visits.begin(ticket);
    if (begun === undefined) throw new Error('the link opens nothing');
    const there = await fetch(begun.location, { redirect: 'manual' });
    const back = new URL(there.headers.get('location') ?? '', begun.location);
    if ((await visits.finish(back.searchParams)) === undefined) throw new Error('what comes back opens nothing');
  };

  try {
    const called = new Set<string>();
    for (let round = 0; round < ROUNDS; round++) {
      const { tools } = await offer();
      const signIn = tools.find(({ name }) => name === 'mcp_sign_in');
      if (signIn !== undefined) {
        const examined = await signIn.examine?.({ server: 'suite' }, { workspace: dir });
        if (examined?.asks) await followLink(examined.asks.why);
        const ended = await signIn.run({ server: 'suite' }, context);
        console.error(ended);
      }
      for (const tool of (await offer()).tools.filter(({ name }) => name.startsWith('mcp__') && !called.has(name))) {
        const ended = await tool.run({}, context);
        console.error(tool.name, ended);
        if (ended.ok) called.add(tool.name);
      }
      const { tools: after, isSignInNeeded } = await offer();
      if (!isSignInNeeded && after.every(({ name }) => called.has(name))) break;
    }
  } finally {
    await theirs.close();
    await store.close();
    await rm(dir, { recursive: true, force: true });
  }
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
