/**
 * The token of one server for one scope or tenant, as a worker uses it: put on each request, renewed in the middle of a turn, and given up
 * where a person has to sign in.
 *
 * @rule mcp/renewed-once: Of several workers one renews a token, and the others take what it has stored: a refresh token that is good once
 *   is sent once. (test: test/tools/mcp/sign-in.slow.test.ts)
 * @rule mcp/requested-scopes-end: A scope that one sign-in has requested is requested by no further one: that a server refuses in spite of
 *   it is told to the model. (test: test/tools/mcp/sign-in.slow.test.ts)
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { AuthFetch } from './auth-fetch.js';
import type { KeptSignIn, SignInRecord, Token } from './sign-in-record.js';
import { describeFailure, loadAuth, type AuthLibrary } from './journey.js';

export interface SignInSession {
  /** `fetch` for the server, with the token on it. Throws `SignInNeeded` where a person has to sign in. */
  signed(fetch: AuthFetch): AuthFetch;
  /** Whether a person has to sign in, as far as this worker has seen. */
  isNeeded(): boolean;
  /** Looks whether one has meanwhile. Never throws. */
  look(): Promise<void>;
  /** Who has to sign in where, for people and models. */
  readonly words: string;
  /** For the person; `conversation` goes on by itself afterwards. */
  ask(conversation: string | undefined): string;
}

/** The message says who has to sign in where. */
export class SignInNeeded extends Error {
  override readonly name = 'SignInNeeded';
}

/** Whatever the library has wrapped it in. */
export function findSignInNeeded(error: unknown, depth = 0): SignInNeeded | undefined {
  if (error instanceof SignInNeeded) return error;
  return error instanceof Error && depth < 5 ? findSignInNeeded(error.cause, depth + 1) : undefined;
}

export interface SessionOptions {
  readonly url: URL;
  readonly words: string;
  readonly ask: SignInSession['ask'];
  /** Absent: it only finds out that the server wants a person to sign in. */
  readonly kept?: KeptSignIn;
  readonly fetch: AuthFetch;
  /** Told of each token, so that nothing shows it. */
  readonly learn: (secrets: readonly string[]) => void;
  readonly onNeeded?: () => void;
}

/** Longer than a token server may take (auth-fetch.ts). */
const RENEWING_MS = 15_000;
const LOOK_MS = 100;

export function createSignInSession({ url, words, ask, kept, fetch: authFetch, learn, onNeeded }: SessionOptions): SignInSession {
  let needed: { readonly token: string | undefined } | undefined;

  const read = async (): Promise<SignInRecord> => {
    const record = (await kept?.read()) ?? { pending: [] };
    const { tokens, client } = record.token ?? {};
    learn([tokens?.access_token, tokens?.refresh_token, client?.client_secret].filter((one) => one !== undefined));
    return record;
  };
  const refuse = (token: string | undefined): never => {
    needed = { token };
    onNeeded?.();
    throw new SignInNeeded(words);
  };
  const signInFirst = async (library: AuthLibrary, response: Response, used: string | undefined): Promise<never> => {
    const { scope, resourceMetadataUrl } = library.extractWWWAuthenticateParams(response);
    const challenge = { ...(scope && { scope }), ...(resourceMetadataUrl && { metadata: resourceMetadataUrl.href }) };
    // Who has signed in meanwhile has not done it in vain.
    await kept?.change((record) => {
      if (record.token !== undefined && record.token.tokens.access_token !== used) return undefined;
      const { token: _, requested: _requested, ...rest } = record;
      return { ...rest, challenge };
    });
    return refuse(undefined);
  };
  const stepUp = async (library: AuthLibrary, response: Response, used: string | undefined): Promise<Response> => {
    const { error, scope, resourceMetadataUrl } = library.extractWWWAuthenticateParams(response);
    if (error !== 'insufficient_scope' || kept === undefined) return response;
    let isNew = false;
    await kept.change((record) => {
      const all = library.computeScopeUnion(record.token?.tokens.scope, record.requested, scope);
      isNew = library.isStrictScopeSuperset(all, record.requested);
      if (!isNew) return undefined;
      const metadata = resourceMetadataUrl?.href ?? record.challenge?.metadata;
      return { ...record, challenge: { ...(all && { scope: all }), ...(metadata && { metadata }) } };
    });
    return isNew ? refuse(used) : response;
  };

  return {
    words,
    ask,
    isNeeded: () => needed !== undefined,
    async look() {
      if (needed === undefined) return;
      const token = await read().then(
        (record) => record.token?.tokens.access_token,
        () => undefined,
      );
      if (token !== undefined && token !== needed.token) needed = undefined;
    },
    signed: (next) => async (address, init) => {
      // A token goes nowhere but to the server that it is for.
      if (new URL(address).origin !== url.origin) return next(address, init);
      const send = (token: string | undefined): Promise<Response> => {
        const headers = new Headers(init?.headers);
        if (token !== undefined) headers.set('authorization', `Bearer ${token}`);
        return next(address, { ...init, headers });
      };
      const record = await read();
      let used = record.token?.tokens.access_token;
      // Known to want one: it is not tried again and again.
      if (used === undefined && record.challenge !== undefined) return refuse(undefined);
      let response = await send(used);
      if (response.status !== 401 && response.status !== 403) return response;
      const library = await loadAuth();
      if (response.status === 401 && used !== undefined && kept !== undefined) {
        const renewed = await renew({ library, kept, used, authFetch });
        if (renewed !== undefined) {
          await response.body?.cancel();
          used = renewed.tokens.access_token;
          learn([used, renewed.tokens.refresh_token ?? '']);
          response = await send(used);
        }
      }
      if (response.status === 401) return await signInFirst(library, response, used);
      return response.status === 403 ? await stepUp(library, response, used) : response;
    },
  };
}

interface Renewing {
  readonly library: AuthLibrary;
  readonly kept: KeptSignIn;
  /** The token that the server has refused. */
  readonly used: string;
  readonly authFetch: AuthFetch;
}

/** (mcp/renewed-once) Undefined where a person has to sign in anew. */
async function renew({ library, kept, used, authFetch }: Renewing): Promise<Token | undefined> {
  const by = randomUUID();
  const deadline = Date.now() + 2 * RENEWING_MS;
  while (Date.now() < deadline) {
    let token: Token | undefined;
    let isOurs = false;
    await kept.change((record) => {
      token = record.token;
      isOurs = false;
      if (token?.tokens.access_token !== used || token.tokens.refresh_token === undefined) return undefined;
      if (record.renewing !== undefined && record.renewing.until > Date.now()) return undefined;
      isOurs = true;
      return { ...record, renewing: { by, until: Date.now() + RENEWING_MS } };
    });
    if (token?.tokens.access_token !== used) return token;
    if (token.tokens.refresh_token === undefined) return undefined;
    if (isOurs) return await renewOurs({ library, kept, used, authFetch }, token, by);
    await delay(LOOK_MS);
  }
  throw new Error('another worker renews the token of this server, and does not come to an end; the call can be repeated');
}

async function renewOurs({ library, kept, used, authFetch }: Renewing, token: Token, by: string): Promise<Token | undefined> {
  const end = (changed: (record: SignInRecord) => Partial<SignInRecord>): Promise<void> =>
    kept.change(({ renewing, ...record }) => {
      if (renewing?.by !== by && record.token?.tokens.access_token !== used) return undefined;
      return { ...record, ...(renewing && renewing.by !== by && { renewing }), ...changed(record) };
    });
  const { discovery, client, tokens } = token;
  try {
    const answered = await library.refreshAuthorization(discovery.authorizationServerUrl, {
      metadata: discovery.authorizationServerMetadata as never,
      clientInformation: client,
      refreshToken: tokens.refresh_token ?? '',
      resource: discovery.resourceMetadata?.resource,
      fetchFn: authFetch,
    });
    const renewed: Token = { ...token, tokens: { ...(tokens.scope && { scope: tokens.scope }), ...answered } };
    await end(() => ({ token: renewed }));
    return renewed;
  } catch (error) {
    if (isRefused(library, error)) {
      await end(() => ({ token: undefined }));
      return undefined;
    }
    await end(() => ({})).catch(() => undefined);
    // The library's words may hold what a token server has answered.
    throw new Error(
      `its token could not be renewed at ${new URL(discovery.authorizationServerUrl).host}: ${describeFailure(library, error)}`,
    );
  }
}

/** What no repetition helps: the grant has ended, or the client is known no more. */
function isRefused({ OAuthError }: AuthLibrary, error: unknown): boolean {
  return error instanceof OAuthError && ['invalid_grant', 'invalid_client', 'unauthorized_client', 'invalid_scope'].includes(error.code);
}
