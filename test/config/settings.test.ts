/** Every setting, by a table: what may be written and what becomes of it, and what is refused with which words. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import fc from 'fast-check';
import {
  ConfigError,
  describeSettings,
  findUserConfig,
  isTakenUnasked,
  isTrustedByEnvironment,
  loadConfig,
  loadVariables,
  needsStandIn,
  packageManager,
  queueFile,
  readColorWish,
  secretsOf,
  shownSetting,
  temporalConnection,
  trustFile,
  variablesOfFolder,
  withTemporalEnv,
  workerBuild,
  type Config,
} from '../../src/config.js';
import { COMMON_SETTINGS, SETTINGS } from '../../src/config/settings.js';

let cwd: string;

beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'perdura-config-'));
});
afterEach(() => rmSync(cwd, { recursive: true }));

interface Row {
  readonly key: keyof Config;
  /** What is written, and what it is then. */
  readonly good: readonly (readonly [written: string, value: unknown])[];
  readonly bad: readonly string[];
  /** The end of the refusal's sentence. */
  readonly write?: string;
}

const KEY: Pick<Row, 'good' | 'bad' | 'write'> = {
  good: [['sk-1', 'sk-1']],
  bad: ['two words', '"sk"\u0007', 'schlüssel'],
  write: 'the key alone',
};
const WEB: Pick<Row, 'good' | 'bad' | 'write'> = {
  good: [['https://a.example/v1', 'https://a.example/v1']],
  bad: ['a.example', 'ftp://a.example', 'https://', 'http:// x'],
  write: 'a URL that begins with http:// or https://',
};
const [K, L] = ['k'.repeat(32), 'l'.repeat(40)];
const TOKEN: Pick<Row, 'good' | 'bad' | 'write'> = {
  good: [['t'.repeat(24), 't'.repeat(24)]],
  bad: ['t'.repeat(23), 't'.repeat(513), `${'t'.repeat(24)} x`],
  write: '24 to 512 visible characters',
};
const fileOf = (path: string): Pick<Row, 'good' | 'bad'> => ({
  good: [
    [`./${path}`, `CWD/${path}`],
    ['/a/../b', '/b'],
  ],
  bad: [],
});
const SECRET = `whsec_${Buffer.alloc(32, 1).toString('base64')}`;

const TABLE: Readonly<Record<string, Row>> = {
  REDIS_URL: {
    ...{
      key: 'redisUrl',
      good: [
        ['redis://h:1', 'redis://h:1'],
        ['rediss://u:p@h', 'rediss://u:p@h'],
        ['redis+cluster://u:p%40@a:7000,b:7001,[::1]', 'redis+cluster://u:p%40@a:7000,b:7001,[::1]'],
        ['rediss+sentinel://a,b:26380/2?name=m&ca=/etc/ca.pem', 'rediss+sentinel://a,b:26380/2?name=m&ca=/etc/ca.pem'],
      ],
    },
    ...{
      bad: [
        ...[
          'h:6379',
          'http://h',
          'redis+ring://h',
          'redis+cluster://',
          'redis+cluster://a:0',
          'redis+cluster://a,,b',
          'redis+cluster://a/1',
        ],
        ...[
          'redis+cluster://a?name=m',
          'redis+cluster://a?tmeout=1',
          'redis://a?timeout=0',
          'redis+sentinel://a',
          'redis+sentinel://a/x?name=m',
        ],
      ],
      write: 'a Redis URL (',
    },
  },
  ANTHROPIC_API_KEY: { key: 'anthropicApiKey', ...KEY },
  ANTHROPIC_BASE_URL: { key: 'anthropicBaseUrl', ...WEB },
  OPENAI_API_KEY: { key: 'openaiApiKey', ...KEY },
  OPENAI_BASE_URL: { key: 'openaiBaseUrl', ...WEB },
  GEMINI_API_KEY: { key: 'geminiApiKey', ...KEY },
  GOOGLE_API_KEY: { key: 'geminiApiKey', ...KEY },
  GEMINI_BASE_URL: { key: 'geminiBaseUrl', ...WEB },
  OLLAMA_HOST: {
    ...{
      key: 'ollamaHost',
      good: [
        [':1', 'http://127.0.0.1:1'],
        ['gpu', 'http://gpu:11434'],
        ['0.0.0.0', 'http://0.0.0.0:11434'],
        ['[::1]:8', 'http://[::1]:8'],
        ['https://o.example/at', 'https://o.example/at'],
      ],
      bad: ['ftp://h', 'two words'],
    },
    write: 'a URL or host:port',
  },
  TEMPORAL_DEPLOYMENT_NAME: {
    key: 'deploymentName',
    good: [
      ['perdura', 'perdura'],
      ['shop/agents', 'shop/agents'],
    ],
    bad: ['a.b', 'a:b', '__a', 'two words', 'd'.repeat(201)],
    write: 'up to 200 visible ASCII characters without . and : that do not begin with __',
  },
  TEMPORAL_WORKER_BUILD_ID: {
    key: 'workerBuildId',
    good: [['v1.2.3-a1b2:c', 'v1.2.3-a1b2:c']],
    bad: ['__a', 'two words', 'b'.repeat(201)],
    write: 'up to 200 visible ASCII characters that do not begin with __',
  },
  PERDURA_TASK_QUEUE: {
    ...{
      key: 'taskQueue',
      good: [
        ['q', 'q'],
        ['q'.repeat(200), 'q'.repeat(200)],
      ],
      bad: ['q'.repeat(201), 'two words', 'ü'],
    },
    write: 'up to 200 visible ASCII characters',
  },
  PERDURA_DEFAULT_EXECUTION_MODE: {
    key: 'defaultExecutionMode',
    good: [['stepping', 'stepping']],
    bad: ['step', 'AUTO'],
    write: 'auto or stepping',
  },
  PERDURA_MODEL: {
    key: 'model',
    good: [
      ['openai/gpt', 'openai/gpt'],
      ['a/b/c', 'a/b/c'],
    ],
    bad: ['claude', 'A/b', 'a/ b'],
    write: 'provider/name',
  },
  PERDURA_AGENTS_DIR: { key: 'agentsDir', ...fileOf('agents') },
  PERDURA_MEMORY_DIR: { key: 'memoryDir', ...fileOf('memory') },
  PERDURA_WORKSPACE: { key: 'workspace', ...fileOf('work') },
  PERDURA_SEARCH_CACHE_BYTES: {
    ...{
      key: 'searchCacheBytes',
      good: [
        ['1000000', 1_000_000],
        [String(2 ** 40), 2 ** 40],
      ],
    },
    bad: ['999999', String(2 ** 40 + 1), '1e6.5', 'many', '1000000.5', '-1', 'NaN', 'Infinity'],
  },
  PERDURA_FILES_QUOTA: {
    ...{
      key: 'filesQuota',
      good: [
        ['1', 1024 * 1024],
        ['1024', 1024 ** 3],
      ],
    },
    bad: ['0', '1.5', 'many', '-1', String(2 ** 30 + 1)],
  },
  PERDURA_LOG_LEVEL: {
    key: 'logLevel',
    good: [
      ['DEBUG', 'debug'],
      ['trace', 'trace'],
    ],
    bad: ['loud', 'fatal'],
    write: 'one of trace, debug, info',
  },
  PERDURA_METRICS_ADDRESS: {
    ...{
      key: 'metricsAddress',
      good: [
        ['127.0.0.1:9464', '127.0.0.1:9464'],
        ['[::1]:0', '[::1]:0'],
      ],
    },
    ...{
      bad: ['localhost:9464', '127.0.0.1', '127.0.0.1:65536', '::1:80', '[127.0.0.1]:80', '1.2.3.4:'],
      write: 'an IP address and a port',
    },
  },
  PERDURA_HEALTH_ADDRESS: {
    key: 'healthAddress',
    good: [['0.0.0.0:9465', '0.0.0.0:9465']],
    bad: ['localhost:9465', '9465', '0.0.0.0'],
    write: 'an IP address and a port',
  },
  PERDURA_UI_TEXT: { key: 'uiText', good: [['off', 'off']], bad: ['no', '1'] },
  PERDURA_BLOCKED_MS: {
    key: 'blockedMs',
    good: [
      ['100', 100],
      ['600000', 600_000],
    ],
    bad: ['99', '600001', 'soon', '100.5'],
  },
  PERDURA_BLOCKED_END_MS: {
    key: 'blockedEndMs',
    good: [
      ['0', 0],
      ['5000', 5_000],
      ['3600000', 3_600_000],
    ],
    bad: ['1', '4999', '3600001', 'never', '5000.5'],
  },
  PERDURA_AUDIT_FILE: { key: 'auditFile', ...fileOf('audit.jsonl') },
  PERDURA_FETCH_ALLOW: {
    ...{
      key: 'fetchAllow',
      good: [
        ['LOCALHOST:80, [::1]:1', ['localhost:80', '[::1]:1']],
        [',', []],
        ['127.1:80,intra.example:0443', ['127.0.0.1:80', 'intra.example:443']],
      ],
      bad: ['h', 'h:0', 'h:65536', 'a@h:1', 'http://h:1'],
    },
    write: 'host:port, several separated by commas',
  },
  PERDURA_PUBLIC_URL: {
    ...{
      key: 'publicUrl',
      good: [
        ['https://h/perdura/', 'https://h/perdura'],
        ['http://h:1', 'http://h:1'],
      ],
      bad: ['h', 'ftp://h', 'https://u:p@h'],
      write: 'without a user in it',
    },
  },
  PERDURA_WEBHOOK_URL: {
    ...{
      key: 'webhookUrl',
      good: [['http://h/in', 'http://h/in']],
      bad: ['h', 'ftp://h', 'https://u:p@h', 'https://u@h'],
      write: 'without a user in it',
    },
  },
  PERDURA_WEBHOOK_SECRET: {
    ...{
      key: 'webhookSecrets',
      good: [
        [SECRET, [SECRET]],
        [`${SECRET},${SECRET}`, [SECRET, SECRET]],
      ],
    },
    ...{
      bad: ['whsec_', SECRET.slice(6), `whsec_${Buffer.alloc(23).toString('base64')}`, `whsec_${Buffer.alloc(65).toString('base64')}`, ','],
    },
    write: 'whsec_ and the base64',
  },
  PERDURA_WEBHOOK_EVENTS: {
    key: 'webhookEvents',
    good: [['turn.failed', ['turn.failed']]],
    bad: ['turn.begun', 'turn.failed,'],
    write: 'some of turn.finished',
  },
  PERDURA_WEBHOOKS: { key: 'webhookFile', ...fileOf('hooks.json') },
  PERDURA_TENANT_BUDGETS: { key: 'tenantBudgetFile', ...fileOf('budgets.json') },
  PERDURA_GATEWAY_TOKEN: { key: 'gatewayToken', ...TOKEN },
  PERDURA_AUTH: { key: 'authFile', ...fileOf('auth.json') },
  PERDURA_SECRET: {
    ...{
      key: 'secrets',
      good: [
        [`${K},unsigned`, { all: [K], ids: K, acceptsUnsigned: true }],
        [`${L}, ${K},ids:${K}`, { all: [L, K], ids: K, acceptsUnsigned: false }],
        [`${L},ids:${K}`, { all: [L], ids: K, acceptsUnsigned: false }],
      ],
    },
    ...{
      bad: ['k'.repeat(31), 'k'.repeat(257), 'unsigned', `${K},`, `${K},ids:short`, `ids:${K}`],
      write: 'a secret of at least 32 characters',
    },
  },
  PERDURA_RETENTION: {
    key: 'retention',
    good: [
      ['90d', { days: 90, tenants: {} }],
      ['off', { days: null, tenants: {} }],
      ['90d, acme=30d,globex=off', { days: 90, tenants: { acme: 30, globex: null } }],
    ],
    bad: ['90', '0d', '-1d', '99999d', 'acme=', 'ACME=1d', '90d;acme=1d'],
    write: 'days, such as 90d',
  },
  PERDURA_ARCHIVE: {
    key: 'archive',
    good: [
      ['/var/archive', { kind: 'folder', path: '/var/archive' }],
      ['s3://bucket.of-mine', { kind: 's3', bucket: 'bucket.of-mine', prefix: '' }],
      ['s3://bucket/one/two/', { kind: 's3', bucket: 'bucket', prefix: 'one/two' }],
    ],
    bad: ['s3://', 's3://Bucket', 's3://b', 's3:bucket/x', 's3://bucket//x', 's3://bucket/a b', 's3://user:pw@bucket'],
    write: 'a folder, or s3://bucket/prefix',
  },
  PERDURA_ARCHIVE_AFTER: {
    key: 'archiveAfter',
    good: [
      ['1d', 1],
      ['365d', 365],
    ],
    bad: ['30', '0d', '-1d', '99999d', '1w', '01d'],
    write: 'days, such as 30d',
  },
  AWS_ACCESS_KEY_ID: { key: 'awsAccessKeyId', good: [['AKIA1', 'AKIA1']], bad: ['two words', '"quoted 1"'], write: 'the id alone' },
  AWS_SECRET_ACCESS_KEY: { key: 'awsSecretAccessKey', good: [['a/b+c', 'a/b+c']], bad: ['two words'], write: 'the key alone' },
  AWS_SESSION_TOKEN: { key: 'awsSessionToken', good: [['t==', 't==']], bad: ['two words'], write: 'the token alone' },
  AWS_REGION: { key: 'awsRegion', good: [['eu-central-1', 'eu-central-1']], bad: ['EU', 'a b', 'x/y'], write: 'the name of a region' },
  AWS_ENDPOINT_URL_S3: {
    key: 'awsEndpoint',
    good: [['http://127.0.0.1:9000', 'http://127.0.0.1:9000']],
    bad: ['127.0.0.1:9000', 'ftp://x'],
    write: 'a URL that begins with http:// or https://',
  },
  PERDURA_ENCRYPTION: {
    key: 'encryption',
    good: [
      ['off', undefined],
      ['secret', { from: 'secret' }],
      ['file:/run/keys', { from: 'file', path: '/run/keys' }],
      ['command: ./keys.sh --all now', { from: 'command', words: ['./keys.sh', '--all', 'now'] }],
    ],
    bad: ['on', 'secret:x', 'file:', 'command:', 'off:1', '/run/keys'],
    write: 'off, secret (the keys come from PERDURA_SECRET), file:PATH',
  },
};

const ofKeys = SETTINGS.filter(({ key }) => key !== undefined);

test('the table here has every setting', () => {
  expect(Object.keys(TABLE).sort()).toEqual(ofKeys.map(({ name }) => name).sort());
});

test.each(Object.entries(TABLE))('%s', (name, { key, good, bad, write = '' }) => {
  const { secret } = SETTINGS.find((setting) => setting.name === name) ?? {};
  for (const [written, value] of good) {
    const wanted = typeof value === 'string' ? value.replace('CWD', cwd) : value;
    expect([written, loadConfig({ [name]: written }, cwd)[key]]).toEqual([written, wanted]);
    expect(loadConfig({ [name]: ` ${written}\n` }, cwd)[key]).toEqual(wanted);
  }
  for (const written of bad) {
    const refused = (): Config => loadConfig({ [name]: written }, cwd);
    expect(refused).toThrow(ConfigError);
    expect(refused).toThrow(new RegExp(`^${name}( is .*, which)? cannot be used: write [\\s\\S]+, or remove it$`));
    expect(refused).toThrow(write);
    if (secret) expect(refused).not.toThrow(`${name} is`);
  }
});

test('whatever a secret is, no refusal shows it', () => {
  const secrets = ofKeys.filter(({ secret }) => secret).map(({ name }) => name);
  const marked = fc.string({ unit: 'grapheme', maxLength: 40 }).map((text) => `hunter2${text}`);
  fc.assert(
    fc.property(fc.constantFrom(...secrets), marked, (name, value) => {
      try {
        loadConfig({ [name]: value }, cwd);
      } catch (error) {
        expect(error).toBeInstanceOf(ConfigError);
        expect(`${(error as Error).stack}`).not.toContain('hunter2');
      }
    }),
    { numRuns: 300 },
  );
});

test('every secret that is set is known to those who must not show it, and shown nowhere', () => {
  const env = Object.fromEntries(ofKeys.flatMap(({ name, secret }) => (secret ? [[name, TABLE[name]?.good[0]?.[0]]] : [])));
  const url = 'redis+sentinel://u:pass%21@h:1,i:2?name=m&sentinel_password=watchword';
  const known = secretsOf(loadConfig({ ...env, REDIS_URL: url, TEMPORAL_API_KEY: 'tkey' }, cwd));
  expect(known).toEqual(
    expect.arrayContaining(['sk-1', 't'.repeat(24), SECRET, 'k'.repeat(32), 'http://h/in', 'pass%21', 'pass!', 'watchword', 'tkey']),
  );
  for (const { name, value } of describeSettings(env, cwd).filter((one) => env[one.name] !== undefined))
    expect([name, value]).toEqual([name, 'set']);
});

test('each setting stands in the reference with its default and its meaning, in their order, and nothing else does', () => {
  const text = readFileSync(resolve(__dirname, '../../docs/reference/settings.md'), 'utf8');
  const rows = [...text.matchAll(/^\| `([A-Z_][A-Z0-9_]*\*?)` \| (.*?) ?\| (.*) \|$/gm)].map(([, name, value, meaning]) => [
    name,
    value,
    meaning,
  ]);
  const settings = rows.filter(([name = '']) => SETTINGS.some((setting) => setting.name === name));
  expect(settings.map(([name]) => name)).toEqual(SETTINGS.map(({ name }) => name));
  for (const { name, default: value = '', meaning } of SETTINGS) {
    const row = settings.find(([known]) => known === name)?.join(' ') ?? '';
    expect(row.replaceAll('\\', '')).toContain(meaning);
    expect(row).toContain(value);
  }
});

describe('where a value comes from', () => {
  test.each<[what: string, env: string | undefined, file: string | undefined, queue: string | undefined, value: string]>([
    ['the environment before .env and before what was chosen for the folder', 'env', 'file', 'chosen', 'env'],
    ['.env before what was chosen', undefined, 'file', 'chosen', 'file'],
    ['what was chosen before the default', undefined, undefined, 'chosen', 'chosen'],
    ['an empty variable takes away what .env says', '', 'file', undefined, 'perdura'],
    ['an empty line of .env says nothing', undefined, '', 'chosen', 'chosen'],
    ['an empty choice says nothing', undefined, undefined, '\n', 'perdura'],
  ])('%s', (_what, env, file, queue, value) => {
    if (file !== undefined) writeFileSync(join(cwd, '.env'), `PERDURA_TASK_QUEUE=${file}\n`);
    if (queue !== undefined) {
      mkdirSync(join(cwd, '.perdura'));
      writeFileSync(queueFile(cwd), queue);
    }
    expect(loadConfig(env === undefined ? {} : { PERDURA_TASK_QUEUE: env }, cwd).taskQueue).toBe(value);
  });

  test('it is shown: environment, .env, default, nowhere; and Temporal’s own by their names', () => {
    writeFileSync(join(cwd, '.env'), 'PERDURA_MODEL=a/b\nPERDURA_TRUST=1\nTEMPORAL_API_KEY=secret\n');
    const shown = new Map(describeSettings({ PERDURA_TASK_QUEUE: 'q', TEMPORAL_ADDRESS: 'h:1' }, cwd).map(({ name, ...of }) => [name, of]));
    expect(shown.get('PERDURA_TASK_QUEUE')).toEqual({ value: 'q', from: 'environment' });
    expect(shown.get('PERDURA_MODEL')).toEqual({ value: 'a/b', from: '.env' });
    expect(shown.get('PERDURA_LOG_LEVEL')).toEqual({ value: 'info', from: 'default' });
    expect(shown.get('PERDURA_AUDIT_FILE')).toEqual({ value: undefined, from: 'nowhere' });
    expect(shown.get('PERDURA_TRUST')).toEqual({ value: undefined, from: 'nowhere' });
    expect(shown.get('TEMPORAL_ADDRESS')).toEqual({ value: 'h:1', from: 'environment' });
    expect(shown.get('TEMPORAL_API_KEY')).toEqual({ value: 'set', from: '.env' });
    expect(describeSettings({}, tmpdir()).find(({ name }) => name === 'TEMPORAL_*')).toMatchObject({ from: 'default' });
  });

  test('the ten that most people set come first', () => {
    const common = COMMON_SETTINGS.map(({ name }) => name);
    expect(common).toHaveLength(10);
    expect(
      describeSettings({}, cwd)
        .map(({ name }) => name)
        .slice(0, 10),
    ).toEqual(common);
  });

  test('what only the folder says is told from what was there without it', () => {
    writeFileSync(join(cwd, '.env'), 'A=file\nB=file\nC=\n');
    expect(variablesOfFolder(cwd, { A: 'env', D: '' })).toEqual({ fromFile: { B: 'file' }, real: { A: 'env' } });
    expect(loadVariables(cwd, { A: 'env' })).toEqual({ A: 'env', B: 'file' });
  });

  test('a .env that cannot be read is refused by its path; a folder of that name is none', () => {
    mkdirSync(join(cwd, '.env'));
    expect(loadVariables(cwd, {})).toEqual({});
    const file = join(cwd, 'file');
    writeFileSync(file, '');
    expect(() => loadVariables(file, {})).toThrow(/^cannot read .*file\/\.env: ENOTDIR; make it readable or remove it$/);
  });
});

test('unasked, a folder’s .env may say what is harmless and what nobody reads, and nothing that runs or sends something elsewhere', () => {
  const unasked = SETTINGS.filter(({ name }) => isTakenUnasked(name)).map(({ name }) => name);
  expect(unasked).toEqual(SETTINGS.filter(({ isHarmless, isFromEnvironment }) => isHarmless || isFromEnvironment).map(({ name }) => name));
  for (const name of [
    'TEMPORAL_ADDRESS',
    'TEMPORAL_CODEC_AUTH',
    'HOME',
    'XDG_CONFIG_HOME',
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    'OPENAI_BASE_URL',
    'PERDURA_WEBHOOK_URL',
  ])
    expect([name, isTakenUnasked(name)]).toEqual([name, false]);
  expect(isTakenUnasked('SOME_OTHER_PROGRAMS')).toBe(true);
});

test.each([
  ['PERDURA_TASK_QUEUE', 'q', 'q'],
  ['OPENAI_BASE_URL', 'https://u:p@h/v1', 'https://***@h/v1'],
  ['REDIS_URL', 'redis://u:p@h:1/0', 'redis://h:1'],
  ['REDIS_URL', 'redis+cluster://u:p@h:1,i:2', 'redis+cluster://h:1'],
  ['PERDURA_WEBHOOK_URL', 'https://hooks.example/T0/secret', 'https://hooks.example'],
  ['ANTHROPIC_API_KEY', 'sk-1', 'set'],
  ['TEMPORAL_ADDRESS', 'h:7233', 'h:7233'],
  ['TEMPORAL_API_KEY', 'k', 'set'],
  ['SOMEBODYS_TOKEN', 'k', 'set'],
  ['SOMEBODYS_NAME', 'n', 'n'],
])('%s=%s is shown as %s', (name, value, shown) => {
  expect(shownSetting(name, value)).toBe(shown);
});

test('a worker has a build by both settings or by none; a command may know the deployment alone', () => {
  const both = { TEMPORAL_DEPLOYMENT_NAME: 'd', TEMPORAL_WORKER_BUILD_ID: 'b' };
  expect(workerBuild(loadConfig(both, cwd))).toEqual({ deploymentName: 'd', buildId: 'b' });
  expect(workerBuild(loadConfig({}, cwd))).toBeUndefined();
  for (const [name, other] of [Object.keys(both), Object.keys(both).reverse()] as [string, string][]) {
    const half = loadConfig({ [name]: 'x' }, cwd);
    expect(() => workerBuild(half)).toThrow(new ConfigError(`a worker that has ${name} needs ${other} too: set both, or none`));
  }
});

test('code of a folder’s own: one file of any kind; two are refused by their names', () => {
  expect(findUserConfig(cwd)).toBeUndefined();
  writeFileSync(join(cwd, 'perdura.config.mjs'), 'throw new Error("never loaded here")');
  expect(findUserConfig(cwd)).toBe(join(cwd, 'perdura.config.mjs'));
  writeFileSync(join(cwd, 'perdura.config.ts'), '');
  expect(() => findUserConfig(cwd)).toThrow(`there are perdura.config.ts and perdura.config.mjs in ${cwd}: keep one of them`);
});

test('a flag’s address of Temporal counts before the environment’s, and the config that it came from is as it was', async () => {
  const config = loadConfig({ TEMPORAL_ADDRESS: 'a:1', TEMPORAL_NAMESPACE: 'n' }, cwd);
  const other = withTemporalEnv(config, { TEMPORAL_ADDRESS: 'b:2' });
  expect(await temporalConnection(other)).toMatchObject({ connectionOptions: { address: 'b:2' }, namespace: 'n', named: true });
  expect([config.temporalEnv['TEMPORAL_ADDRESS'], Object.isFrozen(other), Object.isFrozen(other.temporalEnv)]).toEqual(['a:1', true, true]);
});

test.each([
  [{}, true],
  [{ ANTHROPIC_API_KEY: 'k' }, false],
  [{ ANTHROPIC_BASE_URL: 'http://h' }, false],
  [{ PERDURA_MODEL: 'openai/x' }, false],
])('with %j the scripted stand-in answers: %s', (env, needed) => {
  expect(needsStandIn(loadConfig(env, cwd))).toBe(needed);
});

test.each([
  [{}, undefined],
  [{ NO_COLOR: '1', FORCE_COLOR: '1' }, 'never'],
  [{ NO_COLOR: '', FORCE_COLOR: '' }, 'always'],
  [{ FORCE_COLOR: '0' }, 'never'],
  [{ FORCE_COLOR: 'false', TERM: 'xterm' }, 'never'],
  [{ TERM: 'dumb' }, 'never'],
])('colour by %j: %s', (env, wish) => {
  expect(readColorWish(env)).toBe(wish);
});

test('what else the environment alone says: who started us, whom it trusts, and where that is remembered', () => {
  expect(packageManager({ npm_config_user_agent: 'pnpm/9.1 node/v20' })).toBe('pnpm');
  expect([packageManager({}), packageManager({ npm_config_user_agent: 'cargo/1' })]).toEqual(['npm', 'npm']);
  expect([
    isTrustedByEnvironment({ PERDURA_TRUST: '1' }),
    isTrustedByEnvironment({ PERDURA_TRUST: 'yes' }),
    isTrustedByEnvironment({}),
  ]).toEqual([true, false, false]);
  expect(trustFile({ XDG_STATE_HOME: '/s', HOME: '/h' })).toBe('/s/perdura/trust.json');
  expect(trustFile({ HOME: '/h' })).toBe('/h/.local/state/perdura/trust.json');
});
