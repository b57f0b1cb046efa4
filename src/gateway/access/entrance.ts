/**
 * Who gets in: the one token of a gateway, the tokens and the identity provider of `PERDURA_AUTH`, and browsers that have been let in by one
 * of these.
 */
import { randomBytes, createHash, timingSafeEqual } from 'node:crypto';
import { chmod, link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import { hashOf, idOf, isExpired, type AuthFile, type AuthSource, type JwtSettings } from './auth-file.js';
import { createJwtVerifier, type JwtVerifier } from './provider.js';
import { ROLES, SCOPES_PATTERN, TENANT_PATTERN, type Principal } from './principal.js';
import { createSignIn, type SignIn } from './sign-in.js';
import type { GivenAway, SpentRecord } from './spent.js';
import { errorCode } from '../../platform/errors.js';
import { createSeal, type Seal } from '../../platform/seal.js';

/** How browsers come in. What needs the record of used codes and sign-outs throws what HTTP answers with 503, while that is away. */
export interface Browsers {
  /** For a link that is given to the person who has started the gateway; undefined where its token does not open. */
  createCode(): Promise<string | undefined>;
  /** A code opens once. Undefined: it is wrong, used or too old. */
  exchange(code: string): Promise<OpenedSession | undefined>;
  /** The principal of a cookie; undefined where it opens nothing, or no longer. */
  principalOf(cookie: string): Promise<Principal | undefined>;
  /** From now on that cookie opens nothing. */
  end(cookie: string): Promise<void>;
  /** Where people sign in, if there is an identity provider for that. */
  signIn(): Promise<SignIn | undefined>;
  /** The cookie for a user whom the identity provider has vouched for. */
  openSession(principal: Principal): Promise<OpenedSession>;
}

/** The cookie of a browser that has come in. */
export interface OpenedSession {
  readonly cookie: string;
  readonly seconds: number;
  readonly principal: Principal;
}

/** What `createEntrance` makes, for the options of a gateway. */
export interface Entrance {
  readonly authenticate: Authenticate;
  readonly browsers: Browsers;
}

/** What `createEntrance` is given. */
export interface EntranceOptions {
  /** The one token that opens, with all rights; absent: only what `auth` has opens. */
  readonly token?: string;
  readonly auth?: AuthSource;
  /** Of the installation: keys that seal cookies and codes come from the first, and what another has sealed opens too. */
  readonly secrets: readonly [string, ...string[]];
  /** Environment variables, for secrets that the file names. */
  readonly variables?: Readonly<Record<string, string | undefined>>;
  /** Codes that were used and sessions that were signed out. The same in all gateways of one installation. */
  readonly spent: SpentRecord;
  /** Given a line for people when something is wrong with the auth file or its providers. */
  readonly log?: (line: string) => void;
}

/** For as long as a person takes to open a link. */
const CODE_SECONDS = 60;
const NO_FILE: AuthFile = { tokens: [], session: { hours: 12 } };

const codeSchema = z.strictObject({ nonce: z.string(), record: z.string(), token: z.string() });
const sessionSchema = z.strictObject({
  sid: z.string(),
  record: z.string(),
  by: z.union([
    z.strictObject({ token: z.string() }),
    z.strictObject({
      issuer: z.string(),
      name: z.string(),
      role: z.enum(ROLES),
      tenant: z.string().regex(TENANT_PATTERN).optional(),
      scopes: z.array(z.string().regex(SCOPES_PATTERN)).readonly().optional(),
    }),
  ]),
});
type SessionContent = z.output<typeof sessionSchema>;

/** Who may come in: by one token, by tokens and identity providers of an auth file, and by the cookies of browsers. */
export function createEntrance({ token, auth, secrets, variables = {}, spent, log = () => undefined }: EntranceOptions): Entrance {
  const file = (): Promise<AuthFile> => auth?.current() ?? Promise.resolve(NO_FILE);
  const ownHash = token === undefined ? undefined : hashOf(token);
  const codes = createSeal(secrets, 'gateway-code');
  const sessions = createSeal(secrets, 'gateway-session');
  const findVerifier = remembered((jwt: JwtSettings) => createJwtVerifier(jwt, log));
  const findSignIn = remembered((all: AuthFile) => signInFrom(all, createSeal(secrets, 'gateway-sign-in'), variables, log));

  const byHash = async (hash: string): Promise<Principal | undefined> => {
    // Hashes are compared: the duration reveals nothing of a token.
    if (hash === ownHash) return OWNER;
    const row = findRows(await file()).get(hash);
    return row === undefined || isExpired(row) ? undefined : row.principal;
  };
  const findRows = remembered(
    ({ tokens }: AuthFile) =>
      new Map(
        tokens.map(({ hash, expires, name, role, tenant, scopes }) => [
          hash,
          { expires, principal: { name, role, ...(tenant !== undefined && { tenant }), ...(scopes !== undefined && { scopes }) } },
        ]),
      ),
  );
  const byId = async (id: string): Promise<Principal | undefined> => {
    const all = [...(ownHash === undefined ? [] : [ownHash]), ...findRows(await file()).keys()];
    const hash = all.find((one) => idOf(one) === id);
    return hash === undefined ? undefined : await byHash(hash);
  };
  const open = async (by: SessionContent['by'], principal: Principal): Promise<OpenedSession> => {
    const seconds = Math.round((await file()).session.hours * 3600);
    const content: SessionContent = { sid: randomBytes(12).toString('base64url'), record: await spent.id(), by };
    return { cookie: sessions.close(content, seconds), seconds, principal };
  };
  const readSession = (cookie: string): { readonly by: SessionContent['by']; readonly given: GivenAway } | undefined => {
    const opened = sessions.open(cookie);
    const { success, data } = sessionSchema.safeParse(opened?.content);
    if (opened === undefined || !success) return undefined;
    return { by: data.by, given: { kind: 'session', id: data.sid, record: data.record, until: opened.until } };
  };

  return {
    async authenticate(presented) {
      const { jwt } = await file();
      if (jwt !== undefined) {
        const verifier: JwtVerifier = findVerifier(jwt);
        if (verifier.looksLike(presented)) return await verifier.principalOf(presented);
      }
      return await byHash(hashOf(presented));
    },
    browsers: {
      async createCode() {
        if (ownHash === undefined) return undefined;
        const content: z.output<typeof codeSchema> = {
          nonce: randomBytes(12).toString('base64url'),
          record: await spent.id(),
          token: idOf(ownHash),
        };
        return codes.close(content, CODE_SECONDS);
      },
      async exchange(code) {
        const opened = codes.open(code);
        const { success, data } = codeSchema.safeParse(opened?.content);
        if (opened === undefined || !success) return undefined;
        const { nonce: id, record, token: by } = data;
        if (!(await spent.spend({ kind: 'code', id, record, until: opened.until }))) return undefined;
        const principal = await byId(by);
        return principal === undefined ? undefined : await open({ token: by }, principal);
      },
      async principalOf(cookie) {
        const read = readSession(cookie);
        if (read === undefined || (await spent.isSpent(read.given))) return undefined;
        const { by } = read;
        // Looked up again each time: one of a token that was revoked opens nothing.
        if ('token' in by) return await byId(by.token);
        const { jwt, oidc } = await file();
        const { issuer, ...principal } = by;
        return oidc !== undefined && jwt?.issuer === issuer ? principal : undefined;
      },
      async end(cookie) {
        const read = readSession(cookie);
        if (read !== undefined) await spent.spend(read.given);
      },
      signIn: async () => findSignIn(await file()),
      async openSession(principal) {
        const issuer = (await file()).jwt?.issuer ?? '';
        return await open({ issuer, ...principal }, principal);
      },
    },
  };
}

function signInFrom(
  { jwt, oidc }: AuthFile,
  seal: Seal,
  variables: Readonly<Record<string, string | undefined>>,
  log: (line: string) => void,
): SignIn | undefined {
  if (jwt === undefined || oidc === undefined) return undefined;
  const clientSecret = oidc.clientSecretEnv === undefined ? undefined : variables[oidc.clientSecretEnv];
  return createSignIn({ jwt, oidc, seal, log, ...(clientSecret !== undefined && { clientSecret }) });
}

/** Keeps the value made from the latest object: a file that has not changed is the same object. */
function remembered<Of extends object, Made>(make: (of: Of) => Made): (of: Of) => Made {
  let last: { readonly of: Of; readonly made: Made } | undefined;
  return (of) => {
    if (last?.of !== of) last = { of, made: make(of) };
    return last.made;
  };
}

/** The principal of a token; undefined for one that opens nothing. */
export type Authenticate = (presented: string) => Promise<Principal | undefined>;

/** A text that a client can put into a header, long enough not to be guessed. */
export const TOKEN_PATTERN = /^[\x21-\x7e]{24,512}$/;

/** The holder of a gateway's one token may do everything. */
const OWNER: Principal = { name: 'the token of this gateway', role: 'admin' };

/** Lets in who has this token, with all rights. Compared by hash, in constant time. */
export function oneToken(token: string): Authenticate {
  const expected = digest(token);
  return (presented) => Promise.resolve(timingSafeEqual(digest(presented), expected) ? OWNER : undefined);
}

/**
 * One token is enough for the machine of one person: the first start writes it to `path`, which only its owner reads. The first of two that
 * start at once wins.
 */
export async function keptToken(path: string): Promise<string> {
  const read = async (): Promise<string> => {
    const token = (await readFile(path, 'utf8')).trim();
    if (!TOKEN_PATTERN.test(token)) throw new Error(`${path} holds no token of 24 to 512 visible characters: remove it, and one is made`);
    await chmod(path, 0o600);
    return token;
  };
  await mkdir(dirname(path), { recursive: true });
  const token = `pk_${randomBytes(24).toString('base64url')}`;
  // Written whole before it has its name: another start never reads half of it.
  const temporary = `${path}.${randomBytes(6).toString('hex')}`;
  try {
    await writeFile(temporary, `${token}\n`, { mode: 0o600, flag: 'wx' });
    await link(temporary, path);
    return token;
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
    return await read();
  } finally {
    await rm(temporary, { force: true });
  }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
