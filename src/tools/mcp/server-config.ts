/** `mcp.json`, as others write it: which MCP servers an agent has, and how they are started or reached. */
import { z } from 'zod';
import { createKnownSecrets, isSecretSetting } from '../../platform/known-secrets.js';
import { isRecord } from '../../platform/json.js';

const DAY_MS = 24 * 60 * 60 * 1000;

const common = {
  /** Kept in the file, and not used. */
  disabled: z.boolean().default(false),
  /** Milliseconds that one call may take without an answer or a word of progress. */
  timeout: z.int().min(1).max(DAY_MS).default(60_000),
  /** Milliseconds that it may take in all; default: ten times `timeout`. */
  maxTotalTimeout: z.int().min(1).max(DAY_MS).optional(),
  /** Believe `readOnlyHint` and `idempotentHint`: then a crash repeats the call. Any server can send them. */
  trustAnnotations: z.boolean().default(false),
};

const texts = z.record(z.string().min(1).max(200), z.string().max(32_768));

const stdio = z.object({
  type: z.literal('stdio'),
  command: z.string().min(1).max(4_096),
  args: z.array(z.string().max(32_768)).max(200).default([]),
  /** Beside the few variables that every server gets: HOME, LOGNAME, PATH, SHELL, TERM, USER. */
  env: texts.default({}),
  /** From the agent's folder, which it is by default. */
  cwd: z.string().min(1).max(4_096).optional(),
  ...common,
});

const oauth = z.object({
  /** Whose sign-in it is: that of a memory scope, or of a tenant with all its scopes. */
  per: z.enum(['scope', 'tenant']).default('scope'),
  /** A client that a person has registered with the authorization server; it registers itself where this is absent. */
  clientId: z.string().min(1).max(2_048).optional(),
  clientSecret: z.string().min(1).max(32_768).optional(),
  /** Requested where the server does not say what it wants. */
  scopes: z
    .array(z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/))
    .max(100)
    .optional(),
});

const http = z.object({
  type: z.literal('http'),
  url: z.string().min(1).max(8_192),
  headers: texts.default({}),
  /** For a server at which people sign in: found out by itself where this is absent. */
  oauth: oauth.optional(),
  ...common,
});

const server = z.preprocess(
  (given) => (isRecord(given) ? readForeign(given).server : given),
  z.discriminatedUnion('type', [stdio, http], {
    error: ({ code }) => (code === 'invalid_union' ? 'expected "stdio" (with "command") or "http" (with "url")' : undefined),
  }),
);

const serverName = z
  .string()
  .min(1)
  .max(100)
  .regex(/^[^\p{C}]+$/u, 'expected a name without control characters');

/** Other fields beside `mcpServers` are other programs' business: people share such a file between them. */
export const mcpConfigSchema = z.object({ mcpServers: z.record(serverName, server).default({}) });

export type McpServerConfig = Readonly<z.output<typeof stdio> | z.output<typeof http>>;

export type McpServer = McpServerConfig & {
  readonly name: string;
  /** Absolute: where a relative `cwd` begins. */
  readonly folder: string;
};

/** Sorted by name, disabled ones left out. */
export function toServers({ mcpServers }: z.output<typeof mcpConfigSchema>, folder: string): readonly McpServer[] {
  return Object.entries(mcpServers)
    .filter(([, { disabled }]) => !disabled)
    .map(([name, config]) => ({ ...config, name, folder }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Of one call in all, in milliseconds: progress keeps it alive within that. */
export function totalTimeout({ timeout, maxTotalTimeout = 10 * timeout }: McpServerConfig): number {
  return Math.min(DAY_MS, Math.max(timeout, maxTotalTimeout));
}

// Such a file is shared between programs: other editors have other words for some fields, and fields that only they know.

/** By names that others choose: an object would answer to `constructor`. */
const TYPE_OF = toMap({
  ...{ 'streamable-http': 'http', streamableHttp: 'http', streamable_http: 'http', streamablehttp: 'http', remote: 'http', sse: 'http' },
  local: 'stdio',
});
const NAME_OF = toMap({ transport: 'type', httpUrl: 'url', serverUrl: 'url' });
const APPROVALS = '"approvals" in agent.json says which calls ask';
const TOOLS = '"tools" in agent.json says which are offered';
const WHY_NOT = toMap({
  ...{ autoApprove: APPROVALS, alwaysAllow: APPROVALS, trust: APPROVALS },
  ...{ includeTools: TOOLS, excludeTools: TOOLS, enabledTools: TOOLS, disabledTools: TOOLS, allowedTools: TOOLS, tools: TOOLS },
  envFile: 'no file is read: name the variables in "env"',
});
const MAX_IGNORED = 20;

/** In our words, with a sentence on each field that is left out. */
function readForeign(given: Readonly<Record<string, unknown>>): {
  readonly server: Record<string, unknown>;
  readonly ignored: readonly string[];
} {
  // Without what every object has: a field `__proto__` is one field more.
  const server = Object.create(null) as Record<string, unknown>;
  const ignored: string[] = [];
  for (const [field, value] of Object.entries(given)) {
    const name = NAME_OF.get(field) ?? field;
    if (value === null || (name !== field && given[name] !== undefined && given[name] !== null)) continue;
    if (field === 'enabled') server['disabled'] ??= value === false;
    else server[name] = value;
  }
  const word = server['type'] ?? ('url' in server ? 'http' : 'stdio');
  if (word === 'sse') ignored.push('type "sse" is the protocol of 2024, which is not spoken here: its address is taken as one of "http"');
  server['type'] = typeof word === 'string' ? (TYPE_OF.get(word) ?? word) : word;
  if (isRecord(server['env'])) server['env'] = toTexts(server['env']);
  const known = Object.keys((server['type'] === 'http' ? http : stdio).shape);
  for (const field of Object.keys(server).filter((name) => !known.includes(name))) {
    const why = WHY_NOT.get(field);
    ignored.push(`${field} is not used${why === undefined ? '' : `: ${why}`}`);
    delete server[field];
  }
  const { timeout } = server;
  if (typeof timeout === 'number' && timeout > 0 && timeout < 1_000) ignored.push(`timeout is ${timeout}, and counts milliseconds`);
  return { server, ignored };
}

function toMap(words: Readonly<Record<string, string>>): ReadonlyMap<string, string> {
  return new Map(Object.entries(words));
}

/** Others write numbers there, and null for a variable that is not to be set. */
function toTexts(env: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) => {
      if (value === null) return [];
      return [[name, typeof value === 'number' || typeof value === 'boolean' ? String(value) : value]];
    }),
  );
}

/** What of `mcpServers` is left out, a sentence for each field. `given` is as it was written. */
export function listIgnored(given: unknown): readonly string[] {
  const servers = isRecord(given) && isRecord(given['mcpServers']) ? given['mcpServers'] : {};
  const all = Object.entries(servers).flatMap(([name, one]) =>
    isRecord(one) ? readForeign(one).ignored.map((sentence) => `mcpServers.${name}: ${sentence}`) : [],
  );
  return all.length > MAX_IGNORED ? [...all.slice(0, MAX_IGNORED), `and ${all.length - MAX_IGNORED} more of these`] : all;
}

/** `${NAME}` and `${NAME:-default}` in a server's settings, from the worker's environment. */
export type Variables = Readonly<Record<string, string | undefined>>;

/** A setting names a variable that is not set. The message names both, and no value. */
class VariableMissing extends Error {
  override readonly name = 'VariableMissing';
}

const VARIABLE = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g;

/** Throws `VariableMissing`. */
export function expandServer(server: McpServer, variables: Variables): McpServer {
  const inText = (field: string, text: string): string =>
    text.replace(VARIABLE, (_whole, name: string, otherwise: string | undefined) => {
      const value = variables[name] || otherwise;
      if (value !== undefined) return value;
      throw new VariableMissing(`mcpServers.${server.name}.${field} names \${${name}}, which is not set where the worker runs`);
    });
  const inAll = (field: string, texts: Readonly<Record<string, string>>): Record<string, string> =>
    Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, inText(`${field}.${name}`, text)]));

  if (server.type === 'http') {
    const { clientId, clientSecret } = server.oauth ?? {};
    const oauth = server.oauth && {
      ...server.oauth,
      ...(clientId !== undefined && { clientId: inText('oauth.clientId', clientId) }),
      ...(clientSecret !== undefined && { clientSecret: inText('oauth.clientSecret', clientSecret) }),
    };
    return { ...server, url: inText('url', server.url), headers: inAll('headers', server.headers), ...(oauth && { oauth }) };
  }
  return {
    ...server,
    command: inText('command', server.command),
    args: server.args.map((text, at) => inText(`args[${at}]`, text)),
    env: inAll('env', server.env),
    ...(server.cwd !== undefined && { cwd: inText('cwd', server.cwd) }),
  };
}

// Secrets that a server was given do not come back in messages about it.

const MIN_LENGTH = 8;

/** For messages about it: none of the values that it was given. `server` is expanded. */
export function createValueRedactor(server: McpServer): (text: string) => string {
  const given = server.type === 'http' ? [...Object.values(server.headers), ...inAddress(server.url)] : Object.values(server.env);
  return createKnownSecrets(withParts(given)).text;
}

/**
 * Those values that are secrets: what it answers does not show them either, and they are not sent elsewhere. Places, numbers and plain
 * words are none: answers are full of them. `server` is expanded.
 */
export function secretsOfServer(server: McpServer): string[] {
  if (server.type === 'http') {
    const headers = Object.entries(server.headers).flatMap(([name, value]) => (isSecret(name, value) ? [value] : []));
    const parsed = URL.parse(server.url);
    const inUrl = [...(parsed?.searchParams ?? [])].flatMap(([name, value]) => (isSecret(name, value) ? [value] : []));
    return [...withParts(headers), ...inUrl, parsed?.password ?? '', server.oauth?.clientSecret ?? ''];
  }
  return Object.entries(server.env).flatMap(([name, value]) => (isSecret(name, value) ? [value] : []));
}

function isSecret(name: string, value: string): boolean {
  if (isSecretSetting(name, value)) return true;
  const isPlace = /^([~./]|[A-Za-z]:\\)/.test(value) || /^[a-z][a-z0-9+.-]*:\/\/[^@?]*$/i.test(value) || /[/\\].*[/\\]/.test(value);
  return !isPlace && /\d/.test(value) && /[A-Za-z]/.test(value) && /^\S{16,}$/.test(value);
}

/** A header says what kind of key it is before the key. */
function withParts(values: readonly string[]): string[] {
  return values.flatMap((value) => [value, ...value.split(' ')]).filter((value) => value.length >= MIN_LENGTH);
}

function inAddress(url: string): string[] {
  const parsed = URL.parse(url);
  return parsed ? [parsed.password, parsed.search, ...parsed.searchParams.values()] : [];
}
