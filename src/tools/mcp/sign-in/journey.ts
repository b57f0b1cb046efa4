/**
 * A person's way to a server's authorization server and back: `begin` finds out where to go, `finish` takes what comes back.
 *
 * @rule mcp/state-once: What a browser brings back counts once, within ten minutes, for the server and the scope that it was begun for.
 *   (test: test/tools/mcp/sign-in.slow.test.ts)
 */
import { randomBytes } from 'node:crypto';
import type * as Library from '@modelcontextprotocol/client' with { 'resolution-mode': 'import' };
import type { OAuthClientProvider, OAuthDiscoveryState, StoredOAuthClientInformation } from '@modelcontextprotocol/client' with {
  'resolution-mode': 'import',
};
import type { AuthFetch } from './auth-fetch.js';
import type { KeptSignIn, PendingSignIn } from './sign-in-record.js';
import { errorMessage } from '../../../platform/errors.js';
import { loadOptional, MCP_PACKAGE } from '../../../platform/optional-package.js';

export type AuthLibrary = typeof Library;

/** When a server wants a person to sign in, which most do not. */
export function loadAuth(): Promise<AuthLibrary> {
  return loadOptional([MCP_PACKAGE], () => import('@modelcontextprotocol/client'));
}

export interface JourneyOptions {
  /** Of the server, expanded. */
  readonly url: string;
  readonly kept: KeptSignIn;
  readonly fetch: AuthFetch;
  /** Where the browser comes back to. */
  readonly redirect: string;
  /** A client that a person has registered, in place of one that registers itself. */
  readonly client?: { readonly id: string; readonly secret?: string };
  /** In place of what the server asks for. */
  readonly scope?: string;
  /** Where the document that describes this client is, for authorization servers that take its address as the client's id. */
  readonly clientDocument?: string;
}

export const PENDING_SECONDS = 10 * 60;
const MAX_PENDING = 5;

/** The client as authorization servers are told of it. */
export function clientMetadata(redirect: string) {
  return {
    client_name: 'Perdura',
    redirect_uris: [redirect],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  };
}

/** `state` comes back with the browser; it holds `id`. Throws in words where the server's metadata cannot be used. */
export async function beginSignIn(
  { url, kept, fetch, redirect, client, scope, clientDocument }: JourneyOptions,
  toState: (id: string) => string,
): Promise<URL> {
  const library = await loadAuth();
  const { challenge, client: registered } = await kept.read();
  const wanted = challenge?.scope ?? scope;
  const id = randomBytes(16).toString('base64url');
  let information: StoredOAuthClientInformation | undefined =
    client === undefined
      ? registered?.redirect === redirect
        ? registered.information
        : undefined
      : { client_id: client.id, ...(client.secret !== undefined && { client_secret: client.secret }) };
  let verifier: string | undefined;
  let discovery: OAuthDiscoveryState | undefined;
  let location: URL | undefined;
  const provider: OAuthClientProvider = {
    redirectUrl: redirect,
    clientMetadata: clientMetadata(redirect),
    ...(clientDocument !== undefined && { clientMetadataUrl: clientDocument }),
    state: () => toState(id),
    // It registers anew where another authorization server is named by now.
    clientInformation: ({ issuer } = { issuer: '' }) =>
      information?.issuer === undefined || information.issuer === issuer ? information : undefined,
    saveClientInformation: (given) => void (information = given),
    tokens: () => undefined,
    saveTokens: () => undefined,
    codeVerifier: () => verifier ?? '',
    saveCodeVerifier: (given) => void (verifier = given),
    saveDiscoveryState: (given) => void (discovery = given),
    redirectToAuthorization: (given) => void (location = given),
  };
  await library
    .auth(provider, {
      ...{ serverUrl: url, fetchFn: fetch },
      ...(wanted !== undefined && { scope: wanted }),
      ...(challenge?.metadata !== undefined && { resourceMetadataUrl: new URL(challenge.metadata) }),
    })
    .catch((error: unknown) => {
      throw new Error(`cannot sign in at ${new URL(url).host}: ${describeFailure(library, error)}`);
    });
  if (location === undefined || verifier === undefined || discovery === undefined || information === undefined)
    throw new Error(`cannot sign in at ${new URL(url).host}: its authorization server does not say where`);
  if (!/^https?:$/.test(location.protocol)) throw new Error(`no person is sent to ${location.protocol} addresses to sign in`);
  const requested = location.searchParams.get('scope') ?? undefined;
  const begun = { id, verifier, discovery, client: information, redirect, ...(requested && { scope: requested }) };
  const pending = { ...begun, until: Date.now() + PENDING_SECONDS * 1_000 } as PendingSignIn;
  await kept.change((record) => ({
    ...record,
    ...(client === undefined && { client: { information: pending.client, redirect } }),
    pending: [pending, ...record.pending.filter(({ until }) => until > Date.now())].slice(0, MAX_PENDING),
  }));
  return location;
}

/** (mcp/state-once) `answer`: what the browser has brought back. Throws in words where no token came of it. */
export async function finishSignIn(
  { url, kept, fetch }: Pick<JourneyOptions, 'url' | 'kept' | 'fetch'>,
  id: string,
  answer: URLSearchParams,
): Promise<void> {
  let taken: PendingSignIn | undefined;
  await kept.change((record) => {
    taken = record.pending.find((one) => one.id === id && one.until > Date.now());
    return taken && { ...record, pending: record.pending.filter((one) => one.id !== id) };
  });
  if (taken === undefined) throw new Error('this sign-in was finished already, or it began more than ten minutes ago: begin again');
  const { discovery, client, verifier, redirect, scope } = taken as PendingSignIn;
  const { host } = new URL(discovery.authorizationServerUrl);
  const code = answer.get('code');
  if (code === null) throw new Error(`${host} did not let ${new URL(url).host} be used: ${plainCode(answer.get('error'))}`);
  const library = await loadAuth();
  const iss = answer.get('iss');
  const given = await library
    .exchangeAuthorization(discovery.authorizationServerUrl, {
      metadata: discovery.authorizationServerMetadata as never,
      clientInformation: client,
      authorizationCode: code,
      ...(iss !== null && { iss }),
      codeVerifier: verifier,
      redirectUri: redirect,
      resource: discovery.resourceMetadata?.resource,
      fetchFn: fetch,
    })
    .catch((error: unknown) => {
      throw new Error(`${host} gave no token: ${describeFailure(library, error)}`);
    });
  await kept.change(({ renewing: _renewing, ...record }) => ({
    ...record,
    ...(scope && { requested: scope }),
    // Without a word of them they are those that were requested (RFC 6749, 5.1).
    token: { tokens: { ...(scope && { scope }), ...given }, client, discovery },
  }));
}

/** What a server says of its refusal is not shown: it could hold anything. */
export function describeFailure({ OAuthError }: AuthLibrary, error: unknown): string {
  return error instanceof OAuthError ? plainCode(error.code) : errorMessage(error).slice(0, 300);
}

function plainCode(code: string | null): string {
  return code !== null && /^[a-z_]{1,60}$/.test(code) ? code : 'for a reason that is not shown';
}
