/** Signing in by a browser that comes to the gateway: from the link of an approval, and back from the authorization server. */
import { authFetchFor } from './auth-fetch.js';
import { clientMetadata, beginSignIn, finishSignIn, PENDING_SECONDS } from './journey.js';
import {
  closeState,
  describeOwner,
  maySignIn,
  openKept,
  openState,
  openTicket,
  PATHS,
  type HttpServer,
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

/** Whose server it is, in words for a page. */
export interface Visited {
  readonly server: string;
  /** Of the server. */
  readonly host: string;
  readonly owner: string;
  readonly conversation?: string | undefined;
}

export interface SignInVisits {
  /** Throws in words. Undefined for a link that was not made here, or has ended. */
  begin(ticket: string): Promise<(Visited & { readonly location: URL }) | undefined>;
  /** The same of what comes back. */
  finish(answer: URLSearchParams): Promise<Visited | undefined>;
  /** What authorization servers read of this client at its address. */
  readonly document: object;
}

export function createSignInVisits(options: VisitOptions): SignInVisits {
  const { secrets, publicUrl, findServer } = options;
  const redirect = `${publicUrl}${PATHS.callback}`;
  const address = `${publicUrl}${PATHS.client}`;
  const clientDocument = options.clientDocument ?? (publicUrl.startsWith('https:') ? address : undefined);
  const find = async (ticket: Ticket): Promise<HttpServer> => {
    const server = await findServer(ticket);
    if (server !== undefined && maySignIn(server)) return server;
    throw new Error(`agent ${ticket.agent} has no MCP server ${ticket.server} at which people sign in any more`);
  };
  const journey = (server: HttpServer, ticket: Ticket) => {
    const { clientId, clientSecret, scopes } = server.oauth ?? {};
    return {
      url: server.url,
      kept: openKept(server, ticket, options),
      fetch: authFetchFor(server, options),
      redirect,
      ...(clientId !== undefined && { client: { id: clientId, ...(clientSecret !== undefined && { secret: clientSecret }) } }),
      ...(scopes !== undefined && { scope: scopes.join(' ') }),
      ...(clientDocument !== undefined && { clientDocument }),
    };
  };
  const visited = (server: HttpServer, ticket: Ticket): Visited => ({
    ...{ server: server.name, host: new URL(server.url).host, owner: describeOwner(server, ticket), conversation: ticket.conversation },
  });
  return {
    document: { client_id: address, ...clientMetadata(redirect) },
    async begin(sealed) {
      const ticket = openTicket(secrets, sealed);
      if (ticket === undefined) return undefined;
      const server = await find(ticket);
      const location = await beginSignIn(journey(server, ticket), (id) => closeState(secrets, ticket, id, PENDING_SECONDS));
      return { ...visited(server, ticket), location };
    },
    async finish(answer) {
      const opened = openState(secrets, answer.get('state') ?? '');
      if (opened === undefined) return undefined;
      const server = await find(opened.ticket);
      await finishSignIn(journey(server, opened.ticket), opened.id, answer);
      return visited(server, opened.ticket);
    },
  };
}
