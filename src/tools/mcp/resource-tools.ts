/** What servers have beside tools: resources and prompts, behind four built-in tools. Reading is all that the protocol lets these do. */
import { z } from 'zod';
import { defineTool } from '../define-tool.js';
import { boundText } from '../result-text.js';
import type { JsonValue } from '../../records/message.js';
import type { Examined, Tool, ToolResult } from '../tool.js';
import type { Listed } from './connection.js';
import type { ServerLink } from './link.js';
import { promptResult, resourceResult, failed, leavingFor } from './run-server-tool.js';
import { withoutHidden } from '../hidden-text.js';

export const RESOURCE_TOOL_NAMES = ['mcp_get_prompt', 'mcp_list_prompts', 'mcp_list_resources', 'mcp_read_resource'] as const;

const policy = { repeatable: true, timeoutMs: 60_000 };
const LIST_BYTES = 64 * 1024;

/** Only those that some server has a use for. */
export function resourceTools(links: readonly ServerLink[]): readonly Tool[] {
  const withResources = links.filter((link) => link.listing()?.hasResources);
  const withPrompts = links.filter((link) => link.listing()?.hasPrompts);
  return [...(withResources.length > 0 ? ofResources(withResources) : []), ...(withPrompts.length > 0 ? ofPrompts(withPrompts) : [])];
}

function ofResources(links: readonly ServerLink[]): Tool[] {
  return [
    defineTool({
      name: 'mcp_list_resources',
      description: `List what can be read from MCP servers with mcp_read_resource, and the templates of addresses. ${serversIn(links)}`,
      input: z.object({ server: z.string().max(200).optional() }),
      policy,
      run: ({ server }) => listed(links, server, ['resources', 'resourceTemplates']),
    }),
    defineTool({
      name: 'mcp_read_resource',
      description: `Read one resource of an MCP server by its URI. ${serversIn(links)}`,
      input: z.object({ server: z.string().max(200), uri: z.string().min(1).max(8_192) }),
      policy,
      examine: ({ server, uri }) => leaving(links, server, uri),
      run: ({ server, uri }, { signal }) =>
        onServer(links, server, `Reading ${uri}`, async (link) =>
          resourceResult(await link.ask('resources/read', { uri }, { signal }), link.secrets.redact),
        ),
    }),
  ];
}

function ofPrompts(links: readonly ServerLink[]): Tool[] {
  return [
    defineTool({
      name: 'mcp_list_prompts',
      description: `List the prompts that MCP servers have ready, with their arguments. ${serversIn(links)}`,
      input: z.object({ server: z.string().max(200).optional() }),
      policy,
      run: ({ server }) => listed(links, server, ['prompts']),
    }),
    defineTool({
      name: 'mcp_get_prompt',
      description: `Get a prompt of an MCP server, filled with arguments. Its text comes from that server, not from the user. ${serversIn(links)}`,
      input: z.object({
        server: z.string().max(200),
        name: z.string().min(1).max(500),
        arguments: z.record(z.string(), z.string()).optional(),
      }),
      policy,
      examine: ({ server, name, arguments: given = {} }) => leaving(links, server, { name, arguments: given }),
      run: ({ server, name, arguments: given = {} }, { signal }) =>
        onServer(links, server, `The prompt ${name}`, async (link) =>
          promptResult(await link.ask('prompts/get', { name, arguments: given }, { signal }), link.secrets.redact),
        ),
    }),
  ];
}

function leaving(links: readonly ServerLink[], name: string, input: JsonValue): Examined {
  const link = links.find(({ server }) => server.name === name);
  return link ? leavingFor(link, input) : {};
}

function serversIn(links: readonly ServerLink[]): string {
  return `Servers: ${links.map(({ server }) => server.name).join(', ')}.`;
}

async function onServer(
  links: readonly ServerLink[],
  name: string,
  what: string,
  work: (link: ServerLink) => Promise<ToolResult>,
): Promise<ToolResult> {
  const link = links.find(({ server }) => server.name === name);
  if (!link) return { ok: false, error: `There is no such MCP server here: ${JSON.stringify(name)}. ${serversIn(links)}` };
  try {
    return await work(link);
  } catch (error) {
    return failed(what, link, error);
  }
}

/** The error of a server that fails stands in its place; the others are listed. */
async function listed(links: readonly ServerLink[], name: string | undefined, kinds: readonly Listed[]): Promise<ToolResult> {
  const wanted = name === undefined ? links : links.filter(({ server }) => server.name === name);
  if (wanted.length === 0) return { ok: false, error: `There is no such MCP server here: ${JSON.stringify(name)}. ${serversIn(links)}` };
  const lists = await Promise.all(wanted.flatMap((link) => kinds.map((kind) => describeList(link, kind))));
  return { ok: true, content: boundText(lists.filter((text) => text !== '').join('\n\n') || '(there are none)', LIST_BYTES) };
}

async function describeList(link: ServerLink, kind: Listed): Promise<string> {
  const { name } = link.server;
  try {
    const { items, isCut } = await link.list(kind);
    if (items.length === 0) return '';
    const lines = items.map((item) => `- ${link.secrets.redact(withoutHidden(JSON.stringify(item).slice(0, 4_000))).slice(0, 1_000)}`);
    return [`${kind} of ${name}:`, ...lines, ...(isCut ? ['(there are more)'] : [])].join('\n');
  } catch (error) {
    // Many servers with resources have no templates, and say that they do not know the question.
    if (kind === 'resourceTemplates') return '';
    const failure = failed(`Listing the ${kind} of ${name}`, link, error);
    return failure.ok ? failure.content : failure.error;
  }
}
