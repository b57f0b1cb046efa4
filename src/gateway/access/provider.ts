/** An identity provider: its keys and where it signs people in, as its description states. Its tokens become principals here. */
import type * as Jose from 'jose' with { 'resolution-mode': 'import' };
import type * as OpenidClient from 'openid-client' with { 'resolution-mode': 'import' };
import { loadOptional, OIDC_PACKAGES } from '../../platform/optional-package.js';
import { GatewayError } from '../core/errors.js';
import type { JwtSettings } from './auth-file.js';
import { ID_PATTERN } from '../../conversation/protocol/contract.js';
import { ROLES, TENANT_PATTERN, type Principal, type Role } from './principal.js';

/** Longer ones are no tokens of people: nothing of them is read. */
const MAX_JWT = 8_192;
const JWT = /^eyJ[\w-]*\.eyJ[\w-]*\.[\w-]+$/;
const MAX_SUBJECT = 255;
/** As many as a cookie holds. */
const MAX_SCOPES = 20;
const PATIENCE_MS = 5_000;
/** After a failure the provider is left alone for so long, however many tokens come. */
const REST_MS = 2_000;

export type Claims = Readonly<Record<string, unknown>>;

export interface JwtVerifier {
  looksLike(presented: string): boolean;
  /** Undefined: it opens nothing. Throws 503 where the provider cannot be reached, 403 where its user has no role or tenant here. */
  principalOf(token: string): Promise<Principal | undefined>;
}

export const loadJose = (): Promise<typeof Jose> => loadOptional(OIDC_PACKAGES, () => import('jose'));
export const loadOpenidClient = (): Promise<typeof OpenidClient> => loadOptional(OIDC_PACKAGES, () => import('openid-client'));

export function createJwtVerifier(settings: JwtSettings, log: (line: string) => void): JwtVerifier {
  const { issuer, audience, algorithms, clockToleranceSeconds } = settings;
  let keys: Promise<Jose.RemoteJWKSet> | undefined;
  const keySet = async (jose: typeof Jose): Promise<Jose.RemoteJWKSet> => {
    keys ??= findJwksUri(settings).then((uri) =>
      jose.createRemoteJWKSet(new URL(uri), { timeoutDuration: PATIENCE_MS, [jose.customFetch]: restingFetch() }),
    );
    keys.catch(() => (keys = undefined));
    return keys;
  };
  const rest = resting();
  return {
    looksLike: (presented) => presented.length <= MAX_JWT && JWT.test(presented),
    async principalOf(token) {
      const jose = await loadJose();
      // Before any key is requested: a stranger's token must not send the gateway to the provider.
      if (!isFrom(jose, token, issuer)) return undefined;
      let claims: Claims;
      try {
        const found = await rest(() => keySet(jose));
        const verified = await jose.jwtVerify(token, found, {
          issuer,
          audience,
          algorithms: [...algorithms],
          clockTolerance: clockToleranceSeconds,
          requiredClaims: ['exp', 'sub'],
        });
        claims = verified.payload;
      } catch (error) {
        if (isRefusal(jose, error)) return undefined;
        log(`cannot get the keys of ${issuer}: ${describeReason(error)}`);
        throw unreachable(issuer);
      }
      return principalOfClaims(claims, settings);
    },
  };
}

/** Throws 403 in words where the person is known and may do nothing here. */
export function principalOfClaims(claims: Claims, { roleClaim, roles, defaultRole, tenantClaim, scopesClaim }: JwtSettings): Principal {
  const { sub } = claims;
  // It is shown in logs: a name without control characters and of some length.
  if (typeof sub !== 'string' || sub === '' || sub.length > MAX_SUBJECT || /[\p{C}\p{Zl}\p{Zp}]/u.test(sub)) {
    throw refused('the provider names no subject that can be used');
  }
  const role = highest(splitWords(valueAt(claims, roleClaim)).flatMap((word) => (Object.hasOwn(roles, word) ? [roles[word]] : [])));
  const known = role ?? defaultRole;
  if (known === undefined) throw refused('this account has no role here');
  // A colon is in no name of a token.
  const name = `user:${sub}`;
  const user = { name, role: known, ...(known === 'user' && scopesClaim !== undefined && { scopes: readScopes(claims, scopesClaim) }) };
  if (tenantClaim === undefined) return user;
  const tenant = valueAt(claims, tenantClaim);
  // Never "of no tenant" instead: the account would see conversations of others.
  if (typeof tenant !== 'string' || !TENANT_PATTERN.test(tenant)) throw refused('this account belongs to no tenant here');
  return { ...user, tenant };
}

/** Names alone: a provider's `*` opens no scope of others. */
function readScopes(claims: Claims, claim: NonNullable<JwtSettings['scopesClaim']>): readonly string[] {
  const scopes = splitWords(valueAt(claims, claim)).filter((word) => ID_PATTERN.test(word));
  if (scopes.length === 0) throw refused('this account has no scope here');
  return [...new Set(scopes)].slice(0, MAX_SCOPES);
}

export function unreachable(issuer: string): GatewayError {
  const message = `the identity provider ${new URL(issuer).host} does not answer; try again`;
  return new GatewayError({ status: 503, type: 'unreachable', message, retryAfter: 5 });
}

/** The reason why a request failed, without what it sent: some errors have the token in them. */
export function describeReason(error: unknown): string {
  const { name, code, cause } = error as { name?: string; code?: string; cause?: { code?: string } };
  return [name, code, cause?.code].filter((word) => word !== undefined).join(' ');
}

async function findJwksUri({ jwksUri, issuer }: JwtSettings): Promise<string> {
  if (jwksUri !== undefined) return jwksUri;
  const client = await loadOpenidClient();
  const found = (await discover(client, issuer, 'perdura')).serverMetadata().jwks_uri;
  if (found === undefined) throw new Error('its description names no jwks_uri');
  return found;
}

/** From the description of the provider, which must be that of this issuer. */
export function discover(
  client: typeof OpenidClient,
  issuer: string,
  clientId: string,
  authentication: OpenidClient.ClientAuth = client.None(),
): Promise<OpenidClient.Configuration> {
  // The file's schema takes http: on this machine only.
  const isPlain = issuer.startsWith('http:');
  return client.discovery(new URL(issuer), clientId, undefined, authentication, {
    timeout: PATIENCE_MS / 1_000,
    execute: isPlain ? [client.allowInsecureRequests] : [],
  });
}

function isFrom(jose: typeof Jose, token: string, issuer: string): boolean {
  try {
    return jose.decodeJwt(token).iss === issuer;
  } catch {
    return false;
  }
}

/** The token is at fault, and not the way to the keys. */
function isRefusal({ errors }: typeof Jose, error: unknown): boolean {
  return (
    error instanceof errors.JWTClaimValidationFailed ||
    error instanceof errors.JWTExpired ||
    error instanceof errors.JWTInvalid ||
    error instanceof errors.JWSInvalid ||
    error instanceof errors.JWSSignatureVerificationFailed ||
    error instanceof errors.JOSEAlgNotAllowed ||
    error instanceof errors.JOSENotSupported ||
    error instanceof errors.JWKSNoMatchingKey ||
    error instanceof errors.JWKSMultipleMatchingKeys
  );
}

/** Runs a request to the provider; for a while after a failure it fails without a request. */
function resting(): <T>(ask: () => Promise<T>) => Promise<T> {
  let until = 0;
  let last: unknown;
  return async (ask) => {
    if (Date.now() < until) throw last;
    try {
      return await ask();
    } catch (error) {
      until = Date.now() + REST_MS;
      last = error;
      throw error;
    }
  };
}

function restingFetch(): Jose.FetchImplementation {
  const rest = resting();
  return (url, options) =>
    rest(async () => {
      const response = await fetch(url, options);
      if (response.status !== 200) throw new Error(`its keys: HTTP ${response.status}`);
      return response;
    });
}

function valueAt(claims: Claims, claim: JwtSettings['roleClaim']): unknown {
  if (claim === undefined) return undefined;
  let value: unknown = claims;
  for (const key of typeof claim === 'string' ? [claim] : claim) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as Claims)[key];
  }
  return value;
}

/** A list, or words separated by blanks as `scope` has them. */
function splitWords(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value, ...value.split(' ')];
  return Array.isArray(value) ? value.slice(0, 1_000).filter((one): one is string => typeof one === 'string') : [];
}

function highest(roles: readonly (Role | undefined)[]): Role | undefined {
  return [...ROLES].reverse().find((role) => roles.includes(role));
}

function refused(message: string): GatewayError {
  return new GatewayError({ status: 403, type: 'forbidden', message });
}
