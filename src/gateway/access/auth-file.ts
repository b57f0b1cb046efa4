/** The file that `PERDURA_AUTH` names: tokens by their hashes, and an identity provider. Read again when it changes. */
import { createHash, randomBytes } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { isIP } from 'node:net';
import { z } from 'zod';
import { ROLES, SCOPES_PATTERN, TENANT_PATTERN } from './principal.js';
import { errorMessage } from '../../platform/errors.js';
import { decodeText } from '../../records/file-type.js';

/** Signatures by keys that only the provider has: no `none`, and no secret that both sides know. */
const JWT_ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'] as const;

/** No colon: a colon marks the name of a user of the provider, so names of tokens have none. */
const TOKEN_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

const role = z.enum(ROLES, `one of ${ROLES.join(', ')}`);
const tenant = z.string().regex(TENANT_PATTERN, 'a name of a tenant: up to 39 small letters, digits and -');
const scope = z.string().regex(SCOPES_PATTERN, 'a scope, or the beginning of some: ada, ada-*, *');
const time = z.iso.datetime({ offset: true, error: 'a time such as 2027-01-31T00:00:00Z' });
const variable = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, 'the name of an environment variable');

const address = z.string().refine((text) => {
  const url = URL.parse(text);
  return url !== null && (url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname)));
}, 'an https: address (http: only on this machine)');

/** Where in the claims: a name, or the way to it, such as `["realm_access", "roles"]`. */
const claim = z.union([z.string().min(1).max(200), z.array(z.string().min(1).max(200)).min(1).max(8)]);

const tokenRow = z.strictObject({
  name: z.string().regex(TOKEN_NAME, 'letters, digits, . _ and -, at most 64'),
  /** Hash of a token from `randomBytes`: it cannot be guessed, so a fast hash without salt is enough. */
  hash: z.string().regex(/^sha256:[0-9a-f]{64}$/, 'sha256: and 64 hexadecimal digits, as `perdura admin token create` writes it'),
  role,
  tenant: tenant.optional(),
  /** Of a user (principal.ts). */
  scopes: z.array(scope).min(1).max(20).readonly().optional(),
  created: time,
  expires: time.optional(),
});

const jwt = z.strictObject({
  issuer: address,
  audience: z.union([z.string().min(1).max(500), z.array(z.string().min(1).max(500)).min(1).max(20)]),
  /** Default: the address in the description of the issuer. */
  jwksUri: address.optional(),
  algorithms: z
    .array(z.enum(JWT_ALGORITHMS, `one of ${JWT_ALGORITHMS.join(', ')}`))
    .min(1)
    .default([...JWT_ALGORITHMS]),
  /** Without it users of the provider are of no tenant; with it none gets in without one. */
  tenantClaim: claim.optional(),
  /** With it no user gets in without a scope. */
  scopesClaim: claim.optional(),
  roleClaim: claim.optional(),
  /** Default: the names of the roles themselves. */
  roles: z.record(z.string().max(500), role).default({ user: 'user', operator: 'operator', admin: 'admin' }),
  /** Without it, who has none of the roles does not get in. */
  defaultRole: role.optional(),
  clockToleranceSeconds: z.int().min(0).max(300).default(30),
});

const oidc = z.strictObject({
  clientId: z.string().min(1).max(500),
  /** The environment variable that has it; absent: a public client. */
  clientSecretEnv: variable.optional(),
  /** Default: `/auth/callback` under the host name in the browser's request. */
  redirectUri: address.optional(),
  scope: z.string().min(1).max(500).default('openid'),
});

/** Sign-outs are written down for so long. */
const MAX_SESSION_HOURS = 480;

const session = z.strictObject({
  hours: z.number().positive().max(MAX_SESSION_HOURS, `at most ${MAX_SESSION_HOURS}, which are 20 days`).default(12),
});

const authFile = z
  .strictObject({
    tokens: z.array(tokenRow).max(10_000).default([]),
    jwt: jwt.optional(),
    oidc: oidc.optional(),
    session: session.prefault({}),
  })
  .superRefine((all, context) => {
    const issue = (path: (string | number)[], message: string): void => context.addIssue({ code: 'custom', path, message });
    const names = new Set<string>();
    all.tokens.forEach(({ name, role: given, scopes }, at) => {
      if (scopes !== undefined && given !== 'user') issue(['tokens', at, 'scopes'], `limits a user, and ${name} is an ${given}`);
      if (names.has(name)) issue(['tokens', at, 'name'], `another token is called ${name}`);
      names.add(name);
    });
    if (all.oidc !== undefined && all.jwt === undefined) issue(['oidc'], 'needs "jwt" beside it, which says who the issuer is');
    if (all.jwt?.roleClaim === undefined && all.jwt !== undefined && all.jwt.defaultRole === undefined) {
      issue(['jwt', 'roleClaim'], 'without it, or "defaultRole", no user of the provider has a role');
    }
  });

/** The content of an auth file: tokens by their hashes, JWT and OpenID Connect. */
export type AuthFile = z.output<typeof authFile>;
type TokenRow = z.output<typeof tokenRow>;
export type JwtSettings = z.output<typeof jwt>;
export type OidcSettings = z.output<typeof oidc>;

/** An auth file as it is now. */
export interface AuthSource {
  /** As the file is now, looked at once a second at most; while it cannot be used, as it was before. Throws where it never could. */
  current(): Promise<AuthFile>;
}

const LOOK_MS = 1_000;
const MAX_BYTES = 8 * 1024 * 1024;

/** Throws in words: the file, the field, and what it must be. */
export async function readAuthFile(path: string): Promise<AuthFile> {
  const bytes = await readFile(path).catch((cause: NodeJS.ErrnoException) => {
    const hint = cause.code === 'ENOENT' ? '`perdura admin token create` makes it' : 'make it readable';
    throw new Error(`cannot read ${path}, which PERDURA_AUTH names: ${cause.code ?? cause.message}; ${hint}`, { cause });
  });
  if (bytes.length > MAX_BYTES) throw new Error(`${path}, which PERDURA_AUTH names, has more than ${MAX_BYTES} bytes`);
  return parseAuthFile(decodeText(bytes), path);
}

export function parseAuthFile(text: string, path: string): AuthFile {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // Without the parser's message, which quotes the content.
    throw new Error(`${path}, which PERDURA_AUTH names, is not JSON`);
  }
  const read = authFile.safeParse(value);
  if (read.success) return read.data;
  const words = read.error.issues.slice(0, 5).map(({ path: field, message }) => `${describePath(field)}${message}`);
  throw new Error(`${path}, which PERDURA_AUTH names, cannot be used: ${words.join('; ')}`);
}

/** An auth file that is read again when it changes. `log` gets each problem of the file once. */
export function watchAuthFile(path: string, log: (line: string) => void, now: () => number = Date.now): AuthSource {
  let known: AuthFile | undefined;
  let seen = '';
  let lookedAt = -Infinity;
  let looking: Promise<AuthFile> | undefined;
  const look = async (): Promise<AuthFile> => {
    lookedAt = now();
    const found = await stat(path, { bigint: true }).then(
      ({ mtimeNs, size, ino }) => `${mtimeNs} ${size} ${ino}`,
      () => 'absent',
    );
    if (known !== undefined && found === seen) return known;
    try {
      const fresh = await readAuthFile(path);
      if (known !== undefined) log(`${path} has changed and counts from now on`);
      known = fresh;
    } catch (error) {
      if (known === undefined) throw error;
      log(`${errorMessage(error)}; what it said before counts until it can be used`);
    }
    seen = found;
    return known;
  };
  return {
    current() {
      if (known !== undefined && now() - lookedAt < LOOK_MS) return Promise.resolve(known);
      looking ??= look().finally(() => (looking = undefined));
      return looking;
    },
  };
}

export function hashOf(token: string): string {
  return `sha256:${createHash('sha256').update(token).digest('hex')}`;
}

/** A short name of a token that gives nothing of it away. */
export function idOf(hash: string): string {
  return hash.slice('sha256:'.length, 'sha256:'.length + 12);
}

export function newToken(): string {
  return `pk_${randomBytes(24).toString('base64url')}`;
}

export function isExpired({ expires }: Pick<TokenRow, 'expires'>, now = Date.now()): boolean {
  return expires !== undefined && Date.parse(expires) <= now;
}

function describePath(path: readonly PropertyKey[]): string {
  const field = path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('');
  return field === '' ? '' : `${field.replace(/^\./, '')}: `;
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || (isIP(hostname) === 4 && hostname.startsWith('127.'));
}
