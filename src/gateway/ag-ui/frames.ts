/**
 * A turn as AG-UI events (protocol 1.0). Pure: events in, frames out.
 *
 * A run closes everything that it opens before it ends: clients check that. Ids begin with their turn. If a client has a part of a turn and
 * gets the turn from its beginning, it loses that part first: it would add the same text to what it has.
 *
 * @rule ag-ui/text-ends-committed: A text ends once its model call has committed. A void text ends with `metadata.perdura.void`, and a
 *   snapshot of the messages removes it: a client ends with the messages that stand. (test: test/gateway/ag-ui/frames.test.ts)
 * @rule ag-ui/waiting-ends-the-run: A run ends when it waits only for a person, with an interrupt for each call; the run that answers them
 *   goes on from there. (test: test/gateway/ag-ui/frames.test.ts)
 * @rule ag-ui/client-runs-allowed-calls: A run ends when it waits for tools of the client, with a success that names their calls. The
 *   client gets a call only once it may run it, since it would run a call that a person must allow first. (test:
 *   test/gateway/ag-ui/client-tools.slow.test.ts)
 */
import type { JsonValue, Usage } from '../../records/message.js';
import { isClientTool, withoutPrefix } from '../../conversation/protocol/message.js';
import type { TurnResult } from '../../conversation/protocol/contract.js';
import type { TextPart } from '../../records/turn-view.js';
import type { WaitingCall } from '../core/interactive-turn.js';
import type { Change } from '../core/turn-stream.js';
import { toolCallsIn, resultId, type ClientMessage } from './request.js';

export const PROTOCOL = '1.0';

type Json = { readonly [name: string]: JsonValue };
type Marked = { readonly metadata?: { readonly perdura: Json } };

export interface TokenUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly totalTokens: number;
  readonly cachedInputTokens: number;
}

export interface Interrupt {
  readonly id: string;
  readonly reason: 'tool_call' | 'input_required';
  readonly message: string;
  readonly toolCallId: string;
  readonly responseSchema: Json;
  readonly expiresAt: string;
  /** For a call that the client does not have (ag-ui/client-runs-allowed-calls). */
  readonly metadata?: { readonly perdura: Json };
}

export type Outcome =
  | { readonly type: 'success' | 'cancelled' }
  | { readonly type: 'success'; readonly pendingToolCallIds: readonly string[] }
  | { readonly type: 'interrupt'; readonly interrupts: readonly Interrupt[] };

export type Frame =
  | { readonly type: 'RUN_STARTED'; readonly threadId: string; readonly runId: string; readonly protocolVersion: string }
  | { readonly type: 'MESSAGES_SNAPSHOT'; readonly messages: readonly ClientMessage[] }
  | { readonly type: 'STATE_SNAPSHOT'; readonly snapshot: Json }
  | { readonly type: 'STATE_DELTA'; readonly delta: readonly [{ readonly op: 'add'; readonly path: '/perdura'; readonly value: Json }] }
  | { readonly type: 'TEXT_MESSAGE_START'; readonly messageId: string; readonly role: 'assistant' }
  | { readonly type: 'TEXT_MESSAGE_CONTENT' | 'REASONING_MESSAGE_CONTENT'; readonly messageId: string; readonly delta: string }
  | ({ readonly type: 'TEXT_MESSAGE_END'; readonly messageId: string } & Marked)
  | { readonly type: 'REASONING_START' | 'REASONING_MESSAGE_END' | 'REASONING_END'; readonly messageId: string }
  | { readonly type: 'REASONING_MESSAGE_START'; readonly messageId: string; readonly role: 'reasoning' }
  | { readonly type: 'TOOL_CALL_START'; readonly toolCallId: string; readonly toolCallName: string; readonly parentMessageId: string }
  | { readonly type: 'TOOL_CALL_ARGS'; readonly toolCallId: string; readonly delta: string }
  | { readonly type: 'TOOL_CALL_END'; readonly toolCallId: string }
  | ({
      readonly type: 'TOOL_CALL_RESULT';
      readonly messageId: string;
      readonly toolCallId: string;
      readonly role: 'tool';
      readonly content: string;
    } & Marked)
  | { readonly type: 'CUSTOM'; readonly name: `perdura.${'waiting' | 'paused' | 'fallback'}`; readonly value: Json }
  | {
      readonly type: 'RUN_FINISHED';
      readonly threadId: string;
      readonly runId: string;
      readonly result?: Json;
      readonly outcome: Outcome;
      readonly usage?: readonly TokenUsage[];
    }
  | { readonly type: 'RUN_ERROR'; readonly message: string; readonly code: string; readonly usage?: readonly TokenUsage[] };

export interface Run {
  readonly threadId: string;
  readonly runId: string;
}

export interface FramesOptions extends Run {
  /** As Perdura has it. */
  readonly conversation: string;
  readonly turn: string | null;
  /** The messages that the client has, as it sent them. */
  readonly messages: readonly ClientMessage[];
  readonly state: unknown;
  /** The run goes on in the middle of its turn: what the client has of it stays. */
  readonly continues: boolean;
}

export interface Frames {
  start(): readonly Frame[];
  take(change: Change): readonly Frame[];
  /** Ends the run while its turn waits (ag-ui/waiting-ends-the-run). */
  pause(waiting: readonly WaitingCall[]): readonly Frame[];
}

export function createFrames({ threadId, runId, conversation, turn, messages, state, continues }: FramesOptions): Frames {
  const prefix = `${turn ?? runId}/`;
  const client = createMessages(messages, prefix, continues);
  // Calls that ran beside the waiting ones: the client has them, though they may have come after the question.
  const known = continues ? messages : [];
  const knownCalls = new Set(toolCallsIn(known).map(({ id }) => id));
  const knownResults = new Set(known.map(({ toolCallId }) => toolCallId));
  /** The message that carries the tool calls of the model call at hand. */
  let parent: string | undefined;
  /** Calls of the client's tools that the client may not run yet (ag-ui/client-runs-allowed-calls). */
  const unreleased = new Map<string, Extract<Change, { readonly kind: 'tool-called' }>>();

  /** Ends texts that are valid, or that are taken back (ag-ui/text-ends-committed). */
  const endTexts = (parts: readonly TextPart[], marked: Marked = {}): Frame[] =>
    parts.flatMap(({ kind, id }) =>
      kind === 'text' ? [{ type: 'TEXT_MESSAGE_END', messageId: `${prefix}${id}`, ...marked } as const] : [],
    );

  /** The state of the run, beside the state of the application. A state that is no object is left alone. */
  const stateFrames = (value: Json): Frame[] => {
    const perdura = { conversation, turn, ...value };
    if (state === undefined || state === null) return [{ type: 'STATE_SNAPSHOT', snapshot: { perdura } }];
    if (typeof state !== 'object' || Array.isArray(state)) return [];
    return [{ type: 'STATE_DELTA', delta: [{ op: 'add', path: '/perdura', value: perdura }] }];
  };

  const begin = (part: string, of: 'text' | 'thinking'): Frame[] => {
    const messageId = `${prefix}${part}`;
    if (of === 'thinking') {
      client.add({ id: messageId, role: 'reasoning', content: '' });
      return [
        { type: 'REASONING_START', messageId },
        { type: 'REASONING_MESSAGE_START', messageId, role: 'reasoning' },
      ];
    }
    parent = messageId;
    client.add({ id: messageId, role: 'assistant', content: '' });
    return [{ type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' }];
  };

  const called = (toolCallId: string, name: string, input: JsonValue): Frame[] => {
    const args = JSON.stringify(input);
    const toolCallName = withoutPrefix(name);
    parent ??= `${prefix}of-${toolCallId.slice(prefix.length)}`;
    if (knownCalls.has(toolCallId)) return [];
    client.addCall(parent, { id: toolCallId, name: toolCallName, arguments: args });
    return [
      { type: 'TOOL_CALL_START', toolCallId, toolCallName, parentMessageId: parent },
      { type: 'TOOL_CALL_ARGS', toolCallId, delta: args },
      { type: 'TOOL_CALL_END', toolCallId },
    ];
  };

  const release = (callId: string): Frame[] => {
    const call = unreleased.get(callId);
    unreleased.delete(callId);
    return call ? called(callId, call.name, call.input) : [];
  };

  const result = ({ callId, outcome, preview }: Extract<Change, { readonly kind: 'tool-finished' }>): Frame[] => {
    // The next call is of another model call, or begins a new message.
    const before = release(callId);
    parent = undefined;
    if (knownResults.has(callId)) return before;
    const content = preview || (outcome === 'ok' ? '' : outcome);
    const message = { id: resultId(callId), toolCallId: callId, role: 'tool', content } as const;
    client.add(message);
    const { id: messageId, ...rest } = message;
    return [...before, { type: 'TOOL_CALL_RESULT', messageId, ...rest, ...(outcome !== 'ok' && { metadata: { perdura: { outcome } } }) }];
  };

  const finish = ({ stopReason, error, usage }: TurnResult): Frame[] => {
    const counted = { usage: [toTokenUsage(usage)] };
    const before = stateFrames({ phase: 'ended', stopReason, costUsd: usage.costUsd });
    if (error !== undefined && stopReason !== 'end' && stopReason !== 'interrupted') {
      return [...before, { type: 'RUN_ERROR', message: error.message, code: error.type, ...counted }];
    }
    const outcome = { type: stopReason === 'interrupted' ? 'cancelled' : 'success' } as const;
    const summary = { turn, stopReason, ...(error && { error: { type: error.type, message: error.message } }) };
    return [...before, { type: 'RUN_FINISHED', threadId, runId, result: summary, outcome, ...counted }];
  };

  return {
    start: () => [
      { type: 'RUN_STARTED', threadId, runId, protocolVersion: PROTOCOL },
      ...(client.hasLost ? [{ type: 'MESSAGES_SNAPSHOT', messages: client.all() } as const] : []),
      ...stateFrames({ phase: 'running' }),
    ],

    take(change) {
      switch (change.kind) {
        case 'call':
          parent = undefined;
          return [];
        case 'settle':
          return endTexts(change.parts);
        case 'begin':
          return begin(change.part, change.of);
        case 'grow': {
          const messageId = `${prefix}${change.part}`;
          client.grow(messageId, change.text);
          // An empty delta is none to a client.
          if (change.text === '') return [];
          return [{ type: change.of === 'text' ? 'TEXT_MESSAGE_CONTENT' : 'REASONING_MESSAGE_CONTENT', messageId, delta: change.text }];
        }
        case 'end': {
          const messageId = `${prefix}${change.part}`;
          if (change.of === 'text') return [];
          return [
            { type: 'REASONING_MESSAGE_END', messageId },
            { type: 'REASONING_END', messageId },
          ];
        }
        case 'void': {
          client.remove(change.parts.map(({ id }) => `${prefix}${id}`));
          parent = undefined;
          return [
            ...endTexts(change.parts, { metadata: { perdura: { void: true } } }),
            { type: 'MESSAGES_SNAPSHOT', messages: client.all() },
          ];
        }
        case 'tool-called':
          if (isClientTool(change.name)) {
            unreleased.set(change.callId, change);
            return [];
          }
          return called(change.callId, change.name, change.input);
        case 'tool-finished':
          return result(change);
        case 'asked':
          return change.what === 'client-tool' ? release(change.callId) : [];
        case 'tool-started':
        case 'decided':
          return [];
        case 'waiting':
          return [{ type: 'CUSTOM', name: 'perdura.waiting', value: { for: change.for, until: change.until } }];
        case 'paused':
          return [{ type: 'CUSTOM', name: 'perdura.paused', value: { why: change.why } }];
        case 'fallback': {
          const { model, insteadOf, reason } = change;
          return [{ type: 'CUSTOM', name: 'perdura.fallback', value: { model, insteadOf, reason } }];
        }
        case 'finished':
          return finish(change.result);
      }
    },

    pause(waiting) {
      const persons = waiting.filter(({ what }) => what !== 'client-tool');
      const outcome: Outcome =
        persons.length > 0
          ? { type: 'interrupt', interrupts: persons.map((call) => toInterrupt(call, unreleased.get(call.callId)?.input)) }
          : { type: 'success', pendingToolCallIds: waiting.map(({ callId }) => callId) };
      return [...stateFrames({ phase: 'waiting' }), { type: 'RUN_FINISHED', threadId, runId, outcome }];
    },
  };
}

const REASON = { type: 'string', description: 'for the model, which reads it' };
const APPROVAL: Json = {
  type: 'object',
  properties: {
    approved: { type: 'boolean' },
    reason: REASON,
    editedArgs: { type: 'object', description: 'in place of all of the arguments' },
  },
  required: ['approved'],
};
const ANSWER: Json = { type: 'object', properties: { answer: { type: 'string' } }, required: ['answer'] };

/** `unseen`: the arguments, where the client does not have the call. */
function toInterrupt({ callId, name: wire, what, target, until }: WaitingCall, unseen: JsonValue | undefined): Interrupt {
  const isApproval = what === 'approval';
  const name = withoutPrefix(wire);
  return {
    id: callId,
    reason: isApproval ? 'tool_call' : 'input_required',
    message: isApproval ? `Allow ${name}${target === '' ? '' : `: ${target}`}?` : target,
    toolCallId: callId,
    responseSchema: isApproval ? APPROVAL : ANSWER,
    expiresAt: new Date(until).toISOString(),
    ...(unseen !== undefined && { metadata: { perdura: { tool: name, arguments: unseen } } }),
  };
}

function toTokenUsage({ inputTokens, outputTokens, cachedTokens }: Usage): TokenUsage {
  return { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens, cachedInputTokens: cachedTokens };
}

// The messages that a client has, as they must be where some of them were taken back. Pure.

interface Messages {
  /** The client has messages of this run's turn, which begins anew. */
  readonly hasLost: boolean;
  add(message: ClientMessage): void;
  addCall(parent: string, call: { readonly id: string; readonly name: string; readonly arguments: string }): void;
  grow(id: string, text: string): void;
  remove(ids: readonly string[]): void;
  all(): readonly ClientMessage[];
}

function createMessages(given: readonly ClientMessage[], prefix: string, continues: boolean): Messages {
  // An answer of the client to a call of the turn belongs to the turn too.
  const isOfTurn = ({ id, role, toolCallId }: ClientMessage): boolean =>
    !continues && (id.startsWith(prefix) || (role === 'tool' && typeof toolCallId === 'string' && toolCallId.startsWith(prefix)));
  const hasLost = given.some(isOfTurn);
  const before = given.filter((one) => !isOfTurn(one));
  // A client keeps thinking that no snapshot has: as an empty one it can be filled again.
  const emptied = given.filter((one) => isOfTurn(one) && one.role === 'reasoning').map((one) => ({ ...one, content: '' }));
  const ofTurn = new Map<string, Record<string, unknown> & ClientMessage>(emptied.map((one) => [one.id, one]));
  return {
    hasLost,
    add: (message) => void ofTurn.set(message.id, { ...message }),
    addCall(parent, { id, ...called }) {
      const message: ClientMessage = ofTurn.get(parent) ?? { id: parent, role: 'assistant' };
      const calls = (message['toolCalls'] ?? []) as readonly unknown[];
      ofTurn.set(parent, { ...message, toolCalls: [...calls, { id, type: 'function', function: called }] });
    },
    grow(id, text) {
      const message = ofTurn.get(id);
      if (message) message['content'] = `${String(message['content'])}${text}`;
    },
    remove(ids) {
      for (const id of ids) ofTurn.delete(id);
    },
    all: () => [...before.filter(({ id }) => !ofTurn.has(id)), ...ofTurn.values()].map((one) => ({ ...one })),
  };
}
