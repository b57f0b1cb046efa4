/**
 * What must hold of a conversation whatever died meanwhile. Answers what does not, in words.
 *
 * Every acknowledged message is there, once, with one answer, which its sender got. Messages stand in the order of their acknowledgements.
 * Each tool call has one result. Turns, slots and `seq` have no gaps and no repeats.
 */
import type { TurnResult } from '../../src/conversation/protocol/contract.js';
import type { Entry } from '../../src/records/message.js';
import { turnNumber } from '../../src/records/identity.js';
import { toTraces } from '../../src/memory/traces.js';

export interface Acknowledged {
  readonly messageId: string;
  readonly result: TurnResult;
  readonly expectedText: string;
}

export interface CheckOptions {
  /** False where several spoke at once: then no order was acknowledged. */
  readonly inOrder?: boolean;
}

export function violations(
  history: readonly Entry[],
  acknowledged: readonly Acknowledged[],
  { inOrder = true }: CheckOptions = {},
): string[] {
  return [
    ...acknowledged.flatMap((one) => ofMessage(history, one)),
    ...(inOrder ? ofOrder(history, acknowledged) : []),
    ...ofTools(history),
    ...ofNumbers(history),
  ];
}

function ofMessage(history: readonly Entry[], { messageId, result, expectedText }: Acknowledged): string[] {
  const found = history.filter((entry) => entry.messageId === messageId);
  const [message] = found;
  if (!message || found.length > 1) return [`message ${messageId} is there ${found.length} times`];
  const answers = history.filter((entry) => entry.turn === message.turn && isFinal(entry)).map(textOf);
  return [
    ...(answers.length === 1 ? [] : [`message ${messageId} has ${answers.length} answers`]),
    ...(answers[0] === expectedText ? [] : [`message ${messageId} was answered ${JSON.stringify(answers[0])}`]),
    ...(result.text === expectedText ? [] : [`the sender of ${messageId} got ${JSON.stringify(result.text)}`]),
    ...(result.stopReason === 'end' && !result.error ? [] : [`message ${messageId} ended as ${result.stopReason}`]),
  ];
}

function ofOrder(history: readonly Entry[], acknowledged: readonly Acknowledged[]): string[] {
  const wanted = acknowledged.map(({ messageId }) => messageId);
  const found = history.flatMap(({ messageId }) => (messageId !== undefined && wanted.includes(messageId) ? [messageId] : []));
  return found.join() === wanted.join() ? [] : [`acknowledged as ${wanted.join()}, recorded as ${found.join()}`];
}

function ofTools(history: readonly Entry[]): string[] {
  const asked = history.flatMap(({ message }) =>
    message.role === 'assistant' ? message.blocks.flatMap((block) => (block.kind === 'tool-call' ? [block.callId] : [])) : [],
  );
  const answered = history.flatMap(({ message }) => (message.role === 'tool' ? [message.callId] : []));
  const counts = new Map([...asked, ...answered].map((callId) => [callId, 0]));
  for (const callId of answered) counts.set(callId, (counts.get(callId) ?? 0) + 1);
  return [
    ...[...counts].flatMap(([callId, count]) => (count === 1 ? [] : [`tool call ${callId} has ${count} results`])),
    ...(new Set(asked).size === asked.length ? [] : ['a call id was given twice']),
  ];
}

function ofNumbers(history: readonly Entry[]): string[] {
  const problems: string[] = [];
  const slots = history.map((entry) => entry.slot).sort((a, b) => a - b);
  slots.forEach((slot, i) => {
    if (slot !== i + 1) problems.push(`slot ${slot} stands where ${i + 1} should`);
  });
  const turns = [...new Set(history.map((entry) => turnNumber(entry.turn)))].sort((a, b) => a - b);
  turns.forEach((turn, i) => {
    if (turn !== i + 1) problems.push(`turn ${turn} stands where ${i + 1} should`);
  });
  for (const turn of turns) {
    const seqs = history.filter((entry) => turnNumber(entry.turn) === turn).flatMap((entry) => toTraces(entry, 'c').map(({ seq }) => seq));
    if (seqs.some((seq, i) => seq !== i + 1)) problems.push(`turn ${turn} has the sequence ${seqs.join()}`);
  }
  return problems.slice(0, 10);
}

function isFinal({ message }: Entry): boolean {
  return message.role === 'assistant' && !message.blocks.some((block) => block.kind === 'tool-call');
}

export function textOf({ message }: Entry): string {
  if (message.role !== 'assistant') return typeof message.text === 'string' ? message.text : message.text.preview;
  return message.blocks.map((block) => (block.kind === 'text' && typeof block.text === 'string' ? block.text : '')).join('');
}
