/** Signing in at MCP servers over HTTP, for workers: who signs in where, and by which link. */
import { scopeParts } from '../../../records/identity.js';
import { createSeal } from '../../../platform/seal.js';
import type { SignIns as SignInStore } from '../../../stores/store.js';
import type { FetchGuard } from '../../builtin/web/guarded-fetch.js';
import type { McpServer } from '../server-config.js';
import { authFetchFor } from './auth-fetch.js';
import { openKeptSignIn, type KeptSignIn, type SignInSecrets } from './sign-in-record.js';
import { createSignInSession, type SignInSession } from './session.js';

export interface SignInOptions {
  readonly store: SignInStore;
  /** Absent: nothing can be kept, and a server that wants a person to sign in is not used. */
  readonly secrets?: SignInSecrets | undefined;
  /** By which people reach the gateway. */
  readonly publicUrl: string;
  readonly fetchAllow?: readonly string[];
  readonly lookup?: FetchGuard['lookup'];
}

/** Whose sign-in it is, and for which agent. */
export interface SignInFor {
  readonly namespace: string;
  readonly agent: string;
  /** Its whole name. */
  readonly scope: string;
}

export type HttpServer = McpServer & { readonly type: 'http' };

export interface SignIns {
  /** `server` is expanded. Without `who` it finds out no more than that the server wants a person to sign in. */
  open(server: HttpServer, who: SignInFor | undefined, told: Told): SignInSession;
}

export interface Told {
  readonly learn: (secrets: readonly string[]) => void;
  readonly onNeeded?: () => void;
}

/** What a link holds: for whom, at which server, and which conversation waits. */
export interface Ticket extends SignInFor {
  readonly server: string;
  readonly conversation?: string | undefined;
}

/** As long as an approval waits by default. */
const TICKET_SECONDS = 7 * 24 * 60 * 60;
export const PATHS = { begin: '/oauth/mcp/begin', callback: '/oauth/mcp/callback', client: '/oauth/mcp/client.json' } as const;

export function createSignIns(options: SignInOptions): SignIns {
  return {
    open(server, who, told) {
      const url = new URL(server.url);
      const fetch = authFetchFor(server, options);
      const { secrets } = options;
      if (secrets === undefined) {
        const words =
          'it wants a person to sign in, and PERDURA_SECRET is not set: tokens are only kept sealed with a key of it. ' +
          'Set it, the same for workers and gateways (`openssl rand -hex 32` prints one), and start them again';
        return createSignInSession({ url, words, ask: () => words, fetch, ...told });
      }
      const words = `a person has to sign in at ${url.host}`;
      if (who === undefined) return createSignInSession({ url, words, ask: () => words, fetch, ...told });
      const command = describeCommand(who, server.name);
      return createSignInSession({
        url,
        words: `${words} for ${describeOwner(server, who)}: ${command}`,
        ask: (conversation) => {
          const ticket = closeTicket(secrets, { ...who, server: server.name, conversation });
          return `sign in at ${url.host} for ${describeOwner(server, who)}: ${options.publicUrl}${PATHS.begin}?for=${ticket}`;
        },
        kept: openKept(server, who, { ...options, secrets }),
        fetch,
        ...told,
      });
    },
  };
}

/** A header with a key is the person's way in. */
export function maySignIn(server: McpServer): server is HttpServer {
  return server.type === 'http' && !Object.keys(server.headers).some((name) => name.toLowerCase() === 'authorization');
}

export function openKept(
  server: HttpServer,
  who: SignInFor,
  { store, secrets }: { store: SignInStore; secrets: SignInSecrets },
): KeptSignIn {
  return openKeptSignIn(store, secrets, { namespace: who.namespace, owner: ownerFor(server, who) }, server.url);
}

/** No scope is named as a tenant with a full stop is. */
function ownerFor({ oauth }: HttpServer, { scope }: SignInFor): string {
  return oauth?.per === 'tenant' ? `${scopeParts(scope).tenant ?? ''}.` : scope;
}

export function describeOwner({ oauth }: HttpServer, { scope }: SignInFor): string {
  const { tenant, scope: short } = scopeParts(scope);
  if (oauth?.per === 'tenant') return tenant === undefined ? 'all who belong to no tenant' : `the tenant ${tenant}`;
  return `the scope ${short}${tenant === undefined ? '' : ` of the tenant ${tenant}`}`;
}

function describeCommand({ agent, scope }: SignInFor, server: string): string {
  const { tenant, scope: short } = scopeParts(scope);
  const named = /^[\w.-]+$/.test(server) ? server : JSON.stringify(server);
  const more = [...(short === agent ? [] : [`--scope ${short}`]), ...(tenant === undefined ? [] : [`--tenant ${tenant}`])];
  return ['perdura mcp sign-in', agent, named, ...more].join(' ');
}

/** Short: a person reads it in an approval. */
function closeTicket(secrets: SignInSecrets, { namespace, agent, scope, server, conversation }: Ticket): string {
  return createSeal(secrets, 'mcp-sign-in').close({ t: [namespace, agent, scope, server, conversation] }, TICKET_SECONDS);
}

export function closeState(
  secrets: SignInSecrets,
  { namespace, agent, scope, server, conversation }: Ticket,
  id: string,
  seconds: number,
): string {
  return createSeal(secrets, 'mcp-sign-in').close({ s: [namespace, agent, scope, server, conversation], id }, seconds);
}

/** Undefined for what was not made here, or has ended. */
export function openTicket(secrets: SignInSecrets, sealed: string): Ticket | undefined {
  return toTicket((createSeal(secrets, 'mcp-sign-in').open(sealed)?.content as { readonly t?: unknown } | undefined)?.t);
}

export function openState(secrets: SignInSecrets, sealed: string): { readonly ticket: Ticket; readonly id: string } | undefined {
  const content = createSeal(secrets, 'mcp-sign-in').open(sealed)?.content as { readonly s?: unknown; readonly id?: unknown } | undefined;
  const ticket = toTicket(content?.s);
  return ticket && typeof content?.id === 'string' ? { ticket, id: content.id } : undefined;
}

function toTicket(content: unknown): Ticket | undefined {
  if (!Array.isArray(content)) return undefined;
  const [namespace, agent, scope, server, conversation] = content as readonly string[];
  if (namespace === undefined || agent === undefined || scope === undefined || server === undefined) return undefined;
  return { namespace, agent, scope, server, ...(typeof conversation === 'string' && { conversation }) };
}
