/// <reference path="../types/ms.d.ts" preserve="true" />
/**
 * `import … from 'perdura/config'`: settings (design section 7). The only file that reads the environment: `.env` in the working directory,
 * the real environment wins. An empty value counts as not set, so `ANTHROPIC_API_KEY= npm start` leaves out the one in `.env`.
 *
 * @packageDocumentation
 */
import { readFileSync, existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { parseEnv } from 'node:util';
import type { ClientConnectConfig } from '@temporalio/envconfig';
import {
  ConfigError,
  readSettings,
  SETTINGS,
  type Environment,
  type SecretSetting,
  type Setting,
  type Settings,
} from './config/settings.js';
import { createEncryptionRoots, type EncryptionRoots } from './config/keys.js';
import { offeredSettings, readOtelSettings, type OtelSettings } from './config/otel-settings.js';
import { secretsInAddress, secretsInEndpoint } from './config/webhooks.js';
import { isSecretSetting } from './platform/known-secrets.js';
import { errorCode, errorMessage } from './platform/errors.js';
import { withFirstHost } from './platform/redis-address.js';
import { decodeText } from './records/file-type.js';

export type { ArchiveSetting } from './config/archive.js';
export { otelProblems, type OtelSettings } from './config/otel-settings.js';

export { ConfigError, type Environment, type LogLevel } from './config/settings.js';
export { secretsInEndpoint, tenantBudgets, webhookEndpoints, type WebhookEndpoint } from './config/webhooks.js';

/**
 * The settings, each under its `key` in the table of `config/settings.ts`, which says what it means. Folders and files are
 * absolute; `model` is `provider/name`; without `anthropicApiKey` the scripted model answers.
 */
export type Config = Settings & {
  /** `OTEL_*`, which OpenTelemetry's SDK reads; undefined: nothing asks for it, and it is not loaded. */
  readonly otel?: OtelSettings;
  /** The working directory that `.env` and `.perdura/` belong to. */
  readonly cwd: string;
  /** @internal The keys that encrypt what is stored. */
  readonly encryptionRoots: EncryptionRoots;
  /** @internal The environment that the settings were read from, without `.env`. */
  readonly env: Environment;
  /** What `@temporalio/envconfig` is given to read; `temporalConnection` is the way to use it. */
  readonly temporalEnv: Readonly<Record<string, string>>;
};

/** Throws `ConfigError`. */
export function loadConfig(env: Environment = process.env, cwd: string = process.cwd()): Config {
  const all = { ...queueOfFolder(cwd), ...loadVariables(cwd, env) };
  const settings = readSettings(all, cwd);
  return Object.freeze({
    ...settings,
    encryptionRoots: createEncryptionRoots(settings, cwd),
    otel: readOtelSettings(all),
    cwd: resolve(cwd),
    env: Object.freeze({ ...env }),
    temporalEnv: Object.freeze(Object.fromEntries(Object.entries(all).filter(isTemporalEntry))),
  });
}

/** @internal What a person chose for this folder, where another one's worker has the usual task queue. */
export function queueFile(cwd: string): string {
  return join(cwd, '.perdura', 'task-queue');
}

function queueOfFolder(cwd: string): Environment {
  try {
    return withoutEmpty({ PERDURA_TASK_QUEUE: readFileSync(queueFile(cwd), 'utf8').trim() });
  } catch {
    return {};
  }
}

/** @internal All variables that there are, `.env` included: for what an operator's file names by `${NAME}`. */
export function variablesOf({ cwd, env }: Pick<Config, 'cwd' | 'env'>): Environment {
  return loadVariables(cwd, env);
}

/** @internal The same for a process that uses what it was started with, whatever its settings were read from. */
export function loadVariables(cwd: string, env: Environment = process.env): Environment {
  return withoutEmpty({ ...readDotEnv(cwd), ...env });
}

/** @internal What this process was started with. */
export function loadEnvironment(): Environment {
  return process.env;
}

/** @internal What only the folder's `.env` says, and what was there without it. Throws `ConfigError`. */
export function variablesOfFolder(cwd: string, env: Environment): { readonly fromFile: Named; readonly real: Environment } {
  const real = withoutEmpty(env);
  const fromFile = Object.entries(withoutEmpty(readDotEnv(cwd))).filter(([name]) => real[name] === undefined);
  return { fromFile: Object.fromEntries(fromFile) as Named, real };
}

type Named = Readonly<Record<string, string>>;

/** @internal Of a variable in a folder's `.env`: it is not read, or it is harmless. */
export function isTakenUnasked(name: string): boolean {
  if (TEMPORAL_NAMES.test(name) || TEMPORAL_FILE_NAMES.has(name) || name.startsWith('OTEL_')) return false;
  const setting = settingNamed(name);
  return setting === undefined || setting.isHarmless === true || setting.isFromEnvironment === true;
}

/** @internal A value as it may be shown: of a secret that is an address, where it leads to. */
export function shownSetting(name: string, value: string): string {
  const isPlain = TEMPORAL_NAMES.test(name) ? TEMPORAL_PLAIN.has(name) : settingNamed(name)?.secret !== true && !SECRET_NAMES.test(name);
  if (isPlain) return value.replace(/\/\/[^/@\s]*@/g, '//***@');
  const url = URL.parse(withFirstHost(value));
  return url !== null && url.host !== '' ? `${url.protocol}//${url.host}` : 'set';
}

const SECRET_NAMES = /KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH|HEADERS/;

function settingNamed(name: string): Setting | undefined {
  return SETTINGS.find((setting) => setting.name === name);
}

/** @internal Where a person's yes to a folder is remembered: outside of all folders, by what the environment alone says. */
export function trustFile(env: Environment): string {
  return join(env['XDG_STATE_HOME'] || join(env['HOME'] || homedir(), '.local', 'state'), 'perdura', 'trust.json');
}

/** @internal The person who starts this process trusts the folder. */
export function isTrustedByEnvironment(env: Environment): boolean {
  return env['PERDURA_TRUST'] === '1';
}

/** @internal The environment of a command whose person trusts the folder: a yes for it is one for the worker that it starts. */
export function trusting(env: Environment): Environment {
  return { ...env, PERDURA_TRUST: '1' };
}

type SecretsIn<Value> = (value: Value) => readonly string[];
const itself: SecretsIn<string> = (value) => [value];

/** What in a setting nothing may show. One that its row calls a secret, and that does not stand here, is an error of types. */
const SECRETS_IN: { readonly [Key in SecretSetting]: SecretsIn<NonNullable<Settings[Key]>> } = {
  anthropicApiKey: itself,
  openaiApiKey: itself,
  geminiApiKey: itself,
  gatewayToken: itself,
  awsSecretAccessKey: itself,
  awsSessionToken: itself,
  secrets: ({ all, ids }) => [...all, ids],
  webhookSecrets: (secrets) => secretsInEndpoint({ url: null, secrets }),
  webhookUrl: (url) => secretsInEndpoint({ url, secrets: [] }),
  // As of every other address.
  redisUrl: () => [],
};

/** @internal Every secret that the settings hold, for those who must not show one. */
export function secretsOf(config: Config): string[] {
  const declared = Object.entries(SECRETS_IN).flatMap(([key, read]) => {
    const value = config[key as SecretSetting];
    // Each function stands under the key whose value it takes.
    return value === undefined ? [] : (read as SecretsIn<typeof value>)(value);
  });
  const otel = Object.entries(config.otel?.env ?? {});
  const addresses = [...Object.values(config), ...otel.map(([, value]) => value)].filter((value) => typeof value === 'string');
  const ofTemporal = Object.entries(config.temporalEnv).flatMap(([name, value]) => (TEMPORAL_SECRETS.test(name) ? [value] : []));
  const ofOtel = otel.flatMap(([name, value]) => (OTEL_SECRETS.test(name) ? headerValues(value) : []));
  return [...declared, ...addresses.flatMap(secretsInAddress), ...ofTemporal, ...ofOtel];
}

/** @internal What the environment holds in confidence besides our settings, for the tools of others. */
export function secretVariables(variables: Environment): string[] {
  return Object.entries(variables).flatMap(([name, value = '']) => (isSecretSetting(name, value) ? [value] : secretsInAddress(value)));
}

/** @internal What the gateways of this folder have made for themselves, as far as they have. */
export function secretsInFolder(cwd: string): string[] {
  return ['token', 'secret'].flatMap((name) => {
    try {
      return [readFileSync(join(cwd, '.perdura', name), 'utf8').trim()];
    } catch {
      return [];
    }
  });
}

/** @internal What a connection to Temporal is given in confidence, which may come from Temporal's profile file. */
export function secretsInConnection({ apiKey, metadata, tls }: TemporalConnection['connectionOptions']): string[] {
  const key = typeof tls === 'object' && tls !== null ? tls.clientCertPair?.key : undefined;
  const given = [apiKey, ...Object.values(metadata ?? {}), key === undefined ? undefined : Buffer.from(key).toString()];
  return given.filter((value) => typeof value === 'string');
}

/** @internal Who has no key, no other address and names no other provider gets the scripted stand-in. */
export function needsStandIn({ anthropicApiKey, anthropicBaseUrl, model }: Config): boolean {
  return anthropicApiKey === undefined && anthropicBaseUrl === undefined && model.startsWith('anthropic/');
}

/** @internal The build of the workers that are started with these settings; undefined: they have none. Throws `ConfigError`. */
export function workerBuild({ deploymentName, workerBuildId }: Pick<Config, 'deploymentName' | 'workerBuildId'>) {
  if (deploymentName !== undefined && workerBuildId !== undefined) return { deploymentName, buildId: workerBuildId };
  if (deploymentName === workerBuildId) return undefined;
  const [set, missing] = deploymentName === undefined ? [BUILD_ID, DEPLOYMENT_NAME] : [DEPLOYMENT_NAME, BUILD_ID];
  throw new ConfigError(`a worker that has ${set} needs ${missing} too: set both, or none`);
}

/** @internal A setting by its name in the environment; undefined where it is not set. */
export function readSetting(config: Config, name: string): unknown {
  const key = SETTINGS.find((one) => one.name === name)?.key;
  return key === undefined ? undefined : config[key as keyof Config];
}

/** @internal What each provider of models is to be given, by its name. */
export function providerSettings(config: Config) {
  return {
    anthropic: { apiKey: config.anthropicApiKey, baseURL: config.anthropicBaseUrl },
    openai: { apiKey: config.openaiApiKey, baseURL: config.openaiBaseUrl },
    gemini: { apiKey: config.geminiApiKey, baseURL: config.geminiBaseUrl },
    ollama: { host: config.ollamaHost },
  };
}

/** A setting as it counts now. */
export interface SettingInUse {
  readonly name: string;
  /** Undefined when it is not set; `set` in place of a secret. */
  readonly value?: string;
  readonly from: 'environment' | '.env' | 'default' | 'nowhere';
}

/** Each setting with its value and where that came from, to be shown. */
export function describeSettings(env: Environment = process.env, cwd: string = process.cwd()): SettingInUse[] {
  const [real, file] = [withoutEmpty(env), withoutEmpty(readDotEnv(cwd))];
  for (const { name, isFromEnvironment } of SETTINGS) if (isFromEnvironment === true) delete file[name];
  const temporal = [...new Set([...Object.keys(file), ...Object.keys(real)])].filter((name) => TEMPORAL_NAMES.test(name)).sort();
  const found = (name: string, secret: boolean, fallback?: string): SettingInUse => {
    const value = real[name] ?? file[name] ?? fallback;
    const from =
      real[name] !== undefined ? 'environment' : file[name] !== undefined ? '.env' : fallback === undefined ? 'nowhere' : 'default';
    return { name, value: value !== undefined && secret ? 'set' : value, from };
  };
  return SETTINGS.flatMap((setting) => {
    if (setting.name !== 'TEMPORAL_*') return [found(setting.name, setting.secret === true, setting.default)];
    if (temporal.length === 0) return [{ name: setting.name, value: setting.default, from: 'default' }];
    return temporal.map((name) => found(name, !TEMPORAL_PLAIN.has(name)));
  });
}

/** Those of Temporal's that may be shown. */
const TEMPORAL_PLAIN = new Set(['TEMPORAL_ADDRESS', 'TEMPORAL_NAMESPACE', 'TEMPORAL_PROFILE', 'TEMPORAL_CONFIG_FILE', 'TEMPORAL_TLS']);

/** Where one of our servers listens. */
export const DEFAULT_TEMPORAL_ADDRESS = '127.0.0.1:7233';

/** Where the Temporal server is, and how to connect to it. */
export interface TemporalConnection {
  readonly connectionOptions: ClientConnectConfig['connectionOptions'] & { readonly address: string };
  readonly namespace: string;
  /** True when a person chose the server, by `TEMPORAL_*` or by Temporal's profile file. */
  readonly named: boolean;
}

/** What `Connection.connect` and `NativeConnection.connect` take, and the namespace, by Temporal's rules. Throws `ConfigError`. */
export async function temporalConnection(config: Config): Promise<TemporalConnection> {
  const { loadClientConnectConfig } = await import('@temporalio/envconfig');
  try {
    const { connectionOptions, namespace } = loadClientConnectConfig({ overrideEnvVars: { ...config.temporalEnv } });
    return {
      connectionOptions: { ...connectionOptions, address: connectionOptions.address ?? DEFAULT_TEMPORAL_ADDRESS },
      namespace: namespace ?? 'default',
      named: connectionOptions.address !== undefined || Object.keys(config.temporalEnv).some((name) => name.startsWith('TEMPORAL_')),
    };
  } catch (cause) {
    throw new ConfigError(`cannot use TEMPORAL_* or the profile they name: ${errorMessage(cause)}`, {
      cause,
    });
  }
}

/** @internal The settings with other `TEMPORAL_*` in place of those of the environment, as the flags of a command say them. */
export function withTemporalEnv(config: Config, temporal: Readonly<Record<string, string>>): Config {
  return Object.freeze({ ...config, temporalEnv: Object.freeze({ ...config.temporalEnv, ...temporal }) });
}

/** @internal What NO_COLOR and FORCE_COLOR ask for, by their rules: the first counts when it is not empty, the second may say 0. */
export function readColorWish(env: Environment): 'always' | 'never' | undefined {
  if (env['NO_COLOR'] !== undefined && env['NO_COLOR'] !== '') return 'never';
  const forced = env['FORCE_COLOR'];
  if (forced !== undefined) return forced === '0' || forced === 'false' ? 'never' : 'always';
  return env['TERM'] === 'dumb' ? 'never' : undefined;
}

/** @internal What the machine offers to the programs that we look for and start. */
export interface Machine {
  readonly path: readonly string[];
  readonly cacheDir: string;
  readonly home: string;
  readonly platform: NodeJS.Platform;
  readonly arch: string;
  /** What a program that is started there finds. */
  readonly env: Environment;
}

/** @internal */
export function loadMachine(env: Environment = process.env): Machine {
  const home = env['HOME'] || homedir();
  return Object.freeze({
    path: Object.freeze((env['PATH'] ?? '').split(delimiter).filter((dir) => dir !== '')),
    cacheDir: join(env['XDG_CACHE_HOME'] || join(home, '.cache'), 'perdura'),
    home,
    platform: process.platform,
    arch: process.arch,
    env,
  });
}

/** @internal The program that has started this one by `npx`, `npm create` or the like, which is the one that a person uses. */
export function packageManager(env: Environment): 'npm' | 'pnpm' | 'yarn' | 'bun' {
  const [, name] = /^(npm|pnpm|yarn|bun)\//.exec(env['npm_config_user_agent'] ?? '') ?? [];
  return (name as ReturnType<typeof packageManager> | undefined) ?? 'npm';
}

const OTEL_SECRETS = /^OTEL_EXPORTER_OTLP(_[A-Z]+)?_HEADERS$/;

/** @internal OpenTelemetry's SDK reads the environment and knows no `.env`. */
export function offerOtelSettings(otel: OtelSettings, version: string): void {
  Object.assign(process.env, offeredSettings(otel, version));
  // Anthropic's SDK would report each call a second time, and send our trace ids along; a setting turns that on.
  for (const name of ['ANTHROPIC_OPEN_TELEMETRY', 'ANTHROPIC_OPEN_TELEMETRY_PROPAGATION']) process.env[name] ??= 'false';
}

/** `name=value,name=value`, percent-encoded. */
function headerValues(headers: string): string[] {
  return headers.split(',').flatMap((pair) => {
    const value = pair.slice(pair.indexOf('=') + 1).trim();
    try {
      return [value, decodeURIComponent(value)];
    } catch {
      return [value];
    }
  });
}

/** @internal The part of our environment that a command of a model gets: no keys, and no addresses that hold passwords. */
export function commandEnvironment(env: Environment = process.env): Readonly<Record<string, string>> {
  const passed = Object.entries(env).filter(([name, value]) => value !== undefined && (COMMAND_NAMES.has(name) || name.startsWith('LC_')));
  // No person looks at a screen.
  return Object.freeze({ ...(Object.fromEntries(passed) as Record<string, string>), TERM: 'dumb', NO_COLOR: '1' });
}

const COMMAND_NAMES = new Set(['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'LANGUAGE', 'TZ', 'TMPDIR']);

const DEPLOYMENT_NAME = 'TEMPORAL_DEPLOYMENT_NAME';
const BUILD_ID = 'TEMPORAL_WORKER_BUILD_ID';
const TEMPORAL_NAMES = /^TEMPORAL_(ADDRESS|NAMESPACE|API_KEY|TLS(_.+)?|CODEC_.+|GRPC_META_.+|PROFILE|CONFIG_FILE)$/;
const TEMPORAL_SECRETS = /^TEMPORAL_(API_KEY|TLS_CLIENT_KEY_DATA|CODEC_AUTH|GRPC_META_.+)$/;
/** Where envconfig looks for `temporalio/temporal.toml`. */
const TEMPORAL_FILE_NAMES = new Set(['HOME', 'XDG_CONFIG_HOME', 'APPDATA', 'USERPROFILE']);

function isTemporalEntry(entry: [string, string | undefined]): entry is [string, string] {
  return entry[1] !== undefined && (TEMPORAL_NAMES.test(entry[0]) || TEMPORAL_FILE_NAMES.has(entry[0]));
}

function readDotEnv(cwd: string): Environment {
  let text: string;
  try {
    text = decodeText(readFileSync(join(cwd, '.env')));
  } catch (cause) {
    const code = errorCode(cause);
    if (code === 'ENOENT' || code === 'EISDIR') return {};
    throw new ConfigError(`cannot read ${join(cwd, '.env')}: ${code ?? String(cause)}; make it readable or remove it`, { cause });
  }
  return parseEnv(text);
}

function withoutEmpty(env: Environment): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined && value !== ''));
}

const USER_CONFIGS = ['ts', 'js', 'mjs', 'cjs'].map((extension) => `perdura.config.${extension}`);

/** @internal Where a folder has custom code for the CLI; undefined where there is none. Throws `ConfigError` for two of them. */
export function findUserConfig(cwd: string): string | undefined {
  const found = USER_CONFIGS.filter((name) => existsSync(join(cwd, name)));
  if (found.length > 1) throw new ConfigError(`there are ${found.join(' and ')} in ${cwd}: keep one of them`);
  return found[0] === undefined ? undefined : join(cwd, found[0]);
}
