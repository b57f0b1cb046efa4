/** The changes of a turn as the session updates of the Agent Client Protocol. */
import type { SessionUpdate, StopReason as PromptStop } from '@agentclientprotocol/sdk' with { 'resolution-mode': 'import' };
import type { TurnResult } from '../../conversation/protocol/contract.js';
import { isBodyRef, shownText, type Entry } from '../../records/message.js';
import { shortfall } from '../core/answer.js';
import type { Change } from '../core/turn-stream.js';
import { toolKind } from './tool-kind.js';

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
