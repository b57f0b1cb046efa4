/** What MCP clients read by an address: what was said in a conversation, and what a scope remembers. */
import type { JSONRPCMessage, McpServer } from '@modelcontextprotocol/server' with { 'resolution-mode': 'import' };
import type { PerduraClient } from '../../client.js';
import { ClientError } from '../../client/errors.js';
import { isBodyRef, shownText, type Entry } from '../../records/message.js';

const LISTED = 50;
const CONVERSATION = /^conversation:\/\/([^/]+)$/;
const MEMORY = /^memory:\/\/([^/]+)\/MEMORY\.md$/;
const mimeType = 'text/markdown';

export async function addResources(server: McpServer, client: PerduraClient, seesMemory: boolean): Promise<void> {
  const { ResourceNotFoundError, ResourceTemplate } = await import('@modelcontextprotocol/server');
  const read = async (uri: string) => {
    const text = await readText(client, uri, seesMemory).catch((error: unknown) => {
      if (error instanceof ClientError && (error.kind === 'not-found' || error.kind === 'invalid')) return undefined;
      throw error;
    });
    if (text === undefined) throw new ResourceNotFoundError(uri);
    return { contents: [{ uri, mimeType, text }] };
  };
  const list = async () => {
    const all = await client.list({ limit: LISTED });
    return {
      resources: all.map(({ id, title, agent }) => ({
        uri: `conversation://${id}`,
        name: title ?? id,
        description: `with agent ${agent}`,
      })),
    };
  };
  const add = (name: string, template: string, description: string, listed?: typeof list): void => {
    server.registerResource(name, new ResourceTemplate(template, { list: listed }), { description, mimeType }, (uri) => read(uri.href));
  };
  if (seesMemory) add('memory', 'memory://{scope}/MEMORY.md', 'What is remembered in a scope');
  add('conversation', 'conversation://{id}', 'What was said in a conversation', list);
  // The library would take an address apart first, and has another answer where that fails.
  server.server.setRequestHandler('resources/read', ({ params }) => read(params.uri));
}

/** Undefined where the address is of nothing here. */
async function readText(client: PerduraClient, uri: string, seesMemory: boolean): Promise<string | undefined> {
  const [, id] = CONVERSATION.exec(uri) ?? [];
  if (id !== undefined) return renderTranscript(await client.history(id));
  const [, scope] = MEMORY.exec(uri) ?? [];
  return scope === undefined || !seesMemory ? undefined : (await client.scope(scope).text()).text;
}

/** Of a resource that there is not: 2026-07-28 has it among wrong arguments, and so has the library for every revision. */
const RESOURCE_NOT_FOUND = -32_002;
const INVALID_PARAMS = -32_602;

/** For clients of the revisions before. */
export function answerOldCode(server: McpServer): void {
  const connect = server.connect.bind(server);
  server.connect = (transport) => {
    const send = transport.send.bind(transport);
    transport.send = (message, options) => send(inOldCode(message), options);
    return connect(transport);
  };
}

function inOldCode(message: JSONRPCMessage): JSONRPCMessage {
  if (!('error' in message) || message.error.code !== INVALID_PARAMS) return message;
  const isOfResource = (message.error.data as { readonly uri?: unknown } | undefined)?.uri !== undefined;
  return isOfResource ? { ...message, error: { ...message.error, code: RESOURCE_NOT_FOUND } } : message;
}

/** Characters of one tool result or argument; the conversation has the whole. */
const MAX_LENGTH = 4_000;

export function renderTranscript(entries: readonly Entry[]): string {
  const parts: string[] = [];
  for (const [at, entry] of entries.entries()) {
    if (entry.turn !== entries[at - 1]?.turn) parts.push(`## ${entry.turn} · ${new Date(entry.ts * 1000).toISOString()}`);
    parts.push(...renderParts(entry));
  }
  return parts.join('\n\n');
}

function renderParts({ message }: Entry): string[] {
  switch (message.role) {
    case 'user':
      return [`**user**\n\n${shownText(message.text)}`];
    case 'tool':
      return [`**result of ${message.name}**, ${message.outcome}\n\n${beginning(shownText(message.text))}`];
    case 'assistant':
      return message.blocks.flatMap((block) => {
        if (block.kind === 'text') return [`**assistant**\n\n${shownText(block.text)}`];
        if (block.kind !== 'tool-call') return [];
        return [`**calls ${block.name}** ${beginning(isBodyRef(block.input) ? block.input.preview : JSON.stringify(block.input))}`];
      });
  }
}

function beginning(text: string): string {
  return text.length <= MAX_LENGTH ? text : `${text.slice(0, MAX_LENGTH).toWellFormed()}\n[${text.length - MAX_LENGTH} more characters]`;
}
