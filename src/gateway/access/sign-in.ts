/**
 * Signing in at an identity provider: OAuth's code flow with PKCE, as OpenID Connect has it. What must be known when the person comes back
 * goes along sealed in a cookie that ends after ten minutes, so that any gateway can take the answer.
 */
import type { ClientAuth, Configuration } from 'openid-client' with { 'resolution-mode': 'import' };
import { z } from 'zod';
import { GatewayError } from '../core/errors.js';
import type { Seal } from '../../platform/seal.js';
import type { JwtSettings, OidcSettings } from './auth-file.js';
import type { Principal } from './principal.js';
import { discover, loadOpenidClient, principalOfClaims, describeReason, unreachable } from './provider.js';

export interface SignIn {
  /** Where the browser goes, and what it carries meanwhile. `callback`: where it comes back to; `to`: where it ends. */
  begin(callback: string, to: string): Promise<{ readonly location: string; readonly carried: string }>;
  /** Ends the sign-in with the query of the provider's answer and the carried state. Throws in the terms of HTTP. */
  finish(query: string, carried: string): Promise<{ readonly principal: Principal; readonly to: string }>;
}

interface SignInOptions {
  readonly jwt: JwtSettings;
  readonly oidc: OidcSettings;
  readonly clientSecret?: string;
  readonly seal: Seal;
  readonly log: (line: string) => void;
}

export const SIGN_IN_SECONDS = 600;
/** The provider's description may change. */
const DESCRIBED_MS = 3600_000;

const carriedSchema = z.strictObject({
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  callback: z.string(),
  to: z.string(),
});

export function createSignIn({ jwt, oidc, clientSecret, seal, log }: SignInOptions): SignIn {
  const { issuer } = jwt;
  let described: { readonly provider: Promise<Configuration>; readonly at: number } | undefined;
  const provider = async (): Promise<Configuration> => {
    if (oidc.clientSecretEnv !== undefined && clientSecret === undefined) {
      log(`signing in is not possible: ${oidc.clientSecretEnv}, which oidc.clientSecretEnv of PERDURA_AUTH names, is not set`);
      throw new GatewayError({ status: 503, type: 'not-configured', message: 'signing in is not set up here; the gateway’s log says why' });
    }
    if (described === undefined || Date.now() - described.at > DESCRIBED_MS) {
      described = { provider: describe(issuer, oidc.clientId, clientSecret), at: Date.now() };
    }
    try {
      return await described.provider;
    } catch (error) {
      described = undefined;
      log(`cannot get the description of ${issuer}: ${describeReason(error)}`);
      throw unreachable(issuer);
    }
  };
  return {
    async begin(callback, to) {
      const client = await loadOpenidClient();
      const carried = {
        state: client.randomState(),
        nonce: client.randomNonce(),
        verifier: client.randomPKCECodeVerifier(),
        callback: oidc.redirectUri ?? callback,
        to,
      };
      const location = client.buildAuthorizationUrl(await provider(), {
        redirect_uri: carried.callback,
        scope: oidc.scope,
        state: carried.state,
        nonce: carried.nonce,
        code_challenge: await client.calculatePKCECodeChallenge(carried.verifier),
        code_challenge_method: 'S256',
      });
      return { location: location.href, carried: seal.close(carried, SIGN_IN_SECONDS) };
    },
    async finish(query, carried) {
      const opened = carriedSchema.safeParse(seal.open(carried)?.content);
      if (!opened.success) throw notBegun();
      const { state, nonce, verifier, callback, to } = opened.data;
      const client = await loadOpenidClient();
      const configuration = await provider();
      try {
        const answer = await client.authorizationCodeGrant(configuration, new URL(`${callback}${query}`), {
          pkceCodeVerifier: verifier,
          expectedState: state,
          expectedNonce: nonce,
          idTokenExpected: true,
        });
        return { principal: principalOfClaims(answer.claims() ?? {}, jwt), to };
      } catch (error) {
        if (error instanceof GatewayError) throw error;
        log(`signing in at ${issuer} failed: ${describeReason(error)}`);
        if (isAway(error)) throw unreachable(issuer);
        const message = 'the identity provider has not let this person in, or its answer does not belong to this browser: sign in again';
        throw new GatewayError({ status: 403, type: 'forbidden', message });
      }
    },
  };
}

export function notBegun(): GatewayError {
  const message = 'no signing in has begun in this browser, or ten minutes have passed: begin again at /auth/login';
  return new GatewayError({ status: 400, type: 'invalid', message });
}

async function describe(issuer: string, clientId: string, clientSecret: string | undefined): Promise<Configuration> {
  const client = await loadOpenidClient();
  const both: ClientAuth = (server, ...rest) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    const useBasic = methods.includes('client_secret_basic') || !methods.includes('client_secret_post');
    (useBasic ? client.ClientSecretBasic(clientSecret) : client.ClientSecretPost(clientSecret))(server, ...rest);
  };
  const found = await discover(client, issuer, clientId, clientSecret === undefined ? client.None() : both);
  // The token comes over TLS from the provider; its signature is checked all the same.
  client.enableNonRepudiationChecks(found);
  return found;
}

function isAway(error: unknown): boolean {
  const { code, name } = error as { readonly code?: unknown; readonly name?: unknown };
  return error instanceof TypeError || name === 'TimeoutError' || code === 'OAUTH_TIMEOUT' || code === 'OAUTH_RESPONSE_IS_NOT_CONFORM';
}
