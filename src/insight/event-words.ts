/** What happened to a conversation, in a line. Texts of people, models and tools are shortened, and cleaned where they are drawn. */
import type { ModelAnswer, ModelStepInput, ModelStepResult, ToolFinished } from '../conversation/turn/model-step-effects.js';
import type { Writes, Written } from '../conversation/outbox/writes.js';
import type { ConversationEvent } from '../conversation/event.js';
import type { EffectEvent } from '../conversation/effect.js';
import { eventName } from '../conversation/views/observation.js';
import { countSlots } from '../records/slots.js';
import { formatQuantity, formatCount, formatDuration } from '../records/time-in-words.js';

const MOST = 240;

/** `undefined`: a run began. */
export function describeEvent(event: ConversationEvent | undefined): string {
  if (event === undefined) return 'a run begins, with what the one before it carried over';
  const name = eventName(event).replaceAll('-', ' ');
  const about = describeDetail(event);
  return about === '' ? name : `${name}: ${about.slice(0, MOST)}`;
}

function describeDetail(event: ConversationEvent): string {
  switch (event.kind) {
    case 'effect-started':
      return describeStart(event);
    case 'effect-completed':
      return describeEnd(event);
    case 'effect-failed':
      return `${event.id}, ${event.failure.type}: ${event.failure.message}`;
    case 'message-received':
      return `${event.messageId} “${event.text.slice(0, 160)}”`;
    case 'app-event-received':
      return `${event.type} (${event.id})`;
    case 'app-event-reduced':
      return event.reduced.kind === 'reduced'
        ? `${event.id}, ${formatQuantity(event.reduced.operations.length, 'operation')}`
        : `${event.id}, ${event.reduced.kind}${event.reduced.kind === 'parked' ? `: ${event.reduced.error}` : ''}`;
    case 'decided':
      return `${event.decision.callId}: ${event.decision.decision}`;
    case 'chunks-chosen':
      return `${event.what}, ${formatQuantity(countSlots(event.slots), 'chunk')}`;
    case 'mode-set':
      return event.mode;
    case 'breakpoints-set':
      return JSON.stringify(event.breakpoints);
    case 'step-requested':
      return event.scope === undefined ? event.id : `${event.id}, ${event.scope}`;
    case 'child-stepped':
      return `${event.callId}, ${event.control.mode}${event.control.next === null ? '' : `, next: ${event.control.next}`}`;
    case 'parent-ordered':
      return `${event.order.mode}${event.order.step === undefined ? '' : `, step ${event.order.step}`}`;
    case 'queue-edited':
      return event.edit.op === 'clear' ? 'clear' : `${event.edit.op} ${event.edit.id}`;
    case 'input-rejected':
      return `${event.name}: ${event.reason}`;
    case 'interrupt-requested':
      return event.reason ?? '';
    case 'renamed':
      return event.title;
    case 'consolidation-ended':
      return event.consolidation;
    case 'hand-over-due':
      return event.reason;
    default:
      return '';
  }
}

function describeStart(event: Extract<EffectEvent, { kind: 'effect-started' }>): string {
  switch (event.effect) {
    case 'model-step':
      return listed([event.input.call.id, ...describeWrites(event.input.write), describeRides(event.input)]);
    case 'store-step':
      return listed([...describeWrites(event.input.write), ...(event.input.part ? ['a part of a message'] : [])]);
    case 'run-tool':
      return describeTool(event.input);
    case 'compact':
      return event.input.cause;
    case 'start-child':
      return `${event.input.child} for ${event.input.callId}`;
    case 'look-after':
      return event.input.child;
    case 'rewind':
      return `to ${event.input.to}`;
    case 'evict':
      return event.input.what.kind;
    case 'ask-memory':
      return `${formatQuantity(event.input.request.messages, 'message')}, ${event.input.request.why}`;
    default:
      return '';
  }
}

function describeEnd(event: Extract<EffectEvent, { kind: 'effect-completed' }>): string {
  switch (event.effect) {
    case 'model-step':
      return listed([...event.output.tools.map(describeFinished), outcomeOfStep(event.id, event.output)]);
    case 'store-step':
      return describeWritten(event.output.written);
    case 'run-tool':
      return describeFinished(event.output);
    case 'compact':
      if (event.output.kind === 'cited') return `long messages shown by their ends (slots ${countSlots(event.output.cited)})`;
      return event.output.kind === 'compacted'
        ? `${formatQuantity(event.output.turns.length, 'turn')}, ${formatCount(event.output.tokensBefore)} → ${formatCount(event.output.tokensAfter)} tokens, by ${event.output.method}`
        : 'there was nothing to compact';
    case 'truncate':
      return `${formatQuantity(event.output.entries, 'entry', 'entries')}, about ${formatCount(event.output.tokens)} tokens (slots ${countSlots(event.output.dropped)})`;
    case 'evict':
      return event.output.trimmed
        ? `${formatQuantity(event.output.trimmed.messages, 'message')}, about ${formatCount(event.output.trimmed.tokens)} tokens, became ${event.output.trimmed.episode.id}`
        : '';
    case 'look-after':
      return event.output;
    default:
      return '';
  }
}

function describeWrites({ messages, settle, entries }: Writes): string[] {
  return [
    ...(messages.length === 0 ? [] : [`writes ${messages.map(({ messageId }) => messageId).join(', ')}`]),
    ...(settle.length === 0 ? [] : [`settles ${settle.map(({ effect }) => effect).join(', ')}`]),
    ...(entries.length === 0 ? [] : [`writes again what the store did not take: ${entries.length}`]),
  ];
}

function describeWritten({ messages, committed = [] }: Written): string {
  const again = messages.filter(({ duplicate }) => duplicate !== undefined).length;
  return listed([
    messages.length === 0 ? '' : `${messages.length} ${messages.length === 1 ? 'message' : 'messages'} written`,
    again === 0 ? '' : `${again} of them sent before`,
    committed.length === 0 ? '' : `committed before it was settled: ${committed.map(({ effect }) => effect).join(', ')}`,
  ]);
}

function describeRides({ tools }: ModelStepInput): string {
  return tools.length === 0 ? '' : `rides: ${tools.map(describeTool).join(', ')}`;
}

function describeTool({ name, target, callId }: { readonly name: string; readonly target: string; readonly callId: string }): string {
  return `${name}${target === '' ? '' : ` ${target}`} (${callId})`;
}

function describeFinished({ name, callId, outcome, ms }: ToolFinished): string {
  return `${name} (${callId}) ${outcome} in ${formatDuration(ms)}`;
}

function outcomeOfStep(call: string, step: ModelStepResult): string {
  switch (step.kind) {
    case 'answered':
      return describeAnswer(step.answer);
    case 'failed':
      return `${call} failed: ${step.failure.type}: ${step.failure.message}`;
    case 'deferred':
      return `${call} deferred: ${step.reason}`;
  }
}

function describeAnswer({ blocks, call, stop }: ModelAnswer): string {
  const tools = blocks.flatMap((block) => (block.kind === 'tool-call' ? [block.name] : []));
  const texts = blocks.flatMap((block) =>
    block.kind === 'text' ? [typeof block.text === 'string' ? block.text : block.text.preview] : [],
  );
  const asks = tools.length === 0 ? '' : ` asks for ${tools.join(', ')}`;
  return `${call} ${stop}${asks}${texts.length === 0 ? '' : ` “${texts.join(' ').slice(0, 100)}”`}`;
}

function listed(parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join(' · ');
}
