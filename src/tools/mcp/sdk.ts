/** What we use of the MCP library: loaded when an agent has a server, since most have none. */
import type { Client } from '@modelcontextprotocol/sdk/client/index.js' with { 'resolution-mode': 'import' };
import type { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js' with {
  'resolution-mode': 'import',
};
import type { deserializeMessage } from '@modelcontextprotocol/sdk/shared/stdio.js' with { 'resolution-mode': 'import' };

import { loadOptional, MCP_PACKAGE } from '../../platform/optional-package.js';

export type { Client } from '@modelcontextprotocol/sdk/client/index.js' with { 'resolution-mode': 'import' };
export type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js' with { 'resolution-mode': 'import' };
export type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js' with { 'resolution-mode': 'import' };

export interface Sdk {
  readonly Client: typeof Client;
  readonly StreamableHTTPClientTransport: typeof StreamableHTTPClientTransport;
  readonly deserializeMessage: typeof deserializeMessage;
}

export async function loadSdk(): Promise<Sdk> {
  const [client, http, stdio] = await loadOptional([MCP_PACKAGE], () =>
    Promise.all([
      import('@modelcontextprotocol/sdk/client/index.js'),
      import('@modelcontextprotocol/sdk/client/streamableHttp.js'),
      import('@modelcontextprotocol/sdk/shared/stdio.js'),
    ]),
  );
  return {
    Client: client.Client,
    StreamableHTTPClientTransport: http.StreamableHTTPClientTransport,
    deserializeMessage: stdio.deserializeMessage,
  };
}
