/**
 * Every setting: its name, what it may be, what it is without being set, and what it means. `loadConfig`, `doctor` and
 * the table of docs follow. The words of a schema's check end the sentence "cannot be used: write …".
 */
import { isIP } from 'node:net';
import { resolve } from 'node:path';
import { z } from 'zod';
import { ConfigError, errorMessage } from '../platform/errors.js';
import { parseRedisAddress, REDIS_FORMS } from '../platform/redis-address.js';
import { parseRetention, type Retention } from '../records/time-in-words.js';
import { WEBHOOK_EVENTS } from '../records/turn-end.js';
import { ARCHIVE_SETTINGS } from './archive.js';
import { encryptionSetting, secretsSetting } from './keys.js';
import { isWebhookUrl, WEBHOOK_URL, webhookEvents, webhookSecrets } from './webhooks.js';

export type { Secrets } from './keys.js';

export { ConfigError };

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error'] as const;
/** How much a worker logs. */
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Variables by their names. */
export type Environment = Readonly<Record<string, string | undefined>>;

export interface Setting {
  readonly name: string;
  /** Its name in the config. */
  readonly key?: string;
  readonly schema?: z.ZodType;
  readonly default?: string;
  readonly meaning: string;
  /** A folder's `.env` may set it without a person's approval: it runs nothing and sends nothing elsewhere. */
  readonly isHarmless?: true;
  /** Not read from `.env`. */
  readonly isFromEnvironment?: true;
  /** Never printed, neither in full nor in an error. */
  readonly secret?: true;
  /** Absolute in the config; from the working directory where it is not written so. */
  readonly isPath?: true;
}

/** A header cannot carry blanks and control characters: better refused here than by a stack trace at the first call. */
const apiKey = {
  schema: z
    .string()
    .regex(/^[\x21-\x7e]+$/, 'the key alone, without blanks or quotes')
    .optional(),
  secret: true,
  isHarmless: true,
} as const;

const gatewaySecret = {
  schema: z
    .string()
    .regex(/^[\x21-\x7e]{24,512}$/, '24 to 512 visible characters, such as what `openssl rand -hex 32` prints')
    .optional(),
  secret: true,
} as const;

const path = { schema: z.string(), isPath: true } as const;
const optionalPath = { schema: z.string().optional(), isPath: true } as const;

const webAddress = url('http:', 'https:').optional();

/** Ollama's variable, which may lack the protocol and even the host: `:11434` is a port of this machine. */
const ollamaHost = z
  .string()
  .transform((host) => {
    if (/^[a-z]+:\/\//i.test(host)) return host;
    const [, name = '', port = ''] = /^(.*?)(:\d+)?$/.exec(host) ?? [];
    return `http://${name || '127.0.0.1'}${port || ':11434'}`;
  })
  .refine((host) => URL.canParse(host) && /^https?:$/.test(new URL(host).protocol), 'a URL or host:port, such as http://127.0.0.1:11434');

/** Temporal's core, which listens at one of them, looks no name up. */
const socket = z.string().refine((address) => {
  const [, host = '', port] = /^(.+):(\d{1,5})$/.exec(address) ?? [];
  const bracketed = /^\[(.+)\]$/.exec(host)?.[1];
  const isAddress = bracketed === undefined ? isIP(host) === 4 : isIP(bracketed) === 6;
  return isAddress && Number(port) < 65_536;
}, 'an IP address and a port, such as 127.0.0.1:9464');

/** Each as a URL would name it, so that they can be compared. */
const hosts = z
  .string()
  .prefault('')
  .transform((text) => text.split(',').flatMap((host) => (host.trim() === '' ? [] : [hostAndPort(host.trim())])))
  .refine((all): all is string[] => !all.includes(undefined), 'host:port, several separated by commas, such as localhost:3000')
  .readonly();

const retention = z.string().transform((text, context): Retention => {
  const parsed = parseRetention(text);
  if (parsed === undefined)
    context.addIssue({ code: 'custom', message: 'days, such as 90d, or for single tenants 90d,acme=30d,globex=off' });
  return parsed ?? z.NEVER;
});

/** The ten that most people set; docs and `doctor` show them first. `TEMPORAL_*` stands for those of `@temporalio/envconfig`. */
const COMMON = [
  {
    name: 'TEMPORAL_*',
    default: '127.0.0.1:7233, namespace default',
    meaning: 'which Temporal server to use: TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_API_KEY, TEMPORAL_TLS_…, TEMPORAL_PROFILE',
    secret: true,
  },
  {
    name: 'REDIS_URL',
    key: 'redisUrl',
    schema: redisUrl().optional(),
    meaning: 'Redis that stores traces and memory, also a cluster or one behind Sentinels; without it they are files',
    secret: true,
  },
  { name: 'ANTHROPIC_API_KEY', key: 'anthropicApiKey', ...apiKey, meaning: 'key for Claude; without it scripted answers replace Claude' },
  { name: 'OPENAI_API_KEY', key: 'openaiApiKey', ...apiKey, meaning: 'key for models named openai/… and openai-responses/…' },
  { name: 'GEMINI_API_KEY', key: 'geminiApiKey', ...apiKey, meaning: 'key for models named gemini/…' },
  {
    name: 'OLLAMA_HOST',
    key: 'ollamaHost',
    schema: ollamaHost,
    default: 'http://127.0.0.1:11434',
    meaning: 'where Ollama runs, for models named ollama/…',
  },
  {
    name: 'PERDURA_MODEL',
    key: 'model',
    schema: z.string().regex(/^[a-z0-9-]+\/\S+$/, 'provider/name, such as anthropic/claude-sonnet-5-5'),
    default: 'anthropic/claude-sonnet-5-5',
    isHarmless: true,
    meaning: 'model of conversations and agents that name none, as provider/name',
  },
  {
    name: 'PERDURA_MEMORY_DIR',
    key: 'memoryDir',
    ...path,
    default: './memory',
    meaning: 'folder for traces and memory when they are files',
  },
  {
    name: 'PERDURA_WORKSPACE',
    key: 'workspace',
    ...path,
    default: './workspace',
    meaning: 'the only folder that file tools read and write',
  },
  {
    name: 'PERDURA_GATEWAY_TOKEN',
    key: 'gatewayToken',
    ...gatewaySecret,
    meaning: 'token that gives all rights at `perdura serve`; without it and PERDURA_AUTH, one is made and stored in .perdura/token',
  },
] as const satisfies readonly Setting[];

const OTHERS = [
  { name: 'ANTHROPIC_BASE_URL', key: 'anthropicBaseUrl', schema: webAddress, meaning: 'another address that speaks the Messages API' },
  {
    name: 'OPENAI_BASE_URL',
    key: 'openaiBaseUrl',
    schema: webAddress,
    meaning: 'another address that speaks as OpenAI does, such as https://openrouter.ai/api/v1',
  },
  {
    name: 'GOOGLE_API_KEY',
    key: 'geminiApiKey',
    ...apiKey,
    meaning: 'another name of GEMINI_API_KEY; if both are set, GEMINI_API_KEY counts',
  },
  { name: 'GEMINI_BASE_URL', key: 'geminiBaseUrl', schema: webAddress, meaning: 'another address that speaks the Gemini API' },
  {
    name: 'PERDURA_TASK_QUEUE',
    key: 'taskQueue',
    schema: z.string().regex(/^[\x21-\x7e]{1,200}$/, 'up to 200 visible ASCII characters'),
    default: 'perdura',
    meaning: 'task queue of workers and conversations; all workers of one have the same store and agents',
    isHarmless: true,
  },
  {
    name: 'TEMPORAL_DEPLOYMENT_NAME',
    key: 'deploymentName',
    schema: z
      .string()
      .regex(/^(?!__)[!-\-/-9;-~]{1,200}$/, 'up to 200 visible ASCII characters without . and : that do not begin with __')
      .optional(),
    meaning: 'Worker Versioning: the deployment of all builds of the workers; a worker needs TEMPORAL_WORKER_BUILD_ID too',
  },
  {
    name: 'TEMPORAL_WORKER_BUILD_ID',
    key: 'workerBuildId',
    schema: z
      .string()
      .regex(/^(?!__)[!-~]{1,200}$/, 'up to 200 visible ASCII characters that do not begin with __')
      .optional(),
    meaning: 'Worker Versioning: the build of this worker (docs/operations/upgrading.md)',
  },
  {
    name: 'PERDURA_DEFAULT_EXECUTION_MODE',
    key: 'defaultExecutionMode',
    schema: z.enum(['auto', 'stepping'], 'auto or stepping'),
    default: 'auto',
    isHarmless: true,
    meaning:
      'stepping: conversations whose start and agent name no mode wait for `perdura debug step` before each thing, from the first model call on',
  },
  {
    name: 'PERDURA_AGENTS_DIR',
    key: 'agentsDir',
    ...path,
    default: './agents',
    meaning: 'folder of agents: agent.json, SOUL.md and the rest',
  },
  {
    name: 'PERDURA_SEARCH_CACHE_BYTES',
    key: 'searchCacheBytes',
    schema: z.coerce
      .number('a number of bytes, such as 268435456')
      .int()
      .min(1_000_000, 'at least 1000000')
      .max(2 ** 40, 'at most 2^40'),
    default: '268435456',
    meaning: 'how many bytes of memory the search indexes of a worker or gateway may take, all scopes together',
    isHarmless: true,
  },
  {
    name: 'PERDURA_FILES_QUOTA',
    key: 'filesQuota',
    schema: z.coerce
      .number('a number of MiB, such as 1024')
      .int()
      .min(1, 'at least 1')
      .max(2 ** 30, 'at most 2^30')
      .transform((mebibytes) => mebibytes * 1024 * 1024),
    default: '1024',
    meaning: 'how many MiB of files the conversations of one tenant may keep, and those of no tenant together',
    isHarmless: true,
  },
  {
    name: 'PERDURA_RETENTION',
    key: 'retention',
    schema: retention.optional(),
    meaning: 'after how many days conversations are deleted that are over or idle: 90d, or for single tenants too, 90d,acme=30d,globex=off',
  },
  ...ARCHIVE_SETTINGS,
  {
    name: 'PERDURA_LOG_LEVEL',
    key: 'logLevel',
    schema: z
      .string()
      .toLowerCase()
      .pipe(z.enum(LOG_LEVELS, `one of ${LOG_LEVELS.join(', ')}`)),
    default: 'info',
    meaning: `what the worker logs: ${LOG_LEVELS.join(', ')}`,
    isHarmless: true,
  },
  {
    name: 'PERDURA_METRICS_ADDRESS',
    key: 'metricsAddress',
    schema: socket.optional(),
    meaning: 'where a worker serves Prometheus metrics, such as 127.0.0.1:9464; nowhere without it',
  },
  {
    name: 'PERDURA_HEALTH_ADDRESS',
    key: 'healthAddress',
    schema: socket.optional(),
    meaning: 'where a worker answers /healthz and /readyz, such as 0.0.0.0:9465; nowhere without it',
  },
  {
    name: 'PERDURA_UI_TEXT',
    key: 'uiText',
    schema: z.enum(['on', 'off']),
    default: 'on',
    meaning: "whether first words of messages and answers are shown in Temporal's own page: on, off",
    isHarmless: true,
  },
  {
    name: 'PERDURA_BLOCKED_MS',
    key: 'blockedMs',
    schema: z.coerce.number('a number of milliseconds, such as 1000').int().min(100, 'at least 100 ms').max(600_000, 'at most 600000 ms'),
    default: '1000',
    meaning: 'a worker that is blocked for so many milliseconds logs what ran',
    isHarmless: true,
  },
  {
    name: 'PERDURA_BLOCKED_END_MS',
    key: 'blockedEndMs',
    schema: z.coerce
      .number('a number of milliseconds, such as 15000')
      .int()
      .refine((ms) => ms === 0 || (ms >= 5_000 && ms <= 3_600_000), '0, or 5000 to 3600000 ms'),
    default: '15000',
    meaning: 'a worker that an activity blocks for so many milliseconds is ended, so that another one goes on; 0: never',
    isHarmless: true,
  },
  {
    name: 'PERDURA_AUDIT_FILE',
    key: 'auditFile',
    ...optionalPath,
    meaning: 'file to which a worker appends a line for each event, without texts; none without it',
  },
  {
    name: 'PERDURA_FETCH_ALLOW',
    key: 'fetchAllow',
    schema: hosts,
    meaning: 'hosts that fetch_url may reach although they are not public, as host:port, separated by commas',
  },
  {
    name: 'PERDURA_WEBHOOK_URL',
    key: 'webhookUrl',
    schema: z.string().refine(isWebhookUrl, WEBHOOK_URL).optional(),
    meaning: 'address to which workers post signed events: ended turns, waiting approvals and questions',
    secret: true,
  },
  {
    name: 'PERDURA_WEBHOOK_SECRET',
    key: 'webhookSecrets',
    schema: webhookSecrets.optional(),
    meaning:
      'secret that signs these events: whsec_ and the base64 of 32 random bytes; while you change it, the new and the old one with a comma between',
    secret: true,
  },
  {
    name: 'PERDURA_WEBHOOK_EVENTS',
    key: 'webhookEvents',
    schema: webhookEvents,
    default: WEBHOOK_EVENTS.join(','),
    meaning: 'which events workers post, separated by commas',
  },
  {
    name: 'PERDURA_WEBHOOKS',
    key: 'webhookFile',
    ...optionalPath,
    meaning: 'JSON file of rules that send the events of single scopes and tenants to other addresses',
  },
  {
    name: 'PERDURA_TENANT_BUDGETS',
    key: 'tenantBudgetFile',
    ...optionalPath,
    meaning: 'JSON file of what tenants may use in a day and in a month',
  },
  {
    name: 'PERDURA_AUTH',
    key: 'authFile',
    ...optionalPath,
    meaning: 'JSON file of further tokens, roles and tenants for `perdura serve` (`perdura admin token`), and of an identity provider',
  },
  {
    name: 'PERDURA_PUBLIC_URL',
    key: 'publicUrl',
    schema: z
      .string()
      .refine(isWebhookUrl, WEBHOOK_URL)
      .transform((url) => url.replace(/\/+$/, '')),
    default: 'http://127.0.0.1:7280',
    meaning: 'address by which browsers reach `perdura serve`, with its base path: links by which people sign in at MCP servers lead there',
  },
  {
    name: 'PERDURA_SECRET',
    key: 'secrets',
    schema: secretsSetting.optional(),
    meaning:
      'secret of the installation, from which all keys come: the same for its workers and gateways; several while you change it. Without it gateways make one in .perdura/secret, workers do not sign the state of conversations, and people cannot sign in at MCP servers',
    secret: true,
  },
  {
    name: 'PERDURA_ENCRYPTION',
    key: 'encryption',
    schema: encryptionSetting.optional(),
    meaning:
      'encrypts what is stored, in Temporal and in the store, by keys from `secret`, `file:PATH` or `command:PROGRAM …`: the same for all workers, gateways and commands (docs/how-to/encrypt.md); plain without it',
  },
  {
    name: 'PERDURA_TRUST',
    meaning: '1: trust this folder without asking (`perdura trust`); not read from `.env`',
    isFromEnvironment: true,
  },
] as const satisfies readonly Setting[];

const TABLE = [...COMMON, ...OTHERS] as const;

export const COMMON_SETTINGS: readonly Setting[] = COMMON;
export const SETTINGS: readonly Setting[] = TABLE;

type Row = Extract<(typeof TABLE)[number], { readonly key: string }>;
type Value<Key> = z.output<Extract<Row, { readonly key: Key }>['schema']>;
type Unset<Key> = undefined extends Value<Key> ? Key : never;

/** By their keys; those that have no default may be undefined. */
export type Settings = { readonly [Key in Row['key'] as Exclude<Key, Unset<Key>>]: Value<Key> } & {
  readonly [Key in Row['key'] as Unset<Key>]?: Value<Key>;
};

/** Those whose value is a secret, or holds one. */
export type SecretSetting = Extract<Row, { readonly secret: true }>['key'];

/** Throws `ConfigError`. Of two names for one setting the first that is set counts. */
export function readSettings(all: Environment, cwd: string): Settings {
  const values: Record<string, unknown> = {};
  for (const { key, schema, ...setting } of SETTINGS) {
    if (key === undefined || schema === undefined || values[key] !== undefined) continue;
    const given = all[setting.name]?.trim() || setting.default;
    const result = schema.safeParse(setting.isPath && given !== undefined && !given.startsWith('s3:') ? resolve(cwd, given) : given);
    if (!result.success) throw new ConfigError(describeRefusal(setting, given, result.error));
    values[key] = result.data;
  }
  // By the type of the table: each key has what its schema gives.
  return values as Settings;
}

function describeRefusal({ name, secret }: Setting, given: string | undefined, { issues }: z.ZodError): string {
  const shown = secret ? '' : ` is ${JSON.stringify(given)}, which`;
  return `${name}${shown} cannot be used: write ${issues[0]?.message ?? 'another value'}, or remove it`;
}

function url(...protocols: readonly string[]) {
  return z.string().refine(
    (value) => {
      if (!URL.canParse(value)) return false;
      const { protocol, hostname } = new URL(value);
      return protocols.includes(protocol) && hostname !== '';
    },
    `a URL that begins with ${protocols.map((protocol) => `${protocol}//`).join(' or ')}`,
  );
}

function redisUrl() {
  return z.string().superRefine((value, context) => {
    try {
      const { kind, url } = parseRedisAddress(value);
      if (kind === 'single' && !URL.canParse(url)) throw new Error(`it is not of the form ${REDIS_FORMS}`);
    } catch (error) {
      context.addIssue({ code: 'custom', message: `a Redis URL (${errorMessage(error)})` });
    }
  });
}

function hostAndPort(host: string): string | undefined {
  const [, name = '', port = ''] = /^([^/@?#\s]+):(\d{1,5})$/.exec(host) ?? [];
  if (name === '' || Number(port) === 0 || Number(port) > 65_535 || !URL.canParse(`http://${host}`)) return undefined;
  return `${new URL(`http://${host}`).hostname}:${Number(port)}`;
}
