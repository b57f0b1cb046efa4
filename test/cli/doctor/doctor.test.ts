import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describeSettings, loadConfig } from '../../../src/config.js';
import {
  broken,
  isBroken,
  ok,
  pasteable,
  renderReport,
  warning,
  checkFolder,
  checkListedModels,
  checkNode,
  checkAgents,
  checkDotEnv,
  checkStore,
} from '../../../src/cli/doctor/checks.js';
import { checkAuth } from '../../../src/cli/doctor/doctor.js';
import { MAX_MEMORY } from '../../../src/stores/store.js';
import { speedFinding, storeFinding } from '../../../src/cli/doctor/temporal.js';

let dir: string;
beforeEach(() => (dir = mkdtempSync(join(tmpdir(), 'perdura-doctor-'))));
afterEach(() => rmSync(dir, { recursive: true }));

test('each thing that is not well has the way to mend it below it', () => {
  const report = {
    findings: [ok('Node', '20.20.2'), warning('Speed', '60 ms', 'set it'), broken('Store', 'is\ndown', 'start it')],
    settings: [
      { name: 'REDIS_URL', value: 'set', from: 'environment' as const },
      { name: 'A', from: 'nowhere' as const },
    ],
  };
  expect(renderReport(report)).toEqual([
    '✔ Node   20.20.2',
    '! Speed  60 ms',
    '         → set it',
    '✘ Store  is down',
    '         → start it',
    '',
    'Settings',
    '  REDIS_URL  set  (environment)',
    '  A          not set',
    '',
    '1 broken, 1 to look at',
  ]);
  expect(isBroken(report)).toBe(true);
});

test('a report can be pasted: no home, no secret, no password in a URL', () => {
  const text = 'redis://me:hunter2@host/0 /home/jo/agents key sk-12345';
  expect(pasteable(text, ['sk-12345'], '/home/jo')).toBe('redis://***@host/0 ~/agents key ***');
});

test('settings say where they come from, and secrets only that they are set', () => {
  writeFileSync(join(dir, '.env'), 'REDIS_URL=redis://:hunter2@r\nPERDURA_MODEL=a/file\n');
  const shown = describeSettings({ PERDURA_MODEL: 'a/real', TEMPORAL_ADDRESS: 't:7233', TEMPORAL_API_KEY: 'sesame' }, dir);
  expect(shown).toEqual(
    expect.arrayContaining([
      { name: 'TEMPORAL_ADDRESS', value: 't:7233', from: 'environment' },
      { name: 'TEMPORAL_API_KEY', value: 'set', from: 'environment' },
      { name: 'REDIS_URL', value: 'set', from: '.env' },
      { name: 'PERDURA_MODEL', value: 'a/real', from: 'environment' },
      { name: 'PERDURA_TASK_QUEUE', value: 'perdura', from: 'default' },
      { name: 'ANTHROPIC_API_KEY', value: undefined, from: 'nowhere' },
    ]),
  );
  expect(JSON.stringify(shown)).not.toMatch(/hunter2|sesame/);
});

test('slow queues name the setting that mends them', () => {
  expect(speedFinding({ perHop: 8, isEager: true })).toMatchObject({ health: 'ok' });
  expect(speedFinding({ perHop: 51, isEager: false }).mend).toBe(
    "set in the server's dynamic config, unless this machine was busy: history.transferProcessorMaxPollRPS=2000 and system.enableActivityEagerExecution=true",
  );
});

test('a store that goes on failing is named with the conversation that waits for it, and what it says', () => {
  const away = { kind: 'retry', reason: 'StoreUnavailable', message: 'cannot write: the disk is full; free space', until: 't' } as const;
  const idle = { id: 'a', status: {} };
  expect(storeFinding([idle, { id: 'b', status: { waiting: away } }, { id: 'c', status: { waiting: away } }])).toEqual(
    broken(
      'Conversations',
      'the store fails for b and 1 more: cannot write: the disk is full; free space',
      'mend the store of the workers; they try again by themselves',
    ),
  );
  expect(storeFinding([idle, { id: 'm', status: { waiting: { ...away, reason: 'rate-limit' } } }])).toMatchObject({ health: 'ok' });
  expect(storeFinding([idle, { id: 'd', status: undefined }])).toMatchObject({ health: 'warning', mend: 'perdura debug inspect d' });
  expect(storeFinding([])).toMatchObject({ health: 'ok', found: 'none runs' });
});

test.each([
  ['20.19.0', 'ok'],
  ['22.1.0', 'ok'],
  ['20.18.1', 'broken'],
])('Node %s is %s', (version, health) => {
  expect(checkNode(version).health).toBe(health);
});

test('each agent is read as a worker reads it, and a bad one is named with its fault', async () => {
  for (const [name, text] of [
    ['default', '{}'],
    ['typo', '{ "tols": [] }'],
  ] as const) {
    mkdirSync(join(dir, name));
    writeFileSync(join(dir, name, 'agent.json'), text);
  }
  const found = await checkAgents(dir, {});
  expect(found.map(({ what, health }) => [what, health])).toEqual([
    ['Agents', 'ok'],
    ['Agent typo', 'broken'],
  ]);
  expect(found[1]?.found).toContain('tols');
});

test('a file of an agent that no turn can read is named with what to do, and one whose characters are lost', async () => {
  mkdirSync(join(dir, 'default', 'users'), { recursive: true });
  const write = (name: string, content: string | Buffer): void => writeFileSync(join(dir, 'default', name), content);
  write('agent.json', '\ufeff{}');
  write('SOUL.md', Buffer.from('\ufeffYou are kind.', 'utf16le'));
  write('AGENTS.md', Buffer.from('Gr\xf6\xdfe', 'latin1'));
  write('users/ada.md', 'x'.repeat(300_000));
  write('users/bob.md', Buffer.from('a\0b'));
  const lost = (file: string) => ({
    ...{ what: 'Agent default', health: 'warning', mend: 'save it as UTF-8 with an editor' },
    found: `${join(dir, 'default', file)} is neither UTF-8 nor marked as UTF-16: some of its characters are lost`,
  });
  const ada = join(dir, 'default', 'users', 'ada.md');
  expect(await checkAgents(dir, {})).toEqual([
    ok('Agents', 'default'),
    broken('Agent default', `${ada} has 300000 bytes; at most 262144 are read`, `correct ${ada}, or move it away`),
    lost('AGENTS.md'),
    lost('users/bob.md'),
  ]);
  rmSync(join(dir, 'default', 'SOUL.md'));
  mkdirSync(join(dir, 'default', 'SOUL.md'));
  const soul = join(dir, 'default', 'SOUL.md');
  expect((await checkAgents(dir, {})).at(-1)).toEqual(
    broken(
      'Agent default',
      `cannot read ${soul}: it is not a regular file`,
      `correct ${soul}, or move it away: no turn is answered until then`,
    ),
  );
});

test('a MEMORY.md or HISTORY that no turn can read is named with why and what to do; nothing is changed by looking', async () => {
  const config = loadConfig({ PERDURA_MEMORY_DIR: dir }, dir);
  const write = (scope: string, name: string, content: string | Buffer): string => {
    mkdirSync(join(dir, 'agents', scope), { recursive: true });
    writeFileSync(join(dir, 'agents', scope, name), content);
    return join(dir, 'agents', scope, name);
  };
  write('fine', 'MEMORY.md', Buffer.from('\ufeff- größer', 'utf16le'));
  write('fine', 'HISTORY.md', Buffer.from('Gr\xf6\xdfe', 'latin1'));
  const latin = write('latin', 'MEMORY.md', Buffer.from('Gr\xf6\xdfe', 'latin1'));
  const half = write('half', 'MEMORY.md', Buffer.from('fffe61', 'hex'));
  const long = write('long', 'MEMORY.md', 'x'.repeat(MAX_MEMORY + 1));
  const folder = join(dir, 'agents', 'folder', 'HISTORY-2026-11.md');
  mkdirSync(folder, { recursive: true });
  const before = readdirSync(dir, { recursive: true }).sort();

  const found = await checkStore(config);

  expect(found[0]).toMatchObject({ what: 'Store', health: 'ok' });
  const mend = 'save it as UTF-8 with an editor, or move it away';
  expect(found.slice(1)).toEqual([
    broken('Memory', `cannot use ${folder}: it is no regular file`, 'put the file itself there'),
    broken('Memory', `cannot read ${half}: it is not UTF-8`, mend),
    broken('Memory', `cannot read ${latin}: it is not UTF-8`, mend),
    broken('Memory', `cannot read ${long}: it has ${MAX_MEMORY + 1} bytes, at most ${MAX_MEMORY} are read`, 'shorten it'),
  ]);
  expect(readdirSync(dir, { recursive: true }).sort()).toEqual(before);
});

test('a .env whose characters are lost is named; one that Windows has written is not', async () => {
  expect(await checkDotEnv(dir)).toEqual([]);
  const file = join(dir, '.env');
  writeFileSync(file, Buffer.from('\ufeffPASSWORD=größer', 'utf16le'));
  expect(await checkDotEnv(dir)).toEqual([]);
  for (const bytes of [Buffer.from('PASSWORD=gr\xf6\xdfer', 'latin1'), Buffer.from('PASSWORD=x', 'utf16le')]) {
    writeFileSync(file, bytes);
    expect(await checkDotEnv(dir)).toEqual([
      warning(
        'Settings',
        `${file} is neither UTF-8 nor marked as UTF-16: some of its characters are lost`,
        'save it as UTF-8 with an editor',
      ),
    ]);
  }
});

test('of many such files only some are named', async () => {
  for (let at = 0; at < 13; at++) {
    mkdirSync(join(dir, 'agents', `scope-${at}`), { recursive: true });
    writeFileSync(join(dir, 'agents', `scope-${at}`, 'MEMORY.md'), Buffer.from([0xe4]));
  }
  const found = await checkStore(loadConfig({ PERDURA_MEMORY_DIR: dir }, dir));
  expect(found).toHaveLength(12);
  expect(found.at(-1)?.found).toBe('3 more files of it cannot be read');
});

test('a MEMORY.md beside the identity files is named as what is not read', async () => {
  mkdirSync(join(dir, 'default'));
  writeFileSync(join(dir, 'default', 'agent.json'), '{}');
  writeFileSync(join(dir, 'default', 'MEMORY.md'), 'The person likes tea.');
  expect(await checkAgents(dir, {})).toContainEqual(
    expect.objectContaining({ what: 'Agent default', health: 'warning', found: expect.stringContaining('MEMORY.md') as string }),
  );
});

test('a folder that cannot be is broken', async () => {
  writeFileSync(join(dir, 'file'), '');
  expect(await checkFolder('Store', join(dir, 'file', 'memory'), 'PERDURA_MEMORY_DIR')).toMatchObject({ health: 'broken' });
  expect(await checkFolder('Store', join(dir, 'new'), 'PERDURA_MEMORY_DIR')).toMatchObject({ health: 'ok' });
});

test('each model of an agent’s list needs the key of its provider, or is named', () => {
  const models = ['anthropic/claude-x', 'openai-responses/gpt-x', 'gemini/x', 'ollama/x', 'acme/x'];
  const config = loadConfig({ ANTHROPIC_API_KEY: 'sk-1' }, dir);
  const found = checkListedModels({ id: 'pair', config: { models } as never }, config);
  expect(found.map((finding) => finding.found)).toEqual([
    'openai-responses/gpt-x cannot answer here: OPENAI_API_KEY is not set',
    'gemini/x cannot answer here: GEMINI_API_KEY is not set',
  ]);
  expect(checkListedModels({ id: 'one', config: {} as never }, config)).toEqual([]);
});

test('who may open the gateway is looked at where a file says it: what it cannot read, what is over, what is not installed', async () => {
  const authFile = join(dir, 'auth.json');
  expect(await checkAuth({})).toEqual([]);
  expect(await checkAuth({ authFile })).toMatchObject([{ health: 'broken', found: expect.stringContaining('auth.json') }]);
  const token = {
    name: 'old',
    hash: `sha256:${'0'.repeat(64)}`,
    role: 'user',
    created: '2026-01-01T00:00:00Z',
    expires: '2026-01-02T00:00:00Z',
  };
  const jwt = { issuer: 'https://id.example', audience: 'perdura', defaultRole: 'user' };
  writeFileSync(authFile, JSON.stringify({ tokens: [token], jwt }));
  expect(await checkAuth({ authFile }, () => true)).toEqual([
    ok('Gateway', '1 tokens, users of id.example'),
    warning('Gateway', 'old opens nothing any more: its time is over', 'perdura admin token revoke old'),
  ]);
  expect((await checkAuth({ authFile }, (name) => name !== 'jose')).at(-1)).toMatchObject({
    health: 'broken',
    found: expect.stringContaining('the package jose, which is not installed'),
    mend: 'npm install jose@6',
  });
});
