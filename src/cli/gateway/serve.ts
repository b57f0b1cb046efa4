/** `perdura serve`: conversations over HTTP until Ctrl+C. */
import { join } from 'node:path';
import { agentNames } from '../../agents/agents-folder.js';
import { keptToken, oneToken } from '../../gateway/access/tokens.js';
import { packageVersion } from '../../platform/version.js';
import type { CliContext } from '../session/context.js';
import { withClient } from '../session/with-client.js';
import { hasWorker, openNamespace } from '../services/temporal-connection.js';
import { onTermination } from '../terminal/interrupts.js';
import { CliError, EXIT, messageOf } from '../terminal/exit.js';
import { toTerminalJson } from '../terminal/terminal-text.js';

export interface ServeWanted {
  readonly host: string;
  readonly port: number;
  readonly allowHost: readonly string[];
  readonly allowOrigin: readonly string[];
  readonly basePath?: string;
  readonly requestsPerMinute: number;
  readonly accessLog?: boolean;
}

export function serveGatewayCommand(context: CliContext, wanted: ServeWanted): Promise<number> {
  return withClient(context, { needsWorker: true }, async ({ client, config, temporal, output, globals, signal }) => {
    const { serveGateway } = await import('../../gateway/serve.js');
    const tokenFile = join(config.cwd, '.perdura', 'token');
    const token = config.gatewayToken ?? (await keptToken(tokenFile));
    const probe = await openNamespace(temporal);
    const served = await serveGateway({
      client,
      host: wanted.host,
      port: wanted.port,
      hosts: wanted.allowHost,
      origins: wanted.allowOrigin,
      requestsPerMinute: wanted.requestsPerMinute,
      ...(wanted.basePath !== undefined && { basePath: wanted.basePath }),
      authenticate: oneToken(token),
      agents: (tenant) => agentNames(config, tenant),
      tenantKey: config.tenantKey ?? (await keptToken(join(config.cwd, '.perdura', 'tenant-key'))),
      version: packageVersion(),
      log: (line) => output.problem(line),
      ...(wanted.accessLog && { accessLog: (line) => output.note(line) }),
      checks: {
        temporal: () => client.list({ limit: 1 }),
        store: () => client.scope('default').text(),
        worker: async () => {
          if (!(await hasWorker(probe, temporal.namespace, config.taskQueue))) throw new Error('no worker');
        },
      },
    }).catch((error: unknown) => {
      throw new CliError(`cannot listen on ${wanted.host}:${wanted.port}: ${messageOf(error)}; --port names another`, EXIT.usage);
    });
    let stopListening = (): void => undefined;
    try {
      const where = config.gatewayToken === undefined ? tokenFile : 'PERDURA_GATEWAY_TOKEN';
      if (globals.output === 'json') output.line(toTerminalJson({ url: served.url, token: where }));
      else
        output.say(
          `serving ${served.url}\ntoken   ${config.gatewayToken === undefined ? token : '(PERDURA_GATEWAY_TOKEN)'}\n        kept in ${where}`,
        );
      await new Promise<void>((resolve) => {
        stopListening = onTermination(() => resolve());
        signal.addEventListener('abort', () => resolve(), { once: true });
      });
      return EXIT.ok;
    } finally {
      stopListening();
      await served.close();
      await probe.close();
    }
  });
}
