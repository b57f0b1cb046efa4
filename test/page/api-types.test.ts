/** The page's types of the native API are what the gateway describes today. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import ts from 'typescript';
import { createGateway } from '../../src/gateway/app.js';
import { oneToken } from '../../src/gateway/access/entrance.js';
import { unreachedClient } from '../support/fake-client.js';

const root = resolve(__dirname, '../..');
const TOKEN = 'a-token-that-only-tests-have';

test('the types of the native API are as the gateway says, and compile', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'perdura-types-'));
  try {
    const app = createGateway({ client: unreachedClient().client, authenticate: oneToken(TOKEN) });
    const headers = { host: 'localhost', authorization: `Bearer ${TOKEN}` };
    const document = await (await app.request('http://localhost/openapi.json', { headers })).text();
    const [described, made] = [join(dir, 'openapi.json'), join(dir, 'schema.ts')];
    // An argument may have 128 KiB.
    await writeFile(described, document);
    const scripts = pathToFileURL(join(root, 'scripts', 'api-types.mjs')).href;
    const args = [
      '--input-type=module',
      '-e',
      `const { writeTypes } = await import('${scripts}'); const { readFileSync } = await import('node:fs');` +
        'await writeTypes(JSON.parse(readFileSync(process.argv[1], "utf8")), process.argv[2]);',
      described,
      made,
    ];
    await promisify(execFile)(process.execPath, args, { cwd: root, maxBuffer: 32 * 1024 * 1024 });
    const checkedIn = join(root, 'packages', 'perdura-client', 'src', 'schema.ts');
    const isCurrent = (await readFile(made, 'utf8')).replace(/\s/g, '') === (await readFile(checkedIn, 'utf8')).replace(/\s/g, '');
    expect(isCurrent ? 'current' : 'old: `node scripts/api-types.mjs` writes them anew').toBe('current');
    const program = ts.createProgram([made], { noEmit: true, strict: true, skipLibCheck: false, types: [], lib: ['lib.es2022.d.ts'] });
    const problems = ts.getPreEmitDiagnostics(program).map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
    expect(problems).toEqual([]);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
});
