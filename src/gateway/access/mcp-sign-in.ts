/**
 * Where a person goes to sign in at an MCP server, and comes back to. No token of the gateway opens these: the link is sealed,
 * and so is what comes back.
 */
import type { PerduraClient } from '../../client.js';
import type { GatewayApp, GatewayContext } from '../context.js';
import { GatewayError } from '../core/errors.js';
import { toNetwork } from './proxies.js';
import type { Limiter } from './limits.js';
import { errorMessage } from '../../platform/errors.js';
import { isRecord } from '../../platform/json.js';

/** Whose server it is, in words for a page. */
export interface SignInVisit {
  readonly server: string;
  readonly host: string;
  readonly owner: string;
  readonly conversation?: string | undefined;
}

/** Signing in at MCP servers by a browser: undefined for what was not made here, or has ended. What goes wrong is thrown in words. */
export interface McpSignIn {
  /** `ticket`: of the link. `location`: where the person goes on to. */
  begin(ticket: string): Promise<(SignInVisit & { readonly location: URL }) | undefined>;
  /** What the browser has brought back. */
  finish(answer: URLSearchParams): Promise<SignInVisit | undefined>;
  /** What authorization servers read of this client. */
  readonly document: object;
}

export const MCP_SIGN_IN_PATHS = ['/oauth/mcp/begin', '/oauth/mcp/callback', '/oauth/mcp/client.json'] as const;
const [BEGIN, CALLBACK, CLIENT] = MCP_SIGN_IN_PATHS;

/** As a model calls it (tools/mcp/run-server-tool.ts). */
const TOOL = 'mcp_sign_in';

interface McpSignInOptions {
  readonly signIn: McpSignIn;
  readonly client: Pick<PerduraClient, 'approvals' | 'decide'>;
  readonly wrong: Limiter;
  readonly log: (line: string) => void;
}

export function addMcpSignInRoutes(app: GatewayApp, { signIn, client, wrong, log }: McpSignInOptions): void {
  const refuse = async (context: GatewayContext, message: string): Promise<Response> => {
    await wrong.take(toNetwork(context.get('seen').address));
    return answer(context, 400, 'Not signed in', [message]);
  };
  const orExplain = async <T>(work: Promise<T>): Promise<T> =>
    work.catch((error: unknown) => {
      throw new GatewayError({ status: 503, type: 'sign-in-failed', message: errorMessage(error) });
    });

  app.get(BEGIN, async (context) => {
    const begun = await orExplain(signIn.begin(context.req.query('for') ?? ''));
    if (begun === undefined) return refuse(context, 'This link was not made here, or is too old: ask for a new one where it was shown.');
    const { server, host, owner, location } = begun;
    const where = `The MCP server ${server} (${host}) asks you to sign in at ${location.host}, for ${owner}.`;
    return answer(context, 200, `Sign in at ${location.host}`, [where, 'Go on only if you expect this.'], location);
  });

  app.get(CALLBACK, async (context) => {
    const visited = await orExplain(signIn.finish(new URL(context.req.url).searchParams));
    if (visited === undefined)
      return refuse(context, 'No sign-in has begun that this belongs to, or ten minutes have passed: begin again.');
    const { server, host, owner, conversation } = visited;
    if (conversation !== undefined) {
      await approveWaiting(client, conversation, server).catch((error: unknown) =>
        log(`a person has signed in at the MCP server ${server}, and ${conversation} was not told: ${errorMessage(error)}`),
      );
    }
    const done = `You are signed in at the MCP server ${server} (${host}) for ${owner}. This page can be closed.`;
    return answer(context, 200, 'Signed in', [done]);
  });

  app.get(CLIENT, (context) => context.json(signIn.document));
}

/** The calls that wait for this sign-in go on. */
async function approveWaiting(client: McpSignInOptions['client'], conversation: string, server: string): Promise<void> {
  const waiting = await client.approvals(conversation);
  const ours = waiting.filter(({ tool, arguments: given }) => tool === TOOL && isRecord(given) && given['server'] === server);
  for (const { via, callId, hash } of ours) await client.decide(via, { callId, decision: 'approve', hash });
}

/** No script and no picture: names of servers come from files of agents, addresses from elsewhere. */
function answer(context: GatewayContext, status: 200 | 400, title: string, lines: readonly string[], to?: URL): Response {
  const link = to === undefined ? '' : `<p><a rel="noreferrer" href="${escaped(to.href)}">Go to ${escaped(to.host)}</a></p>`;
  const page = `<!doctype html><meta charset="utf-8"><title>${escaped(title)}</title><h1>${escaped(title)}</h1>`;
  return context.body(`${page}${lines.map((line) => `<p>${escaped(line)}</p>`).join('')}${link}`, status, {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    'referrer-policy': 'no-referrer',
    'x-frame-options': 'DENY',
  });
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
