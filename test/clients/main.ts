/** `npm run test:clients` (scripts/test-clients.mjs): suites of other people's clients against the real thing, one after the other. */
import { a2aSuite } from './a2a.js';
import { JS_SUITES } from './js.js';
import { mcpClientSuite } from './mcp-client.js';
import { MCP_SUITES } from './mcp.js';
import { MCP_SIGN_IN_SUITE } from './mcp-sign-in.js';
import { phoenixSuite } from './phoenix.js';
import { OPENAPI_SUITES } from './openapi.js';
import { GENERATED_CLIENTS } from './openapi-clients.js';
import { openPlace } from './place.js';
import { PYTHON_SUITES } from './python.js';
import { MissingProgram, type Outcome, type Suite } from './suite.js';

export interface Tried {
  readonly name: string;
  readonly client: string;
  readonly outcomes: readonly Outcome[];
  /** Not tried: what is not there. */
  readonly missing?: string;
}

const SUITES: readonly Suite[] = [
  ...PYTHON_SUITES,
  ...JS_SUITES,
  ...MCP_SUITES,
  mcpClientSuite,
  MCP_SIGN_IN_SUITE,
  phoenixSuite,
  ...GENERATED_CLIENTS,
  ...OPENAPI_SUITES,
];

export interface Wanted {
  /** Words of their names; all without. */
  readonly names: readonly string[];
  /** A checkout of A2A's TCK; without it that is not tried. */
  readonly a2aTck?: string | undefined;
}

/** `done` is called after each. */
export async function tryClients(
  cacheDir: string,
  { names: wanted, a2aTck }: Wanted,
  done: (tried: Tried) => void,
): Promise<readonly Tried[]> {
  const known = [...SUITES, ...(a2aTck === undefined ? [] : [a2aSuite(a2aTck)])];
  const suites = known.filter(({ name }) => wanted.length === 0 || wanted.some((word) => name.toLowerCase().includes(word.toLowerCase())));
  if (suites.length === 0) throw new Error(`no suite has ${wanted.join(' or ')} in its name: ${known.map(({ name }) => name).join(', ')}`);
  const place = await openPlace(cacheDir);
  try {
    const all: Tried[] = [];
    for (const { name, client, run } of suites) {
      const before = place.problems.length;
      const tried = await run(place).then(
        (outcomes): Tried => ({ name, client, outcomes: [...outcomes, ...refusals(place.problems.slice(before))] }),
        (error: unknown): Tried => {
          if (error instanceof MissingProgram) return { name, client, outcomes: [], missing: error.message };
          return { name, client, outcomes: [{ check: 'the suite', result: 'failed', why: String(error) }] };
        },
      );
      all.push(tried);
      done(tried);
    }
    return all;
  } finally {
    await place.close();
  }
}

function refusals(problems: readonly string[]): readonly Outcome[] {
  return problems.map((why) => ({ check: "what the model's API is asked", result: 'failed', why }));
}
