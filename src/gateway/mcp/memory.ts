/** Long-term memory of a scope: MEMORY.md as a tool and as a resource, and a search in what is known. */
import { z } from 'zod';
import type { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js' with { 'resolution-mode': 'import' };
import type { PerduraClient } from '../../client.js';
import { MAX_MATCHES, MAX_QUERY, searchHistory } from '../../memory/documents/search-history.js';
import { json, scope } from './tool-shapes.js';

const URI = /^memory:\/\/([^/]+)\/MEMORY\.md$/;

export function addMemory(server: McpServer, client: PerduraClient, template: ResourceTemplate): void {
  const annotations = { readOnlyHint: true };
  server.registerTool(
    'read_memory',
    { description: 'What is remembered in a scope: its MEMORY.md.', inputSchema: { scope }, annotations },
    async ({ scope: of }) => ({ content: [{ type: 'text', text: (await client.scope(of).text()).text }] }),
  );
  server.registerTool(
    'search_memory',
    {
      description: 'Look for words in the HISTORY of a scope: what was done and when, newest first. All words must be there.',
      inputSchema: {
        scope,
        query: z.string().min(1).max(MAX_QUERY).describe('words, and "what stands in quotation marks" as it stands there'),
        limit: z.int().min(1).max(MAX_MATCHES).default(10),
      },
      annotations,
    },
    async ({ scope: of, query, limit }, { signal }) =>
      json(await searchHistory(await client.scope(of).history(), { query, limit, signal })),
  );
  server.registerResource('memory', template, { description: 'What is remembered in a scope', mimeType: 'text/markdown' }, async (uri) => {
    const { text } = await client.scope(URI.exec(uri.href)?.[1] ?? '').text();
    return { contents: [{ uri: uri.href, mimeType: 'text/markdown', text }] };
  });
}
