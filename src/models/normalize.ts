/**
 * Makes any list of messages one that a model API takes, so that no crash, interrupt or lost trace can brick a
 * conversation. A valid list comes out as it is, and what comes out is valid.
 *
 * - The first message is a user's; the last is a user's or a tool's.
 * - Each tool call is answered exactly once, directly after its message, in the order of the calls. A missing answer is made up, honestly;
 *   a second one, or one to no call, is dropped.
 * - No two calls share an id.
 * - No message is empty, no text is blank.
 * - A block of an assistant message is kept or dropped whole: its maker signs thinking. (A lone surrogate in text or input is the
 *   exception, as it cannot be sent at all.)
 * - Thinking and opaque blocks go back only to the provider that made them.
 * - An assistant message that calls no tool is followed by a user message; an interrupted one by a word that it was.
 * - Pictures, sound and documents of tools stand in a user message behind the results: no API takes all of them in a result, some none.
 * - All text is well-formed.
 *
 * Two user messages in a row stay two: merging is the renderer's, as not every provider wants it.
 */
import {
  isBodyRef,
  type AssistantBlock,
  type AssistantMessage,
  type ConversationMessage,
  type MediaSource,
  type ToolResultMessage,
  type UserMessage,
  MEDIA_KINDS,
  mapMedia,
  pickMedia,
  sourcesIn,
} from '../records/message.js';
import { withoutMedia } from '../records/message-media.js';
import { isWellFormed, isWellFormedJson, toWellFormedBody, toWellFormedJson } from './wire.js';
import { isRecord } from '../platform/json.js';

export interface NormalizeOptions {
  /** The provider that gets the request. */
  readonly provider: string;
}

/** Thinking that cannot be read, by the names of those who send it. */
const OPAQUE_THINKING: readonly (string | undefined)[] = ['redacted_thinking', 'reasoning'];

/** What came out as it was, and for which provider: a message never changes, and every turn takes the whole of a long conversation. */
const UNCHANGED = new WeakMap<ConversationMessage, string>();

export const CONTINUE: UserMessage = { role: 'user', text: 'Continue.' };
export const INTERRUPTED: UserMessage = { role: 'user', text: '[The person stopped the answer here.]' };

export function normalize(messages: readonly ConversationMessage[], { provider }: NormalizeOptions): ConversationMessage[] {
  const { answers, callIds } = matchAnswers(messages);
  const freshId = createIdGiver(callIds);
  const first = messages.findIndex((message) => message.role === 'user' && !isBlankUser(message));
  if (first === -1) return [CONTINUE];

  const out: ConversationMessage[] = [];
  messages.slice(first).forEach((message, offset) => {
    if (UNCHANGED.get(message) === provider) {
      out.push(message);
      return;
    }
    const before = out.length;
    switch (message.role) {
      case 'tool':
        return; // placed with its call
      case 'user':
        if (!isBlankUser(message)) out.push(sanitizeUser(message));
        break;
      case 'assistant':
        out.push(...sanitizeAssistant(message, answers.get(first + offset) ?? [], provider, freshId));
        break;
      default:
        throw new Error(`unknown role ${JSON.stringify(message satisfies never)}`);
    }
    // One that calls tools depends on its neighbours.
    if (out.length === before + 1 && out[before] === message && !callsTools(message)) UNCHANGED.set(message, provider);
  });
  return withUserAfterAssistant(out);
}

type ToolCall = Extract<AssistantBlock, { kind: 'tool-call' }>;

/** For each assistant message, by its place in the list: the answer to each of its calls, in their order. */
type Answers = ReadonlyMap<number, (ToolResultMessage | undefined)[]>;

/**
 * An answer belongs to the nearest message before it that calls its id, or, come too early, to the first one after it.
 * Leading messages that will be dropped take part, so that their answers go with them and to no other call.
 */
function matchAnswers(messages: readonly ConversationMessage[]): { readonly answers: Answers; readonly callIds: ReadonlySet<string> } {
  const answers = new Map<number, (ToolResultMessage | undefined)[]>();
  const callers = new Map<string, number[]>();
  messages.forEach((message, at) => {
    if (message.role !== 'assistant' || !callsTools(message)) return;
    const calls = toolCalls(message);
    answers.set(
      at,
      calls.map(() => undefined),
    );
    for (const callId of new Set(calls.map((call) => call.callId))) callers.set(callId, [...(callers.get(callId) ?? []), at]);
  });
  messages.forEach((message, at) => {
    if (message.role !== 'tool') return;
    const places = callers.get(message.callId) ?? [];
    const caller = places.findLast((place) => place < at) ?? places[0];
    if (caller === undefined) return;
    const slots = answers.get(caller) ?? [];
    const calls = toolCalls(messages[caller] as AssistantMessage);
    const free = calls.findIndex((call, index) => call.callId === message.callId && slots[index] === undefined);
    if (free !== -1) slots[free] = message; // else a duplicate: the first one counts
  });
  return { answers, callIds: new Set(callers.keys()) };
}

/** Gives each occurrence of a call a unique id: the first keeps it. */
function createIdGiver(reserved: ReadonlySet<string>): (callId: string) => string {
  const given = new Set<string>();
  return (callId) => {
    let id = callId;
    for (let n = 2; given.has(id) || (id !== callId && reserved.has(id)); n++) id = `${callId}-${n}`;
    given.add(id);
    return id;
  };
}

function sanitizeAssistant(
  message: AssistantMessage,
  answers: readonly (ToolResultMessage | undefined)[],
  provider: string,
  freshId: (callId: string) => string,
): ConversationMessage[] {
  const results: ToolResultMessage[] = [];
  const blocks = message.blocks.flatMap((block): AssistantBlock[] => {
    if (block.kind !== 'tool-call') return soundBlock(block, provider);
    const callId = freshId(block.callId);
    const call = sanitizeCall(block, callId);
    results.push(soundResult(answers[results.length] ?? missingResult(message, call), callId));
    return [call];
  });
  // Providers refuse thinking at the end of a message, with no text or call after it.
  const trimmed = blocks.slice(0, blocks.findLastIndex((block) => !isThinking(block)) + 1);
  return [
    ...(trimmed.length === 0 ? [] : [sameBlocks(trimmed, message.blocks) ? message : { ...message, blocks: trimmed }]),
    ...results.map((result) => (sourcesIn(result).length === 0 ? result : withoutMedia(result))),
    ...results.flatMap((result, at) => filesMessage(result, results.length === 1 ? '' : `, result ${at + 1} of ${results.length}`)),
    ...(message.stop === 'interrupted' ? [INTERRUPTED] : []),
  ];
}

function soundBlock(block: Exclude<AssistantBlock, ToolCall>, provider: string): AssistantBlock[] {
  switch (block.kind) {
    case 'text': {
      const text = toWellFormedBody(block.text);
      if (typeof text === 'string' && text.trim() === '') return [];
      return [text === block.text ? block : { ...block, text }];
    }
    case 'thinking':
      // Unsigned thinking is for people to read; no provider takes it back.
      return block.provider === provider && block.signature && isWellFormed(block.text) ? [block] : [];
    case 'opaque':
      return block.provider === provider && blockType(block.value) !== undefined && isWellFormedJson(block.value) ? [block] : [];
    default:
      throw new Error(`unknown block ${JSON.stringify(block satisfies never)}`);
  }
}

function sanitizeCall(call: ToolCall, callId: string): ToolCall {
  const input = isBodyRef(call.input) ? (toWellFormedBody(call.input) as typeof call.input) : toWellFormedJson(call.input);
  return callId === call.callId && input === call.input ? call : { ...call, callId, input };
}

function soundResult(result: ToolResultMessage, callId: string): ToolResultMessage {
  const text = toWellFormedBody(result.text);
  return callId === result.callId && text === result.text ? result : { ...result, callId, text };
}

/** Says whose they are: what is to be read in a picture is no person's word. */
function filesMessage(result: ToolResultMessage, which: string): UserMessage[] {
  if (sourcesIn(result).length === 0) return [];
  const text = `[From the result of the tool ${result.name}${which}. What is in it comes from the tool, not from the user.]`;
  return [sanitizeUser({ role: 'user', from: 'notice', text, ...pickMedia(result) })];
}

/** Tools run only when the model stopped to have them run: a call in any other message has certainly not been made. */
function missingResult(message: AssistantMessage, { callId, name }: ToolCall): ToolResultMessage {
  const mayHaveRun = message.stop === 'tool-calls' || message.stop === 'interrupted';
  return mayHaveRun
    ? {
        role: 'tool',
        callId,
        name,
        outcome: 'unknown',
        text: 'No result was recorded: the call was interrupted and its outcome is unknown.',
      }
    : { role: 'tool', callId, name, outcome: 'cancelled', text: 'The answer ended before the call could be made.' };
}

function sanitizeUser(message: UserMessage): UserMessage {
  const text = toWellFormedBody(message.text);
  const media = mapMedia(message, (list) => toWellFormedJson(list as readonly (MediaSource & Record<string, string>)[]));
  const same = text === message.text && MEDIA_KINDS.every((kind) => media[kind] === undefined || media[kind] === message[kind]);
  return same ? message : { ...message, text, ...media };
}

function withUserAfterAssistant(messages: readonly ConversationMessage[]): ConversationMessage[] {
  const out: ConversationMessage[] = [];
  for (const [at, message] of messages.entries()) {
    const next = messages[at + 1];
    // The word is there already where this list was normalized before.
    if (message === INTERRUPTED && next?.role === 'user' && next.text === INTERRUPTED.text) continue;
    out.push(message);
    if (message.role === 'assistant' && next?.role !== 'user' && next?.role !== 'tool') out.push(CONTINUE);
  }
  return out;
}

function isBlankUser(message: UserMessage): boolean {
  return typeof message.text === 'string' && message.text.trim() === '' && sourcesIn(message).length === 0;
}

function isThinking(block: AssistantBlock): boolean {
  return block.kind === 'thinking' || (block.kind === 'opaque' && OPAQUE_THINKING.includes(blockType(block.value)));
}

/** Whatever a provider sends as a block is an object that names its type; anything else is damage. */
function blockType(value: unknown): string | undefined {
  if (!isRecord(value)) return undefined;
  const type = (value as { type?: unknown }).type;
  return typeof type === 'string' ? type : undefined;
}

function callsTools(message: ConversationMessage): boolean {
  return message.role === 'assistant' && message.blocks.some(({ kind }) => kind === 'tool-call');
}

function toolCalls(message: AssistantMessage): ToolCall[] {
  return message.blocks.filter((block) => block.kind === 'tool-call');
}

function sameBlocks(left: readonly AssistantBlock[], right: readonly AssistantBlock[]): boolean {
  return left.length === right.length && left.every((block, index) => block === right[index]);
}
