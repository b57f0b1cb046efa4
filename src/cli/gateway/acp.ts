/** `perdura acp`: stdout belongs to the protocol, so what is for people goes to stderr. */
import { ACP_PACKAGE, loadOptional } from '../../platform/optional-package.js';
import { Readable, Writable } from 'node:stream';
import { createAcpAgent } from '../../gateway/acp/agent.js';
import { createConversations } from '../../gateway/core/conversations.js';
import { packageVersion } from '../../platform/version.js';
import type { CliContext } from '../session/context.js';
import { EXIT } from '../terminal/exit.js';
import { withClient } from '../session/with-client.js';
import { errorMessage } from '../../platform/errors.js';

export function serveAcp(context: CliContext, { agent }: { readonly agent?: string }): Promise<number> {
  return withClient(
    context,
    { needsWorker: true, whenInterrupted: 'stopped serving' },
    async ({ client, output, signal, surroundings }) => {
      const { ndJsonStream } = await loadOptional([ACP_PACKAGE], () => import('@agentclientprotocol/sdk')).catch((cause: unknown) => {
        throw new Error(`cannot serve ACP: ${errorMessage(cause)}`, { cause });
      });
      const log = (line: string): void => output.problem(line);
      const app = await createAcpAgent({
        conversations: createConversations(client, log),
        version: packageVersion(),
        log,
        ...(agent !== undefined && { agent }),
      });
      const input = Readable.toWeb(surroundings.input) as ReadableStream<Uint8Array>;
      const connection = app.connect(ndJsonStream(Writable.toWeb(surroundings.stdout) as WritableStream<Uint8Array>, input));
      output.note('serving the Agent Client Protocol over stdin and stdout');
      signal.addEventListener('abort', () => connection.close(), { once: true });
      await connection.closed;
      return EXIT.ok;
    },
  );
}
