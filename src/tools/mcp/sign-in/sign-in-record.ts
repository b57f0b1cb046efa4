/**
 * What there is of one server for one scope or tenant, sealed in the store: its token, what it wants a person to allow, and sign-ins that
 * have begun.
 *
 * @rule mcp/sealed-at-rest: The store has no token, no client's secret and no verifier but sealed with a key of PERDURA_SECRET. (test:
 *   test/tools/mcp/sign-in.slow.test.ts)
 */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { createSeal } from '../../../platform/seal.js';
import type { SignInOwner, SignIns } from '../../../stores/store.js';

const tokens = z.looseObject({
  access_token: z.string(),
  token_type: z.string(),
  refresh_token: z.string().optional(),
  scope: z.string().optional(),
});
const client = z.looseObject({ client_id: z.string(), client_secret: z.string().optional(), issuer: z.string().optional() });
const discovery = z.looseObject({
  authorizationServerUrl: z.string(),
  authorizationServerMetadata: z.looseObject({}).optional(),
  resourceMetadata: z.looseObject({ resource: z.string().optional() }).optional(),
});
const record = z.object({
  /** What the server wanted last: scopes, and where its metadata is. */
  challenge: z.object({ scope: z.string().optional(), metadata: z.string().optional() }).optional(),
  token: z.object({ tokens, client, discovery }).optional(),
  /** The scopes that were requested at the last sign-in: what is refused beyond them is not requested again. */
  requested: z.string().optional(),
  /** A registration, for those sign-ins that come back to the same address. */
  client: z.object({ information: client, redirect: z.string() }).optional(),
  pending: z.array(
    z.object({
      id: z.string(),
      verifier: z.string(),
      discovery,
      client,
      redirect: z.string(),
      scope: z.string().optional(),
      until: z.number(),
    }),
  ),
  /** One worker renews at a time: the token that it sends is good once. */
  renewing: z.object({ by: z.string(), until: z.number() }).optional(),
});

export type SignInRecord = z.output<typeof record>;
export type PendingSignIn = SignInRecord['pending'][number];
export type Token = NonNullable<SignInRecord['token']>;

const NOTHING: SignInRecord = { pending: [] };
/** As long as an installation lasts: the key ends it. */
const SECONDS = 20 * 365 * 24 * 60 * 60;
const MAX_SEALED = 1024 * 1024;

export interface KeptSignIn {
  read(): Promise<SignInRecord>;
  /** Undefined leaves it as it is. */
  change(decide: (record: SignInRecord) => SignInRecord | undefined): Promise<void>;
}

export type SignInSecrets = readonly [string, ...string[]];

/** Of a server by its address: another address of the same name gets no token of this one. */
export function openKeptSignIn(store: SignIns, secrets: SignInSecrets, of: SignInOwner, url: string): KeptSignIn {
  const seal = createSeal(secrets, 'mcp-sign-in', MAX_SEALED);
  const id = createHash('sha256').update(url).digest('hex');
  const place = JSON.stringify([of.namespace, of.owner, id]);
  /** What cannot be opened was sealed with another secret: a person signs in anew. */
  const open = (sealed: string | undefined): SignInRecord => {
    const content = sealed === undefined ? undefined : (seal.open(sealed)?.content as { place?: unknown; record?: unknown } | undefined);
    return content?.place === place ? (record.safeParse(content.record).data ?? NOTHING) : NOTHING;
  };
  return {
    read: async () => open(await store.read(of, id)),
    change: (decide) =>
      store.change(of, id, (sealed) => {
        const changed = decide(open(sealed));
        return changed && seal.close({ place, record: changed }, SECONDS);
      }),
  };
}
