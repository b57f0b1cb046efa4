/**
 * MCP over Streamable HTTP, without sessions: each request gets a new server, so that any gateway answers it. The server sends nothing that
 * no client requested, so there is no stream to listen to (GET answers 405, as the protocol allows).
 */
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js' with { 'resolution-mode': 'import' };
import { packageVersion, loadOptional, MCP_SERVER_PACKAGE } from '../../platform/optional-package.js';
import type { GatewayApp, GatewayContext } from '../context.js';
import { createMcpServer } from './server.js';

const MAX_BATCH = 20;
const PARSE_ERROR = -32_700;
const INVALID_REQUEST = -32_600;
const SERVER_ERROR = -32_000;

export function addMcpRoutes(app: GatewayApp): void {
  app.post('/mcp', async (context) => {
    const body = await readJson(context);
    if (body === undefined) return refuse(context, 400, PARSE_ERROR, 'the request is no JSON');
    if (Array.isArray(body) && body.length > MAX_BATCH) {
      return refuse(context, 400, INVALID_REQUEST, `a batch may have ${MAX_BATCH} messages`);
    }
    const { WebStandardStreamableHTTPServerTransport: HttpTransport } = await loadOptional(
      [MCP_SERVER_PACKAGE],
      () => import('@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'),
    );
    const transport = new HttpTransport({});
    const server = await createMcpServer(context.get('conversations').client, packageVersion(), context.get('principal'));
    const watch = context.get('admission').watch();
    const close = (): void => {
      watch.stop();
      void server.close().catch(() => undefined);
    };
    watch.signal.addEventListener('abort', close, { once: true });
    await server.connect(transport as Transport);
    const response = await transport.handleRequest(context.req.raw, { parsedBody: body });
    const { body: answer, status } = response;
    // Of the library's answer, beside the headers that every answer has.
    const answerWith = (stream: ReadableStream<Uint8Array> | null): Response =>
      context.newResponse(stream, status as 200, Object.fromEntries(response.headers));
    if (answer === null) {
      close();
      return answerWith(null);
    }
    context.get('closing').addEventListener('abort', close, { once: true });
    return answerWith(
      whenRead(answer, () => {
        context.get('closing').removeEventListener('abort', close);
        close();
      }),
    );
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
