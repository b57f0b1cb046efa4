/**
 * A client's message: words, data, files and settings, and what it decides where its task waits for a person. Pure.
 *
 * - No word alone allows a call: an approval names the hash of the call as it was shown, or its first characters.
 * - A refusal needs no hash if one call alone waits; any text answers a question.
 * - Words cannot answer for another client's tool: a data part that names the call does.
 */
import { z } from 'zod';
import { type Message, ID_PATTERN, LIMITS } from '../../conversation/protocol/contract.js';
import {
  type JsonObject,
  type JsonValue,
  type MediaKind,
  type MediaSource,
  isBodyRef,
  shownText,
  type Entry,
} from '../../records/message.js';
import { toFile } from '../core/attachments.js';
import { readAs } from '../core/read-body.js';
import { invalid } from '../core/errors.js';
import { MAX_CONTEXT, shortenHash } from './task.js';
import type { Pending } from '../../client.js';
import type { Decision } from '../../conversation/protocol/human-input.js';
import { callFingerprint } from '../../memory/bodies.js';
import { describeClientWait } from '../core/client-calls.js';

const MAX_PARTS = 200;

/** As the library has read it. */
interface GivenPart {
  readonly content?:
    | { readonly $case: 'text' | 'url'; readonly value: string }
    | { readonly $case: 'raw'; readonly value: Uint8Array }
    | { readonly $case: 'data'; readonly value: unknown };
  readonly mediaType: string;
  readonly filename?: string;
}
type Metadata = Readonly<Record<string, unknown>> | undefined;

interface GivenMessage {
  readonly messageId: string;
  readonly contextId: string;
  readonly taskId: string;
  readonly role: number;
  readonly parts: readonly GivenPart[];
  readonly metadata: Metadata;
}

export interface ParsedRequest {
  readonly messageId: string;
  /** Empty: none was named. */
  readonly context: string;
  readonly task: string;
  readonly text: string;
  readonly data: readonly JsonValue[];
  readonly message: Message & { readonly id: string };
  readonly agent?: string;
}

const ROLE_USER = 1;
const metadata = z.looseObject({
  agent: z.string().regex(ID_PATTERN, 'is no name of an agent').optional(),
  output: z.record(z.string(), z.unknown()).optional(),
});

/** Throws a refusal that names the field. */
export function readRequest(given: GivenMessage | undefined, beside: Metadata): ParsedRequest {
  if (given === undefined) throw invalid('message is missing', 'message');
  const { messageId, contextId, taskId, role, parts } = given;
  if (messageId === '' || messageId.length > LIMITS.idLength)
    throw invalid(`message.messageId must have 1 to ${LIMITS.idLength} characters`);
  if (contextId.length > MAX_CONTEXT) throw invalid(`message.contextId may have ${MAX_CONTEXT} characters`);
  if (role !== ROLE_USER) throw invalid('message.role must be ROLE_USER');
  if (parts.length === 0 || parts.length > MAX_PARTS) throw invalid(`message.parts must have 1 to ${MAX_PARTS} parts`);
  const { agent, output } = readAs(metadata, { ...beside, ...given.metadata });
  const text = parts.flatMap(({ content }) => (content?.$case === 'text' ? [content.value] : [])).join('\n\n');
  const data = parts.flatMap(({ content }) => (content?.$case === 'data' ? [content.value as JsonValue] : []));
  const media: Partial<Record<MediaKind, MediaSource[]>> = {};
  for (const [at, part] of parts.entries()) {
    if (part.content === undefined) throw invalid(`message.parts.${at} has none of text, data, raw and url`);
    if (part.content.$case === 'text' || part.content.$case === 'data') continue;
    const { kind, source } = fileIn(part, at);
    (media[kind] ??= []).push(source);
  }
  return {
    messageId,
    context: contextId,
    task: taskId,
    text,
    data,
    message: {
      id: messageId,
      text,
      ...media,
      ...(data.length > 0 && { payload: data.length === 1 ? (data[0] ?? null) : data }),
      ...(output && { output: output as JsonObject }),
    },
    ...(agent !== undefined && { agent }),
  };
}

function fileIn({ content, mediaType, filename: name }: GivenPart, at: number): ReturnType<typeof toFile> {
  const url = content?.$case === 'raw' ? `data:;base64,${Buffer.from(content.value).toString('base64')}` : String(content?.value);
  return toFile({ mediaType, url, ...(name !== undefined && name !== '' && { name }) }, `message.parts.${at}`);
}

const WORDS = /^\s*(approve|deny)\b[\s:]*([0-9a-f]{12,64})?\b[\s:,.-]*([^]*)$/i;

interface Answering {
  readonly text: string;
  /** The content of its data parts. */
  readonly data: readonly JsonValue[];
}

const decision = z.looseObject({
  decision: z.enum(['approve', 'deny']).optional(),
  answer: z.string().optional(),
  callId: z.string().max(64).optional(),
  hash: z.string().max(128).optional(),
  note: z.string().optional(),
  output: z.json().optional(),
  isError: z.literal(true).optional(),
  always: z.literal(true).optional(),
});
type Given = z.output<typeof decision>;

/** Throws where it decides nothing of what waits. */
export function readDecisions({ text, data }: Answering, waiting: readonly Pending[]): readonly Decision[] {
  const given = data.flatMap((one) => (Array.isArray(one) ? (one as readonly JsonValue[]) : [one])).filter(isDecision);
  if (given.length > 0) return given.map((one) => byData(readAs(decision, one), waiting));
  const [, verb, code, note = ''] = WORDS.exec(text) ?? [];
  const approvals = waiting.filter(({ kind }) => kind === 'approval');
  const question = waiting.find(({ kind }) => kind === 'question');
  if (verb !== undefined && (code !== undefined || (question === undefined && verb.toLowerCase() === 'deny' && approvals.length === 1))) {
    const named = approvals.find(({ hash }) => code === undefined || hash.startsWith(code.toLowerCase()));
    if (!named) throw invalid('no call that waits has this hash: it was decided before, or has other arguments now');
    return [
      decide(named, { decision: verb.toLowerCase() === 'approve' ? 'approve' : 'deny', ...(note.trim() !== '' && { note: note.trim() }) }),
    ];
  }
  if (question) {
    if (text.trim() === '') throw invalid('the answer is empty');
    return [decide(question, { decision: 'approve', note: text })];
  }
  const client = approvals.length === 0 ? describeClientWait(waiting[0]?.via ?? '', waiting) : undefined;
  if (client !== undefined) throw invalid(`${client} Here a data part does: { "output", "callId" }`);
  throw invalid(
    `this task waits for a decision: answer ${approvals.map((one) => `"approve ${shortenHash(one)}" or "deny ${shortenHash(one)}"`).join(', ')}`,
  );
}

function isDecision(value: JsonValue): boolean {
  return typeof value === 'object' && value !== null && ('decision' in value || 'answer' in value || 'output' in value);
}

function byData({ decision: what, answer, output, isError, callId, hash, note, always }: Given, waiting: readonly Pending[]): Decision {
  if (output !== undefined) {
    const call = waiting.find((one) => one.kind === 'client-tool' && one.callId === callId);
    if (!call) throw invalid('no tool of a client waits that has this callId: it was answered before, or callId is missing');
    return { ...decide(call, { decision: 'approve' }), output: output as JsonValue, ...(isError && { isError }) };
  }
  const kind = answer === undefined ? 'approval' : 'question';
  const fit = waiting.filter((one) => one.kind === kind && (callId ?? one.callId) === one.callId && (hash ?? one.hash) === one.hash);
  const [named] = fit;
  if (!named) throw invalid('nothing that waits is named by this callId and hash: it was decided before, or has other arguments now');
  if (answer !== undefined) return decide(named, { decision: 'approve', note: answer });
  if (what === undefined) throw invalid('decision must be "approve" or "deny"');
  if (what === 'approve' && hash === undefined) throw invalid('an approval needs the hash of the call that was shown');
  if (callId === undefined && hash === undefined && fit.length > 1) throw invalid('several calls wait: name one by its callId');
  return decide(named, { decision: what, ...(note !== undefined && { note }), ...(always && { always }) });
}

function decide({ callId, hash, conversation, via }: Pending, what: Pick<Decision, 'decision' | 'note' | 'always'>): Decision {
  return { callId, hash, ...what, ...(conversation !== via && { conversation }) };
}

/** For a turn that no longer waits: whether this very answer was taken before, so that sending it again is harmless. */
export function wasTaken({ text, data }: Answering, entries: readonly Entry[]): boolean {
  const [, , code] = WORDS.exec(text) ?? [];
  const named = data.flatMap((one) => (Array.isArray(one) ? (one as readonly JsonValue[]) : [one])).filter(isDecision) as readonly Given[];
  return entries.some(({ message }) => {
    if (message.role === 'tool') {
      const isAnswer =
        message.name === 'ask_user' && (shownText(message.text) === text || named.some(({ answer }) => answer === message.text));
      return isAnswer || named.some(({ callId }) => callId === message.callId);
    }
    if (message.role !== 'assistant') return false;
    return message.blocks.some((block) => {
      if (block.kind !== 'tool-call' || isBodyRef(block.input)) return false;
      const hash = callFingerprint(block.name, block.input);
      return (code !== undefined && hash.startsWith(code.toLowerCase())) || named.some((one) => one.hash === hash);
    });
  });
}
