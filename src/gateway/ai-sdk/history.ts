/** What was said, as the UI messages with which a page begins. Pure. A turn is one answer, by the id that its stream has. */
import { partSchema } from '../../conversation/protocol/input.js';
import { isClientTool, withoutPrefix } from '../../conversation/protocol/client-tools.js';
import { isFromPerson, shownText, sourcesIn, type Entry, type JsonValue, type MediaSource } from '../../records/message.js';
import type { TurnEnd } from '../../records/turn-end.js';
import { pageIdOf } from './again.js';
import type { Metadata } from './chunks.js';
import { toOutput } from './output.js';

export type ShownPart =
  | { readonly type: 'step-start' }
  | { readonly type: 'text' | 'reasoning'; readonly text: string; readonly state: 'done' }
  | { readonly type: 'file'; readonly mediaType: string; readonly url: string }
  | {
      readonly type: `tool-${string}`;
      readonly toolCallId: string;
      readonly state: 'input-available' | 'output-available' | 'output-error';
      readonly input: JsonValue;
      readonly output?: JsonValue;
      readonly errorText?: string;
      readonly providerExecuted: boolean;
    };

export interface ShownMessage {
  readonly id: string;
  readonly role: 'user' | 'assistant';
  readonly parts: readonly ShownPart[];
  readonly metadata: Metadata;
}

export function toUiMessages(entries: readonly Entry[], ends: readonly TurnEnd[]): ShownMessage[] {
  const turns = new Map<string, Entry[]>();
  for (const entry of entries) turns.set(entry.turn, [...(turns.get(entry.turn) ?? []), entry]);
  return [...turns].flatMap(([turn, own]) => {
    const end = ends.findLast((one) => one.turn === turn);
    const metadata: Metadata = { turn, ...(end && { stopReason: end.stopReason, ...(end.error && { error: end.error }) }) };
    const said = own.filter(({ message }) => isFromPerson(message)).map((entry) => userMessage(entry));
    const parts = answerParts(own);
    return parts.length === 0 && end === undefined ? said : [...said, { id: turn, role: 'assistant' as const, parts, metadata }];
  });
}

function userMessage({ message, messageId, turn, slot }: Entry): ShownMessage {
  const text = message.role === 'user' ? partSchema(shownText(message.text)).text : '';
  const media = message.role === 'user' ? sourcesIn(message).flatMap(({ source }) => filePart(source)) : [];
  const parts: ShownPart[] = [...media, ...(text === '' ? [] : [{ type: 'text', text, state: 'done' } as const])];
  return { id: messageId === undefined ? `${turn}-${slot}` : pageIdOf(messageId), role: 'user', parts, metadata: { turn } };
}

function filePart(source: MediaSource): ShownPart[] {
  const { mediaType } = source;
  if ('ref' in source) return [];
  return [{ type: 'file', mediaType, url: 'url' in source ? source.url : `data:${mediaType};base64,${source.base64}` }];
}

function answerParts(entries: readonly Entry[]): ShownPart[] {
  return entries.flatMap(({ message }): ShownPart[] => {
    if (message.role !== 'assistant') return [];
    const parts = message.blocks.flatMap((block): ShownPart[] => {
      if (block.kind === 'text') return [{ type: 'text', text: shownText(block.text), state: 'done' }];
      if (block.kind === 'thinking') return block.text === '' ? [] : [{ type: 'reasoning', text: block.text, state: 'done' }];
      return block.kind === 'tool-call' ? [toolPart(block, entries)] : [];
    });
    return [{ type: 'step-start' }, ...parts];
  });
}

function toolPart(
  { callId, name, input }: { readonly callId: string; readonly name: string; readonly input: JsonValue },
  entries: readonly Entry[],
): ShownPart {
  const found = entries.findLast(({ message }) => message.role === 'tool' && message.callId === callId)?.message;
  const call = { type: `tool-${withoutPrefix(name)}`, toolCallId: callId, input, providerExecuted: true } as const;
  // What the page has brought is its to answer.
  if (found?.role !== 'tool') return { ...call, state: 'input-available', providerExecuted: !isClientTool(name) };
  const text = shownText(found.text);
  return found.outcome === 'ok'
    ? { ...call, state: 'output-available', output: isClientTool(name) ? toOutput(text) : text }
    : { ...call, state: 'output-error', errorText: text || found.outcome };
}
