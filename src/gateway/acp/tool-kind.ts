/** What a tool does, in the protocol's words: editors choose an icon by it, and some of them what they show. */
import type { ToolKind } from '@agentclientprotocol/sdk' with { 'resolution-mode': 'import' };
import { withoutPrefix } from '../../conversation/protocol/message.js';

const BUILTIN: Readonly<Record<string, ToolKind>> = {
  ...{ read_file: 'read', read_episode: 'read', open_memory: 'read', retrieve_from_memory: 'read' },
  ...{ mcp_read_resource: 'read', mcp_get_prompt: 'read', mcp_list_resources: 'search', mcp_list_prompts: 'search' },
  ...{ list_files: 'search', search_files: 'search', search_memory: 'search', search_history: 'search', query_memory: 'search' },
  ...{ write_file: 'edit', edit_file: 'edit', run_command: 'execute', fetch_url: 'fetch' },
  ...{ delegate: 'think', set_task: 'think', compact_context: 'think', store_in_memory: 'think' },
  ...{ get_time: 'other', ask_user: 'other', wait_until: 'other' },
};

/** Of tools that others have named, by the first word that says what it does. */
const WORDS: readonly (readonly [ToolKind, readonly string[]])[] = [
  ['delete', ['delete', 'remove', 'rm', 'drop', 'destroy', 'unlink', 'purge', 'erase']],
  ['move', ['move', 'mv', 'rename']],
  ['search', ['search', 'find', 'grep', 'glob', 'query', 'list', 'ls', 'lookup', 'tree', 'scan', 'browse']],
  ['read', ['read', 'get', 'view', 'cat', 'open', 'show', 'describe', 'inspect', 'stat', 'load', 'head', 'tail', 'screenshot', 'snapshot']],
  ['edit', ['write', 'edit', 'create', 'update', 'patch', 'replace', 'insert', 'append', 'add', 'set', 'put', 'save', 'apply', 'modify']],
  ['execute', ['run', 'exec', 'execute', 'bash', 'shell', 'sh', 'terminal', 'command', 'eval', 'start', 'click', 'type', 'press']],
  ['fetch', ['fetch', 'http', 'download', 'navigate', 'crawl', 'scrape', 'curl', 'request']],
  ['think', ['think', 'plan', 'reason', 'reflect', 'sequentialthinking']],
];
const KIND_OF = new Map(WORDS.flatMap(([kind, words]) => words.map((word) => [word, kind] as const)));

export function toolKind(name: string): ToolKind {
  const known = Object.hasOwn(BUILTIN, name) ? BUILTIN[name] : undefined;
  if (known) return known;
  // Of `mcp__files__read_text_file` the tool, and not its server.
  const own = withoutPrefix(name).split('__').at(-1) ?? '';
  const words = own
    .replace(/([a-z])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split(/[^a-z]+/);
  const kinds = words.flatMap((word) => KIND_OF.get(word) ?? []);
  return kinds[0] ?? 'other';
}
