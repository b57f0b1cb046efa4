import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  commandEnvironment,
  ConfigError,
  loadConfig,
  loadMachine,
  secretsInConnection,
  secretsInFolder,
  secretsOf,
  secretVariables,
  temporalConnection,
  tenantBudgets,
  webhookEndpoints,
  type Environment,
} from '../../src/config.js';
import { offeredSettings, readOtelSettings, otelProblems } from '../../src/config/otel-settings.js';
import { SETTINGS } from '../../src/config/settings.js';

let cwd: string;

beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'perdura-config-'));
});

afterEach(() => {
  rmSync(cwd, { recursive: true });
});

test('without any setting everything has its default', () => {
  expect(loadConfig({}, cwd)).toEqual({
    env: {},
    archiveAfter: 30,
    awsRegion: 'us-east-1',
    encryption: undefined,
    encryptionRoots: expect.any(Function) as unknown,
    redisUrl: undefined,
    defaultExecutionMode: 'auto',
    anthropicApiKey: undefined,
    anthropicBaseUrl: undefined,
    openaiApiKey: undefined,
    openaiBaseUrl: undefined,
    publicUrl: 'http://127.0.0.1:7280',
    geminiApiKey: undefined,
    geminiBaseUrl: undefined,
    ollamaHost: 'http://127.0.0.1:11434',
    taskQueue: 'perdura',
    uiText: 'on',
    model: 'anthropic/claude-sonnet-5-5',
    agentsDir: join(cwd, 'agents'),
    memoryDir: join(cwd, 'memory'),
    workspace: join(cwd, 'workspace'),
    logLevel: 'info',
    blockedMs: 1000,
    blockedEndMs: 15_000,
    searchCacheBytes: 256 * 1024 * 1024,
    filesQuota: 1024 * 1024 * 1024,
    fetchAllow: [],
    webhookEvents: ['turn.finished', 'turn.failed', 'approval.waiting', 'question.waiting', 'budget.reached'],
    cwd,
    temporalEnv: {},
  });
});

test('a config cannot be changed', () => {
  expect(Object.isFrozen(loadConfig({}, cwd))).toBe(true);
});

test('a command finds no key and no address with a password in its environment', () => {
  const secrets = Object.fromEntries(SETTINGS.map(({ name }) => [name, 'sk-secret']));
  expect(
    commandEnvironment({
      ...secrets,
      HTTPS_PROXY: 'http://u:p@proxy',
      TEMPORAL_API_KEY: 'x',
      NODE_OPTIONS: '--require x',
      LD_PRELOAD: 'x',
      PATH: '/bin',
      LC_ALL: 'C',
    }),
  ).toEqual({ PATH: '/bin', LC_ALL: 'C', TERM: 'dumb', NO_COLOR: '1' });
});

test('the key of Gemini has two names, of which its own wins', () => {
  expect(loadConfig({ GOOGLE_API_KEY: 'g' }, cwd).geminiApiKey).toBe('g');
  expect(loadConfig({ GOOGLE_API_KEY: 'g', GEMINI_API_KEY: 'own' }, cwd).geminiApiKey).toBe('own');
});

test('the secrets are all keys, and the passwords in addresses', () => {
  const config = loadConfig(
    {
      OPENAI_API_KEY: 'sk-1',
      OPENAI_BASE_URL: 'https://a:one@host/v1',
      GOOGLE_API_KEY: 'g-1',
      GEMINI_BASE_URL: 'https://a:two@host',
      OLLAMA_HOST: 'a:three@gpu.example:11434',
    },
    cwd,
  );
  expect(secretsOf(config)).toEqual(['sk-1', 'g-1', 'three', 'three', 'one', 'one', 'two', 'two']);
});

test('so are what the gateways of the folder have made, what a connection is given, and the passwords of other programs', async () => {
  mkdirSync(join(cwd, '.perdura'), { recursive: true });
  expect(secretsInFolder(cwd)).toEqual([]);
  writeFileSync(join(cwd, '.perdura', 'token'), 'pk_made-by-serve\n');
  expect(secretsInFolder(cwd)).toEqual(['pk_made-by-serve']);
  const { connectionOptions } = await temporalConnection(
    loadConfig({ TEMPORAL_API_KEY: 'tk-1', TEMPORAL_TLS_CLIENT_KEY_DATA: 'a key', TEMPORAL_TLS_CLIENT_CERT_DATA: 'a cert' }, cwd),
  );
  expect(secretsInConnection(connectionOptions)).toEqual(expect.arrayContaining(['tk-1', 'a key']));
  expect(secretVariables({ DATABASE_URL: 'postgres://ada:s3cret-pw@db/x', GITHUB_TOKEN: 'ghp_0123456789', HOME: '/root' })).toEqual(
    expect.arrayContaining(['s3cret-pw', 'ghp_0123456789']),
  );
});

test('every setting has a name, a meaning, and says whether it is a secret', () => {
  expect(new Set(SETTINGS.map(({ name }) => name)).size).toBe(SETTINGS.length);
  expect(SETTINGS.filter(({ secret }) => secret).map(({ name }) => name)).toEqual([
    'TEMPORAL_*',
    'REDIS_URL',
    'ANTHROPIC_API_KEY',
    'OPENAI_API_KEY',
    'GEMINI_API_KEY',
    'PERDURA_GATEWAY_TOKEN',
    'GOOGLE_API_KEY',
    'AWS_SECRET_ACCESS_KEY',
    'AWS_SESSION_TOKEN',
    'PERDURA_WEBHOOK_URL',
    'PERDURA_WEBHOOK_SECRET',
    'PERDURA_SECRET',
  ]);
});

test.each(['utf8', 'utf16le'] as const)('a .env in %s that begins with a mark loses no line', (encoding) => {
  writeFileSync(join(cwd, '.env'), Buffer.from('\ufeffREDIS_URL=redis://one\r\nPERDURA_MODEL=a/größe\r\n', encoding));
  expect(loadConfig({}, cwd)).toMatchObject({ redisUrl: 'redis://one', model: 'a/größe' });
});

test('TEMPORAL_* go to envconfig, also from .env, and nothing else does', async () => {
  writeFileSync(join(cwd, '.env'), 'TEMPORAL_NAMESPACE=agents\nSECRET=1\n');
  const config = loadConfig({ TEMPORAL_ADDRESS: 'temporal.example:7233', OTHER: 'x' }, cwd);
  expect(config.temporalEnv).toEqual({ TEMPORAL_ADDRESS: 'temporal.example:7233', TEMPORAL_NAMESPACE: 'agents' });
  expect(await temporalConnection(config)).toMatchObject({
    connectionOptions: { address: 'temporal.example:7233' },
    namespace: 'agents',
    named: true,
  });
});

test('without TEMPORAL_* the server is the dev server of this machine, and nobody named it', async () => {
  expect(await temporalConnection(loadConfig({}, cwd))).toMatchObject({
    connectionOptions: { address: '127.0.0.1:7233' },
    namespace: 'default',
    named: false,
  });
});

test('a profile that is not there is said in words', async () => {
  const config = loadConfig({ TEMPORAL_PROFILE: 'nowhere', HOME: cwd }, cwd);
  await expect(temporalConnection(config)).rejects.toThrow(/^cannot use TEMPORAL_\* or the profile they name: .*nowhere/);
});

test('the cache follows XDG_CACHE_HOME', () => {
  expect(loadMachine({ XDG_CACHE_HOME: '/x/cache', PATH: '/a:/b' })).toMatchObject({ cacheDir: '/x/cache/perdura', path: ['/a', '/b'] });
  expect(loadMachine({ HOME: '/home/ada' }).cacheDir).toBe('/home/ada/.cache/perdura');
});

test('OpenTelemetry is asked for by its own settings, from .env too; its headers are secrets', () => {
  expect(loadConfig({}, cwd).otel).toBeUndefined();
  expect(loadConfig({ OTEL_SERVICE_NAME: 'x' }, cwd).otel).toBeUndefined();
  expect(loadConfig({ OTEL_TRACES_EXPORTER: 'none' }, cwd).otel).toBeUndefined();
  expect(loadConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://x', OTEL_SDK_DISABLED: 'true' }, cwd).otel).toBeUndefined();
  writeFileSync(join(cwd, '.env'), 'OTEL_EXPORTER_OTLP_ENDPOINT=http://x\n');
  const config = loadConfig({ OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20hunter22,x=y' }, cwd);
  expect(config.otel).toEqual({
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://x', OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20hunter22,x=y' },
    captureContent: false,
  });
  expect(secretsOf(config)).toEqual(expect.arrayContaining(['Bearer hunter22', 'Bearer%20hunter22']));
  expect(loadConfig({ OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: 'TRUE' }, cwd).otel?.captureContent).toBe(true);
});

test.each([
  ['OTEL_TRACES_EXPORTER', 'otpl', /must be one or more of otlp, console, zipkin, none$/],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', '127.0.0.1:4318', /must be an address that begins with http/],
  ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'http', /must be one of grpc, http\/protobuf, http\/json$/],
  ['OTEL_TRACES_SAMPLER', 'always', /must be one of always_on, /],
  ['OTEL_TRACES_SAMPLER_ARG', '10%', /must be a number from 0 to 1$/],
  ['OTEL_BSP_SCHEDULE_DELAY', '5s', /must be a whole number/],
  ['OTEL_EXPORTER_OTLP_HEADERS', 'Bearer hunter22', /^OTEL_EXPORTER_OTLP_HEADERS is wrong: it must be pairs/],
  ['OTEL_PROPAGATORS', 'w3c', /must be one or more of tracecontext, /],
  ['OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT', 'yes', /must be one of true, false, span_only/],
])('%s=%s is named in words', (name, value, words) => {
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318', [name]: value };
  expect(otelProblems(readOtelSettings(env)!)).toEqual([expect.stringMatching(words)]);
  expect(otelProblems(readOtelSettings(env)!).join()).not.toContain('hunter22');
});

test('what OpenTelemetry takes is no problem, and its SDK is told who we are where nothing else says so', () => {
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: 'https://collector.example:4318/base',
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Basic%20abc=,x-scope=1',
    OTEL_TRACES_EXPORTER: 'otlp,console',
    OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0.25',
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=prod',
    OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT: '128',
    OTEL_SOMETHING_NEW: '?',
  };
  expect(otelProblems(readOtelSettings(env)!)).toEqual([]);
  expect(offeredSettings(readOtelSettings(env)!, '1.2.3')).toMatchObject({
    OTEL_SERVICE_NAME: 'perdura',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=prod,service.version=1.2.3',
    OTEL_METRICS_EXPORTER: 'none',
  });
  const theirs = { ...env, OTEL_RESOURCE_ATTRIBUTES: 'service.name=desk,service.version=9', OTEL_METRICS_EXPORTER: 'otlp' };
  expect(offeredSettings(readOtelSettings(theirs)!, '1.2.3')).toEqual({ ...theirs, OTEL_LOGS_EXPORTER: 'none' });
});

describe('budgets of tenants', () => {
  const withRules = (rules: unknown): unknown => {
    writeFileSync(join(cwd, 'budgets.json'), typeof rules === 'string' ? rules : JSON.stringify(rules));
    return tenantBudgets(loadConfig({ PERDURA_TENANT_BUDGETS: 'budgets.json' }, cwd));
  };

  test('are none, or the rules of a file in their order', () => {
    expect(tenantBudgets(loadConfig({}, cwd))).toEqual([]);
    const rules = [{ tenant: 'acme', day: { maxCostUsd: 5 } }, { month: { maxTokens: 1_000 } }];
    expect(withRules(rules)).toEqual(rules);
  });

  test.each<[unknown, string]>([
    ['{', 'is no JSON'],
    [{ tenant: 'acme' }, 'is no list of rules'],
    [[{ tenant: 'acme' }], 'needs day or month'],
    [[{ tenant: 'Acme!', day: { maxTokens: 1 } }], 'at 0.tenant, must match'],
    [[{ day: {} }], 'at 0.day, needs maxCostUsd or maxTokens'],
    [[{ day: { maxCostUsd: -1 } }], 'at 0.day.maxCostUsd'],
    [[{ day: { maxUsd: 1 } }], 'Unrecognized key: "maxUsd"'],
  ])('that cannot be read are refused: %j', (rules, words) => {
    expect(() => withRules(rules)).toThrow(ConfigError);
    expect(() => withRules(rules)).toThrow(words);
  });

  test('whose file is not there are refused', () => {
    const refused = (): unknown => tenantBudgets(loadConfig({ PERDURA_TENANT_BUDGETS: 'nowhere.json' }, cwd));
    expect(refused).toThrow(/PERDURA_TENANT_BUDGETS: .*nowhere\.json cannot be read \(ENOENT\)/);
  });
});

describe('webhooks', () => {
  const secret = `whsec_${Buffer.alloc(32, 1).toString('base64')}`;
  const older = `whsec_${Buffer.alloc(24, 2).toString('base64')}`;
  const url = 'https://hooks.example/secret-path';
  const of = (env: Environment): unknown => webhookEndpoints(loadConfig(env, cwd));
  const withRules = (rules: unknown, env: Environment = {}): unknown => {
    writeFileSync(join(cwd, 'hooks.json'), typeof rules === 'string' ? rules : JSON.stringify(rules));
    return of({ PERDURA_WEBHOOKS: 'hooks.json', ...env });
  };

  test('none is set, one for all scopes, and rules of a file before it', () => {
    const events = ['turn.finished', 'turn.failed', 'approval.waiting', 'question.waiting', 'budget.reached'];
    expect(of({})).toEqual([]);
    const all = { PERDURA_WEBHOOK_URL: url, PERDURA_WEBHOOK_SECRET: `${secret}, ${older}` };
    expect(of(all)).toEqual([{ url, secrets: [secret, older], events }]);
    expect(of({ ...all, PERDURA_WEBHOOK_EVENTS: 'turn.failed, approval.waiting' })).toMatchObject([
      { events: ['turn.failed', 'approval.waiting'] },
    ]);
    const rules = [
      { scope: 'quiet', url: null },
      { tenant: 'acme', url: 'http://10.0.0.7/in', secret: older, events: ['turn.failed'] },
    ];
    expect(withRules(`\ufeff${JSON.stringify(rules)}`, all)).toEqual(withRules(rules, all));
    expect(withRules(rules, all)).toEqual([
      { scope: 'quiet', url: null, secrets: [secret, older], events },
      { tenant: 'acme', url: 'http://10.0.0.7/in', secrets: [older], events: ['turn.failed'] },
      { url, secrets: [secret, older], events },
    ]);
    const key = Buffer.from(secret.slice(6), 'base64').toString('hex');
    expect(secretsOf(loadConfig(all, cwd))).toEqual(expect.arrayContaining([secret, older, url, key]));
  });

  test.each([
    [{ PERDURA_WEBHOOK_URL: url }, 'PERDURA_WEBHOOK_URL needs PERDURA_WEBHOOK_SECRET'],
    [{ PERDURA_WEBHOOK_URL: 'ftp://secret-path' }, 'PERDURA_WEBHOOK_URL cannot be used: write a URL that begins with http:// or https://'],
    [{ PERDURA_WEBHOOK_URL: 'https://me:secret-path@hooks.example' }, 'without a user in it'],
    [{ PERDURA_WEBHOOK_SECRET: 'whsec_c2VjcmV0LXBhdGg=' }, 'PERDURA_WEBHOOK_SECRET cannot be used: write whsec_ and the base64'],
    [{ PERDURA_WEBHOOK_SECRET: 'secret-path' }, 'PERDURA_WEBHOOK_SECRET cannot be used'],
    [{ PERDURA_WEBHOOK_EVENTS: 'turn.begun' }, 'PERDURA_WEBHOOK_EVENTS is "turn.begun", which cannot be used: write some of turn.finished'],
    [{ PERDURA_WEBHOOKS: 'nowhere.json' }, /PERDURA_WEBHOOKS: .*nowhere\.json cannot be read \(ENOENT\)/],
  ])('what cannot be used is refused, and shows neither address nor secret: %j', (env, message) => {
    const refused = (): unknown => of(env as unknown as Environment);
    expect(refused).toThrow(ConfigError);
    expect(refused).toThrow(message);
    expect(refused).not.toThrow('secret-path');
  });

  test.each([
    ['{ "secret-path": ', 'is no JSON'],
    [{ url }, 'is no list of rules'],
    [[{ url, colour: 'red' }], 'at 0'],
    [[{ url: 'file:///secret-path', secret }], '[0].url must be a URL'],
    [[{ url, secret: 'secret-path' }], '[0].secret must be whsec_'],
    [[{ url }], '[0] needs "secret"'],
    [[{ url, secret, events: ['no.such'] }], 'at 0.events.0'],
  ])('a file that cannot be used is refused by its place: %j', (rules, message) => {
    expect(() => withRules(rules)).toThrow(ConfigError);
    expect(() => withRules(rules)).toThrow(message);
    expect(() => withRules(rules)).not.toThrow('secret-path');
  });
});
