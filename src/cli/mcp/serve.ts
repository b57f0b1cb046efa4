/** `perdura mcp`: stdout belongs to the protocol, so whatever is said to people goes to stderr. */
import { loadOptional, MCP_PACKAGE } from '../../platform/optional-package.js';
import { packageVersion } from '../../platform/version.js';
import type { CliContext } from '../session/context.js';
import { EXIT } from '../terminal/exit.js';
import { withClient } from '../session/with-client.js';
import { errorMessage } from '../../platform/errors.js';

export function serveMcp(context: CliContext): Promise<number> {
  return withClient(
    context,
    { needsWorker: true, whenInterrupted: 'stopped serving' },
    async ({ client, output, signal, surroundings }) => {
      const { createMcpServer } = await import('../../gateway/mcp/server.js');
      const { StdioServerTransport } = await loadOptional([MCP_PACKAGE], () => import('@modelcontextprotocol/sdk/server/stdio.js')).catch(
        (cause: unknown) => {
          throw new Error(`cannot serve MCP: ${errorMessage(cause)}`, { cause });
        },
      );
      const server = await createMcpServer(client, packageVersion());
      const { input, stdout } = surroundings;
      const ended = new Promise<void>((resolve) => {
        input.once('end', resolve);
        input.once('close', resolve);
        signal.addEventListener('abort', () => resolve(), { once: true });
      });
      await server.connect(new StdioServerTransport(input, stdout));
      output.note('serving MCP over stdin and stdout');
      await ended;
      await server.close();
      return EXIT.ok;
    },
  );
}
