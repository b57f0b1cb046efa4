/** An MCP server that lets nobody in without a token, and the small authorization server that gives them, on loopback. */
import { createHash, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server as HttpServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { aTool } from './mcp.js';

/** An MCP server that wants a token, and beside it the authorization server that gives one. */
export interface GuardedServer {
  readonly url: string;
  /** The token that came with each call of a tool. */
  readonly calls: string[];
  /** Each refresh token that was shown, whether or not it was good. */
  readonly refreshed: string[];
  readonly given: string[];
  /** From now on no token that was given opens. */
  expire(): void;
  /** From now on no refresh token is taken. */
  revoke(): void;
  /** From now on a call needs this scope. */
  need(scope: string): void;
  /** From now on a sign-in gives this scope, whatever was asked for. */
  grant(scope: string): void;
  /** Authorization servers that its metadata names, in place of its own. */
  name(server: string): void;
  close(): Promise<void>;
}

export async function startGuardedServer(): Promise<GuardedServer> {
  const [{ Server }, { StreamableHTTPServerTransport }, types] = await Promise.all([
    import('@modelcontextprotocol/sdk/server/index.js'),
    import('@modelcontextprotocol/sdk/server/streamableHttp.js'),
    import('@modelcontextprotocol/sdk/types.js'),
  ]);
  const [calls, refreshed, given]: string[][] = [[], [], []];
  const codes = new Map<string, { readonly challenge: string; readonly scope: string; readonly redirect: string }>();
  const open = new Map<string, string>();
  const refreshTokens = new Map<string, string>();
  let needed = '';
  let granted: string | undefined;
  let other: string | undefined;
  let origin = '';
  const give = (scope: string): object => {
    const [access, refresh] = [`access-${randomUUID()}`, `refresh-${randomUUID()}`];
    open.set(access, scope);
    refreshTokens.set(refresh, scope);
    given?.push(access, refresh);
    return { access_token: access, token_type: 'Bearer', expires_in: 60, refresh_token: refresh, scope };
  };
  const token = (form: URLSearchParams): object | undefined => {
    if (form.get('grant_type') === 'refresh_token') {
      const shown = form.get('refresh_token') ?? '';
      refreshed?.push(shown);
      const scope = refreshTokens.get(shown);
      // Good once.
      refreshTokens.delete(shown);
      return scope === undefined ? undefined : give(scope);
    }
    const code = codes.get(form.get('code') ?? '');
    codes.delete(form.get('code') ?? '');
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url');
    return code?.challenge === challenge && code.redirect === form.get('redirect_uri') ? give(granted ?? code.scope) : undefined;
  };
  const json = (response: ServerResponse, status: number, body: object): void =>
    void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = new URL(request.url ?? '/', origin);
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const body = Buffer.concat(parts).toString();
    if (url.pathname === '/.well-known/oauth-protected-resource/mcp')
      return json(response, 200, { resource: `${origin}/mcp`, authorization_servers: [other ?? origin] });
    if (url.pathname === '/.well-known/oauth-authorization-server')
      return json(response, 200, {
        ...{ issuer: origin, authorization_endpoint: `${origin}/authorize`, token_endpoint: `${origin}/token` },
        ...{ registration_endpoint: `${origin}/register`, response_types_supported: ['code'], code_challenge_methods_supported: ['S256'] },
        token_endpoint_auth_methods_supported: ['none'],
      });
    if (url.pathname === '/register') return json(response, 201, { ...(JSON.parse(body) as object), client_id: randomUUID() });
    if (url.pathname === '/token') {
      const answer = token(new URLSearchParams(body));
      return json(response, answer ? 200 : 400, answer ?? { error: 'invalid_grant', error_description: `canary ${body}` });
    }
    if (url.pathname === '/authorize') {
      const code = randomUUID();
      const redirect = url.searchParams.get('redirect_uri') ?? '';
      codes.set(code, { challenge: url.searchParams.get('code_challenge') ?? '', scope: url.searchParams.get('scope') ?? '', redirect });
      const back = new URL(redirect);
      back.search = new URLSearchParams({ code, state: url.searchParams.get('state') ?? '' }).toString();
      return void response.writeHead(302, { location: back.href }).end();
    }
    if (url.pathname !== '/mcp') return void response.writeHead(404).end();
    const shown = request.headers.authorization?.replace('Bearer ', '') ?? '';
    const scope = open.get(shown);
    const metadata = `resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp"`;
    if (scope === undefined) return void response.writeHead(401, { 'www-authenticate': `Bearer ${metadata}, scope="read"` }).end();
    const message = (body === '' ? {} : JSON.parse(body)) as { readonly method?: string };
    if (message.method === 'tools/call' && !needed.split(' ').every((one) => one === '' || scope.split(' ').includes(one)))
      return void response
        .writeHead(403, { 'www-authenticate': `Bearer error="insufficient_scope", scope="${needed}", ${metadata}` })
        .end();
    const server = new Server({ name: 'guarded', version: '1' }, { capabilities: { tools: {} } });
    server.setRequestHandler(types.ListToolsRequestSchema, () => ({ tools: [aTool('look') as never] }));
    server.setRequestHandler(types.CallToolRequestSchema, () => {
      calls?.push(shown);
      // A hostile server says what it was shown.
      return { content: [{ type: 'text', text: `looked with ${shown}` }] };
    });
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined, enableJsonResponse: true });
    await server.connect(transport as Parameters<typeof server.connect>[0]);
    await transport.handleRequest(request, response, body === '' ? undefined : message);
  };
  const http: HttpServer = createServer((request, response) => {
    if (request.method !== 'POST' && request.url === '/mcp') return void response.writeHead(405).end();
    serve(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  return {
    ...{ url: `${origin}/mcp`, calls: calls ?? [], refreshed: refreshed ?? [], given: given ?? [] },
    expire: () => open.clear(),
    revoke: () => refreshTokens.clear(),
    need: (scope) => (needed = scope),
    grant: (scope) => (granted = scope),
    name: (server) => (other = server),
    async close() {
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    },
  };
}
