/**
 * What a message decides that answers a task which waits for a person. Pure.
 *
 * - No word alone allows a call: an approval names the hash of the call as it was shown, or its first characters.
 * - A refusal needs no hash if one call alone waits; any text answers a question.
 * - Words cannot answer for another client's tool: a data part that names the call does.
 */
import { z } from 'zod';
import type { Pending } from '../../client.js';
import type { Decision } from '../../conversation/protocol/human-input.js';
import { callFingerprint } from '../../memory/call-fingerprint.js';
import { isBodyRef, shownText, type Entry, type JsonValue } from '../../records/message.js';
import { describeClientWait } from '../core/client-calls.js';
import { readAs } from '../core/read-body.js';
import { invalid } from '../core/errors.js';

const CODE_LENGTH = 12;
const WORDS = /^\s*(approve|deny)\b[\s:]*([0-9a-f]{12,64})?\b[\s:,.-]*([^]*)$/i;

/** Long enough that no other arguments have it by design. */
export function shortenHash({ hash }: Pick<Pending, 'hash'>): string {
  return hash.slice(0, CODE_LENGTH);
}

export interface Answering {
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
