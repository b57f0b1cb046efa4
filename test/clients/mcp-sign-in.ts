/** MCP's conformance suite of clients, the part about signing in: each scenario has its own MCP server and authorization server. */
import { join } from 'node:path';
import { installPackages, named } from './npm-packages.js';
import type { ClientPlace, Outcome, Suite } from './suite.js';

const CONFORMANCE = '@modelcontextprotocol/conformance@0.2.0-alpha.12';
const REGISTER = join(__dirname, '..', 'stores', 'register-swc.cjs');
const CLIENT = join(__dirname, 'mcp-sign-in-client.ts');

export const MCP_SIGN_IN_SUITE: Suite = { name: 'MCP, signing in at servers', client: named(CONFORMANCE), run: signIns };

/** Those that ask for what is not there by design, by the reason. */
const APART: Readonly<Record<string, readonly string[]>> = {
  'an extension: a program signs in for itself, and no person is asked': [
    'auth/client-credentials-jwt',
    'auth/client-credentials-basic',
    'auth/enterprise-managed-authorization',
    'auth/wif-jwt-bearer',
  ],
  'an extension: tokens are bearers': ['auth/dpop', 'auth/dpop-nonce'],
};

async function signIns({ cacheDir }: ClientPlace): Promise<readonly Outcome[]> {
  const { run } = await installPackages(cacheDir, [CONFORMANCE]);
  const listed = await run({ bin: 'conformance' }, ['list']);
  const scenarios = [...new Set(listed.stdout.match(/auth\/[\w-]+/g) ?? [])];
  if (scenarios.length === 0) throw new Error(`the suite lists no scenario: ${listed.stderr.slice(0, 300)}`);
  const outcomes: Outcome[] = [];
  for (const check of scenarios) {
    const [why] = Object.entries(APART).find(([, names]) => names.includes(check)) ?? [];
    if (why !== undefined) {
      outcomes.push({ check, result: 'apart', why });
      continue;
    }
    const command = `"${process.execPath}" -r "${REGISTER}" "${CLIENT}"`;
    const { code, stdout } = await run({ bin: 'conformance' }, ['client', '--command', command, '--scenario', check]);
    const failed = /Failed Checks:([^]*)/.exec(stdout)?.[1]?.trim() ?? stdout.slice(-300);
    outcomes.push(code === 0 ? { check, result: 'passed' } : { check, result: 'failed', why: failed.slice(0, 400) });
  }
  const gone = Object.values(APART)
    .flat()
    .filter((name) => !scenarios.includes(name));
  return [...outcomes, ...gone.map((check): Outcome => ({ check, result: 'failed', why: 'the suite has no such scenario' }))];
}
