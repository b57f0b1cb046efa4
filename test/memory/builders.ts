/** Conversations in a few words. */
import type {
  AssistantBlock,
  AssistantMessage,
  ConversationMessage,
  Entry,
  JsonValue,
  ToolOutcome,
  ToolResultMessage,
  UserMessage,
} from '../../src/records/message.js';
import { turnId } from '../../src/records/identity.js';

export function user(text: string): UserMessage {
  return { role: 'user', text };
}

export function answer(text: string): AssistantMessage {
  return { role: 'assistant', blocks: [{ kind: 'text', text }], model: 'scripted/one', stop: 'end' };
}

export function calls(...made: readonly (readonly [callId: string, name?: string, input?: JsonValue])[]): AssistantMessage {
  const blocks = made.map(([callId, name = 'look', input = {}]): AssistantBlock => ({ kind: 'tool-call', callId, name, input }));
  return { role: 'assistant', blocks, model: 'scripted/one', stop: 'tool-calls' };
}

export function result(
  callId: string,
  text = 'done',
  over: { name?: string; outcome?: ToolOutcome; files?: ToolResultMessage['files'] } = {},
) {
  return { role: 'tool', callId, name: 'look', outcome: 'ok', text, ...over } satisfies ToolResultMessage;
}

/** A turn's number, and what was said in it. */
export type Told = readonly [turn: number, ...messages: ConversationMessage[]];

/** Entries of these turns, in this order; slots from 1. */
export function conversation(...turns: readonly Told[]): Entry[] {
  let slot = 0;
  const seqs = new Map<number, number>();
  return turns.flatMap(([turn, ...messages]) =>
    messages.map((message): Entry => {
      slot += 1;
      const seq = (seqs.get(turn) ?? 0) + 1;
      seqs.set(turn, seq);
      return { v: 1, slot, session: 1, turn: turnId(turn), seq, ts: 1738100000 + slot, message };
    }),
  );
}

/** `count` turns of a question and its answer. */
export function chat(count: number): Entry[] {
  return conversation(...Array.from({ length: count }, (_, i) => [i + 1, user(`question ${i + 1}`), answer(`answer ${i + 1}`)] as const));
}
