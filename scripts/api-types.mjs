/**
 * `node scripts/api-types.mjs`: the types of the native API, for the page and the client package, from what the gateway says of itself in
 * `/openapi.json`.
 */
import { createRequire } from 'node:module';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { prepare, root } from './prepare.mjs';
import { runProgram } from './programs.mjs';
import { Missing, report, run } from './report.mjs';

export const TYPES = join(root, 'packages', 'perdura-client', 'src', 'schema.ts');

/** `document` is OpenAPI 3.1 as an object. */
export async function writeTypes(document, file) {
  const folder = mkdtempSync(join(tmpdir(), 'perdura-openapi-'));
  try {
    const source = join(folder, 'openapi.json');
    writeFileSync(source, JSON.stringify(document));
    const program = join(root, 'node_modules', 'openapi-typescript', 'bin', 'cli.js');
    const result = await runProgram(process.execPath, [program, source, '--output', file, '--alphabetize'], { cwd: root });
    if (result.code !== 0) throw new Missing(`${result.output.trim()}\n\nThe types of /openapi.json could not be made.`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  await run(async () => {
    await prepare({ quiet: true, page: false });
    const { createGateway } = createRequire(import.meta.url)(join(root, 'dist', 'gateway', 'app.js'));
    // No route is called: only what they are is asked for.
    const app = createGateway({
      client: {},
      authenticate: () => Promise.resolve({ name: 'types', role: 'admin' }),
      requestsPerMinute: 1_000,
    });
    const answer = await app.request('http://localhost/openapi.json', { headers: { host: 'localhost', authorization: 'Bearer types' } });
    await writeTypes(await answer.json(), TYPES);
    report('Types', 'packages/perdura-client/src/schema.ts is as /openapi.json');
  });
}
