/** MCP's conformance suite for clients against the product's own client, over each revision that is spoken. Signing in is tried elsewhere. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { outcomeIn } from './mcp.js';
import { installPackages, named, type Packages } from './npm-packages.js';
import type { ClientPlace, Outcome, Suite } from './suite.js';

const CONFORMANCE = '@modelcontextprotocol/conformance@0.2.0-alpha.12';
const PROGRAM = join(__dirname, 'mcp-scenario.cjs');
const REVISIONS = ['2025-11-25', '2026-07-28'];

export const mcpClientSuite: Suite = { name: 'MCP, conformance suite of clients', client: named(CONFORMANCE), run: conformance };

const NO_ELICITATION = 'a server that needs an answer of a person while a tool runs gets none: it is told so, and the model too';
const APART: ReadonlyMap<string, string> = new Map([
  ['elicitation-sep1034-client-defaults', NO_ELICITATION],
  ['sep-2322-client-request-state', NO_ELICITATION],
]);

async function conformance({ cacheDir }: ClientPlace): Promise<readonly Outcome[]> {
  const packages = await installPackages(cacheDir, [CONFORMANCE]);
  const outcomes: Outcome[] = [];
  for (const revision of REVISIONS) {
    for (const scenario of await required(packages, revision)) outcomes.push(await tryScenario(packages, revision, scenario));
  }
  return outcomes;
}

/** What counts for a client of a revision, by the suite's own list. */
async function required(packages: Packages, revision: string): Promise<readonly string[]> {
  const { stdout } = await packages.run({ bin: 'conformance' }, ['list', '--requirements', revision]);
  const [, listed = ''] = /^Client scenarios.*\n((?: +- .*\n)+)/m.exec(stdout) ?? [];
  const names = [...listed.matchAll(/- (\S+)/g)].flatMap(([, name = '']) => (name.startsWith('auth/') ? [] : [name]));
  if (names.length === 0) throw new Error(`the suite names no scenarios of ${revision} for clients: ${stdout}`.slice(0, 500));
  return names;
}

async function tryScenario(packages: Packages, revision: string, scenario: string): Promise<Outcome> {
  const check = `${scenario} (${revision})`;
  const why = APART.get(scenario);
  if (why !== undefined) return { check, result: 'apart', why };
  const out = await mkdtemp(join(tmpdir(), 'perdura-conformance-'));
  try {
    const command = `${process.execPath} ${PROGRAM}`;
    await packages.run({ bin: 'conformance' }, [
      ...['client', '--command', command, '--scenario', scenario, '--spec-version', revision, '--timeout', '60000', '-o', out],
    ]);
    return await outcomeIn(out, check);
  } finally {
    await rm(out, { recursive: true, force: true });
  }
}
