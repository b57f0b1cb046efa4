/** A worker that has passed the door reads `mcp.json` again: what has changed since waits for a yes. */
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { trustFile } from '../../../src/config.js';
import { rememberTrust } from '../../../src/cli/trust/trust-file.js';
import { createTrustedServers } from '../../../src/cli/trust/trusted-servers.js';

const VARIABLES = ['PERDURA_TRUST', 'XDG_STATE_HOME', 'PERDURA_AGENTS_DIR'] as const;
const before = VARIABLES.map((name) => [name, process.env[name]] as const);
const at = (name: string): string => join(folder, name);
const text = (command: string): string => JSON.stringify({ mcpServers: { a: { command } } });
let base: string;
let folder: string;
let warned: string[];

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'perdura-servers-')));
  folder = join(base, 'folder');
  mkdirSync(at('agents/ada'), { recursive: true });
  for (const name of VARIABLES) delete process.env[name];
  process.env['XDG_STATE_HOME'] = join(base, 'state');
  warned = [];
});
afterEach(() => {
  for (const [name, value] of before) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
  rmSync(base, { recursive: true });
});

const made = (): ReturnType<typeof createTrustedServers> => createTrustedServers(folder, (line) => warned.push(line));

/** As a worker finds it: written, then asked about. */
function asked(mayUse: ReturnType<typeof made>, name: string, content: string): Promise<boolean> {
  writeFileSync(at(name), content);
  return mayUse(at(name), content);
}

test('what was there at the start is used, another text only once a person has said yes to it', async () => {
  const name = 'agents/ada/mcp.json';
  writeFileSync(at(name), text('good'));
  const mayUse = made();
  expect(await asked(mayUse, name, text('good'))).toBe(true);
  expect(await asked(mayUse, name, text('evil'))).toBe(false);
  expect(await asked(mayUse, name, text('evil'))).toBe(false);
  expect(warned).toEqual([expect.stringContaining('agents/ada/mcp.json has changed and is not trusted')]);
  const sha256 = createHash('sha256').update(text('evil')).digest('hex');
  await rememberTrust(trustFile(), folder, [{ name, sha256 }]);
  expect(await asked(mayUse, name, text('evil'))).toBe(true);
  expect(await asked(mayUse, name, text('good'))).toBe(true);
  expect(await asked(mayUse, name, text('worse'))).toBe(false);
});

test('one that is new, in a new agent, or behind a link out of the folder is not used either', async () => {
  mkdirSync(join(base, 'elsewhere', 'eve'), { recursive: true });
  const mayUse = made();
  expect(await asked(mayUse, 'agents/ada/mcp.json', text('new'))).toBe(false);
  symlinkSync(join(base, 'elsewhere', 'eve'), at('agents/eve'));
  expect(await asked(mayUse, 'agents/eve/mcp.json', text('new'))).toBe(false);
});

test('what a person has named themselves, or trusts without being asked, is used as it is', async () => {
  mkdirSync(join(base, 'own', 'ada'), { recursive: true });
  process.env['PERDURA_AGENTS_DIR'] = join(base, 'own');
  expect(await asked(made(), '../own/ada/mcp.json', text('mine'))).toBe(true);
  delete process.env['PERDURA_AGENTS_DIR'];
  process.env['PERDURA_TRUST'] = '1';
  expect(await asked(made(), 'agents/ada/mcp.json', text('mine'))).toBe(true);
});
