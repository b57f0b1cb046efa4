/** Signing in by a browser that comes to the gateway: from the link of an approval, and back from the authorization server. */
import { authFetchFor } from './auth-fetch.js';
import { clientMetadata, beginSignIn, finishSignIn, PENDING_SECONDS, type JourneyOptions } from './journey.js';
import {
  closeState,
  describeOwner,
  maySignIn,
  openKept,
  openState,
  openTicket,
  PATHS,
  type HttpServer,
  type SignInFor,
  type SignInOptions,
  type Ticket,
} from './sign-ins.js';
import type { SignInSecrets } from './sign-in-record.js';
import type { McpServer } from '../server-config.js';

export interface VisitOptions extends Omit<SignInOptions, 'secrets'> {
  readonly secrets: SignInSecrets;
  /** As the agent's settings have it now, expanded; undefined where there is none of that name. */
  readonly findServer: (ticket: Ticket) => Promise<McpServer | undefined>;
  /** By which authorization servers get to know this client; default: where the gateway has it, if that is reached by https. */
  readonly clientDocument?: string;
}

export type SignInVisits = ReturnType<typeof createSignInVisits>;

/** As the gateway serves them (gateway/access/mcp-sign-in.ts). */
export function createSignInVisits(options: VisitOptions) {
  const { secrets, publicUrl, findServer } = options;
  const redirect = `${publicUrl}${PATHS.callback}`;
  const address = `${publicUrl}${PATHS.client}`;
  const clientDocument = options.clientDocument ?? (publicUrl.startsWith('https:') ? address : undefined);
  const find = async (ticket: Ticket): Promise<HttpServer> => {
    const server = await findServer(ticket);
    if (server !== undefined && maySignIn(server)) return server;
    throw new Error(`agent ${ticket.agent} has no MCP server ${ticket.server} at which people sign in any more`);
  };
  const journey = (server: HttpServer, ticket: Ticket) => ({
    ...journeyOptions(server, ticket, { ...options, redirect }),
    ...(clientDocument !== undefined && { clientDocument }),
  });
  const visited = (server: HttpServer, ticket: Ticket) => ({
    ...{ server: server.name, host: new URL(server.url).host, owner: describeOwner(server, ticket), conversation: ticket.conversation },
  });
  return {
    document: { client_id: address, ...clientMetadata(redirect) },
    /** Throws in words. Undefined for a link that was not made here, or has ended. */
    async begin(sealed: string) {
      const ticket = openTicket(secrets, sealed);
      if (ticket === undefined) return undefined;
      const server = await find(ticket);
      const location = await beginSignIn(journey(server, ticket), (id) => closeState(secrets, ticket, id, PENDING_SECONDS));
      return { ...visited(server, ticket), location };
    },
    /** The same of what comes back. */
    async finish(answer: URLSearchParams) {
      const opened = openState(secrets, answer.get('state') ?? '');
      if (opened === undefined) return undefined;
      const server = await find(opened.ticket);
      await finishSignIn(journey(server, opened.ticket), opened.id, answer);
      return visited(server, opened.ticket);
    },
  };
}

/** How to sign in at a server, as its settings have it. `redirect`: where the browser comes back to. */
export function journeyOptions(
  server: HttpServer,
  who: SignInFor,
  given: Pick<VisitOptions, 'store' | 'secrets' | 'fetchAllow' | 'lookup'> & { readonly redirect: string },
): JourneyOptions {
  const { clientId, clientSecret, scopes } = server.oauth ?? {};
  return {
    url: server.url,
    kept: openKept(server, who, given),
    fetch: authFetchFor(server, given),
    redirect: given.redirect,
    ...(clientId !== undefined && { client: { id: clientId, ...(clientSecret !== undefined && { secret: clientSecret }) } }),
    ...(scopes !== undefined && { scope: scopes.join(' ') }),
  };
}
