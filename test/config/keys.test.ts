/** Where keys come from, and what is said where they do not. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ConfigError, loadConfig } from '../../src/config.js';
import { atRestKeyId } from '../../src/platform/at-rest.js';

let cwd: string;
beforeEach(() => (cwd = mkdtempSync(join(tmpdir(), 'perdura-keys-'))));
afterEach(() => rmSync(cwd, { recursive: true }));

const [A, B] = ['aa'.repeat(32), Buffer.alloc(32, 0xbb).toString('base64')];
const roots = (env: Readonly<Record<string, string>>): string[] =>
  loadConfig(env, cwd)
    .encryptionRoots()
    .map((root) => Buffer.from(root).toString('hex'));

test('nothing is encrypted by itself', () => {
  expect(roots({})).toEqual([]);
  expect(roots({ PERDURA_ENCRYPTION: 'off' })).toEqual([]);
});

test('a file has a key a line, the newest first, in hex or base64', () => {
  writeFileSync(join(cwd, 'keys'), `# since today\r\n${A}\r\n\n${B}\n`);
  expect(roots({ PERDURA_ENCRYPTION: 'file:keys' })).toEqual([A, 'bb'.repeat(32)]);
  expect(roots({ PERDURA_ENCRYPTION: `file:${join(cwd, 'keys')}` })).toEqual([A, 'bb'.repeat(32)]);
});

test('a program prints the same, and is asked once', () => {
  const program = join(cwd, 'keys.sh');
  writeFileSync(program, `#!/bin/sh\necho x >> asked\necho "$1"\necho ${B}\n`);
  chmodSync(program, 0o755);
  const config = loadConfig({ PERDURA_ENCRYPTION: `command:./keys.sh ${A}` }, cwd);
  expect(config.encryptionRoots()).toHaveLength(2);
  expect(config.encryptionRoots().map(atRestKeyId)).toEqual(config.encryptionRoots().map(atRestKeyId));
  expect(roots({ PERDURA_ENCRYPTION: `command:./keys.sh ${A}` })).toEqual([A, 'bb'.repeat(32)]);
});

test('of the secret of the installation come as many as it has, and none of them is the secret', () => {
  const [k, l] = ['k'.repeat(32), 'l'.repeat(40)];
  const both = roots({ PERDURA_ENCRYPTION: 'secret', PERDURA_SECRET: `${l},${k},ids:${k}` });
  expect(both).toHaveLength(2);
  expect(both[1]).toEqual(roots({ PERDURA_ENCRYPTION: 'secret', PERDURA_SECRET: k })[0]);
  expect(both.join()).not.toContain(Buffer.from(k).toString('hex'));
});

test.each([
  ['secret', '', 'needs PERDURA_SECRET'],
  ['file:none', '', 'cannot be read (ENOENT)'],
  ['file:keys', '', 'has 0 keys'],
  ['file:keys', 'not a key', 'no key in line 1'],
  ['file:keys', `${A}\n${A.slice(1)}\n`, 'no key in line 2'],
  ['command:./missing', '', 'gave no keys (ENOENT)'],
  ['command:false', '', 'gave no keys (ended with 1)'],
  ['command:echo short', '', 'no key in line 1'],
])('%s with %j: a sentence that names it, and shows no key', (setting, content, why) => {
  writeFileSync(join(cwd, 'keys'), content);
  const config = loadConfig({ PERDURA_ENCRYPTION: setting, PATH: '/usr/bin:/bin' }, cwd);
  expect(() => config.encryptionRoots()).toThrow(ConfigError);
  expect(() => config.encryptionRoots()).toThrow(why);
  expect(() => config.encryptionRoots()).not.toThrow(new RegExp(`${A}|not a key`));
});
