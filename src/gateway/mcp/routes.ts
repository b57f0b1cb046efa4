/**
 * MCP over Streamable HTTP, without sessions: each request gets a new server, so that any gateway answers it, of 2026-07-28 or of the revisions
 * before. The server sends nothing that no client requested, so there is no stream to listen to (GET answers 405, as the protocol allows).
 */
import { randomUUID } from 'node:crypto';
import { MCP_SERVER_PACKAGE, packageVersion, loadOptional } from '../../platform/optional-package.js';
import { createSeal } from '../../platform/seal.js';
import type { GatewayApp, GatewayContext } from '../context.js';
import { createMcpServer } from './server.js';

const MAX_BATCH = 20;
const PARSE_ERROR = -32_700;
const INVALID_REQUEST = -32_600;
const SERVER_ERROR = -32_000;

export function addMcpRoutes(app: GatewayApp, { secrets = [randomUUID()] }: { readonly secrets?: readonly [string, ...string[]] }): void {
  const seal = createSeal(secrets, 'mcp-call');
  app.post('/mcp', async (context) => {
    const body = await readJson(context);
    if (body === undefined) return refuse(context, 400, PARSE_ERROR, 'the request is no JSON');
    if (Array.isArray(body) && body.length > MAX_BATCH) {
      return refuse(context, 400, INVALID_REQUEST, `a batch may have ${MAX_BATCH} messages`);
    }
    const { createMcpHandler } = await loadOptional([MCP_SERVER_PACKAGE], () => import('@modelcontextprotocol/server'));
    const opened: { close(): Promise<void> }[] = [];
    const handler = createMcpHandler(
      async ({ era }) => {
        const { client } = context.get('conversations');
        const server = await createMcpServer({ client, version: packageVersion(), era, principal: context.get('principal'), seal });
        opened.push(server);
        return server;
      },
      // An answer that takes long begins at once: clients and proxies give a silent request up.
      { responseMode: 'sse' },
    );
    const watch = context.get('admission').watch();
    const close = (): void => {
      watch.stop();
      context.get('closing').removeEventListener('abort', close);
      for (const one of [handler, ...opened]) void one.close().catch(() => undefined);
    };
    watch.signal.addEventListener('abort', close, { once: true });
    context.get('closing').addEventListener('abort', close, { once: true });
    const response = await handler.fetch(context.req.raw, { parsedBody: body });
    const { body: answer, status } = response;
    if (answer === null) close();
    // Of the library's answer, beside the headers that every answer has.
    return context.newResponse(answer && whenRead(answer, close), status as 200, Object.fromEntries(response.headers));
  });
  app.all('/mcp', (context) => {
    context.header('allow', 'POST');
    return refuse(context, 405, SERVER_ERROR, 'there are no sessions here: POST each request');
  });
}

async function readJson(context: GatewayContext): Promise<unknown> {
  try {
    return (await context.req.json()) as unknown;
  } catch {
    return undefined;
  }
}

function refuse(context: GatewayContext, status: 400 | 405, code: number, message: string): Response {
  return context.json({ jsonrpc: '2.0', id: null, error: { code, message } }, status);
}

/** `done` once all is read, or the client is gone. */
function whenRead(body: ReadableStream<Uint8Array>, done: () => void): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  return new ReadableStream({
    async pull(controller) {
      const { value, done: isDone } = await reader.read();
      if (!isDone) return controller.enqueue(value);
      controller.close();
      done();
    },
    async cancel(reason) {
      done();
      await reader.cancel(reason);
    },
  });
}
