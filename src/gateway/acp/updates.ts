/** The changes of a turn as the session updates of the Agent Client Protocol. */
import type { SessionUpdate, StopReason as PromptStop, ToolKind } from '@agentclientprotocol/sdk' with { 'resolution-mode': 'import' };
import type { TurnResult } from '../../conversation/protocol/contract.js';
import { withoutPrefix } from '../../conversation/protocol/message.js';
import { isBodyRef, shownText, type Entry } from '../../records/message.js';
import { shortfall } from '../core/answer.js';
import type { Change } from '../core/turn-stream.js';

const UPDATE_OF = { text: 'agent_message_chunk', thinking: 'agent_thought_chunk' } as const;

/** The client only appends: void text stays on its screen, in a separate message that this text ends. */
export const BEGINS_ANEW = '\n\n[the answer begins anew]';

export interface Updates {
  take(change: Change): readonly SessionUpdate[];
}

/** `turn` names the messages: one for each attempt at a call. */
export function createUpdates(turn: string): Updates {
  let message = 1;
  const chunk = (of: 'text' | 'thinking', text: string): SessionUpdate => ({
    sessionUpdate: UPDATE_OF[of],
    content: { type: 'text', text },
    messageId: `${turn}.${message}`,
  });
  return {
    take(change) {
      switch (change.kind) {
        case 'grow':
          return [chunk(change.of, change.text)];
        case 'call':
          message += 1;
          return [];
        case 'void': {
          const anew = change.text === '' ? [] : [chunk('text', BEGINS_ANEW)];
          message += 1;
          return anew;
        }
        case 'tool-started':
          return [
            {
              sessionUpdate: 'tool_call',
              toolCallId: change.callId,
              title: change.name,
              kind: toolKind(change.name),
              status: 'in_progress',
              rawInput: parsed(change.input),
            },
          ];
        case 'tool-finished':
          return [finishedCall(change.callId, change.outcome, change.preview)];
        case 'begin':
        case 'end':
        case 'settle':
        case 'tool-called':
        case 'asked':
        case 'decided':
        case 'waiting':
        case 'paused':
        case 'fallback':
        case 'finished':
          return [];
      }
    },
  };
}

/** The earlier messages, for a client that loads the session. */
export function toReplay({ message, slot }: Entry): readonly SessionUpdate[] {
  const messageId = `entry.${slot}`;
  switch (message.role) {
    case 'user':
      return [{ sessionUpdate: 'user_message_chunk', content: { type: 'text', text: shownText(message.text) }, messageId }];
    case 'tool':
      return [finishedCall(message.callId, message.outcome, shownText(message.text))];
    case 'assistant':
      return message.blocks.flatMap((block): SessionUpdate[] => {
        if (block.kind === 'text') {
          return [{ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: shownText(block.text) }, messageId }];
        }
        if (block.kind !== 'tool-call') return [];
        const rawInput = isBodyRef(block.input) ? block.input.preview : block.input;
        return [
          {
            sessionUpdate: 'tool_call',
            toolCallId: block.callId,
            title: block.name,
            kind: toolKind(block.name),
            status: 'pending',
            rawInput,
          },
        ];
      });
  }
}

function finishedCall(toolCallId: string, outcome: string, text: string): SessionUpdate {
  return {
    sessionUpdate: 'tool_call_update',
    toolCallId,
    status: outcome === 'ok' ? 'completed' : 'failed',
    content: [{ type: 'content', content: { type: 'text', text } }],
  };
}

/** Undefined where the turn failed: that is an error of the request. */
export function toPromptStop(result: Pick<TurnResult, 'stopReason' | 'error'>): PromptStop | undefined {
  if (result.stopReason === 'end' && shortfall(result) === 'length') return 'max_tokens';
  switch (result.stopReason) {
    case 'end':
    case 'continues':
    case 'queued':
    case 'reset':
      return 'end_turn';
    case 'interrupted':
    case 'withdrawn':
      return 'cancelled';
    case 'tool-limit':
      return 'max_turn_requests';
    case 'budget':
      return 'max_tokens';
    case 'refused':
      return 'refusal';
    case 'failed':
      return undefined;
  }
}

/** The feed has the beginning of a long input. */
function parsed(input: string): unknown {
  try {
    return JSON.parse(input) as unknown;
  } catch {
    return input;
  }
}

// What a tool does, in the protocol's words: editors choose an icon by it, and some of them what they show.

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
  const words = (withoutPrefix(name).split('__').at(-1) ?? '')
    .replace(/([a-z])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split(/[^a-z]+/);
  const kinds = words.flatMap((word) => KIND_OF.get(word) ?? []);
  return kinds[0] ?? 'other';
}
