/** What happened to a conversation, in a line. Whatever of it came from people, models or tools is shortened, and cleaned where it is drawn. */
import type { ConversationEvent } from '../../conversation/event.js';
import { countSlots } from '../../conversation/slots.js';
import { formatCount } from './quantities.js';

const MOST = 160;

/** `undefined`: a run began. */
export function eventInWords(event: ConversationEvent | undefined): string {
  if (event === undefined) return 'a run begins, with what the one before it carried over';
  const about = detailOf(event);
  return about === '' ? wordsOf(event.kind) : `${wordsOf(event.kind)}: ${about.slice(0, MOST)}`;
}

function wordsOf(kind: string): string {
  return kind.replaceAll('-', ' ');
}

function detailOf(event: ConversationEvent): string {
  switch (event.kind) {
    case 'message-received':
      return `${event.messageId} “${event.text.slice(0, MOST)}”`;
    case 'app-event-received':
      return `${event.type} (${event.id})`;
    case 'app-event-reduced':
      return event.reduced.kind === 'reduced'
        ? `${event.id}, ${event.reduced.operations.length} operations`
        : `${event.id}, ${event.reduced.kind}${event.reduced.kind === 'parked' ? `: ${event.reduced.error}` : ''}`;
    case 'decided':
      return `${event.decision.callId}: ${event.decision.decision}`;
    case 'mode-set':
      return event.mode;
    case 'breakpoints-set':
      return JSON.stringify(event.breakpoints);
    case 'step-requested':
      return event.id;
    case 'queue-edited':
      return event.edit.op === 'clear' ? 'clear' : `${event.edit.op} ${event.edit.id}`;
    case 'input-rejected':
      return `${event.name}: ${event.reason}`;
    case 'interrupt-requested':
      return event.reason ?? '';
    case 'renamed':
      return event.title;
    case 'recorded':
      return [...event.recorded.messages.map(({ messageId }) => messageId), ...(event.recorded.configured ? ['settings'] : [])].join(', ');
    case 'model-call-started':
      return event.call;
    case 'model-answered':
      return answerInWords(event);
    case 'tools-started':
      return event.callIds.join(', ');
    case 'tool-finished':
      return `${event.result.name} (${event.result.callId}) ${event.result.outcome}`;
    case 'model-call-failed':
    case 'record-failed':
    case 'persist-failed':
    case 'compact-failed':
    case 'truncate-failed':
    case 'uncompact-failed':
    case 'put-away-failed':
    case 'memory-ask-failed':
    case 'tool-run-failed':
      return `${event.failure.type}: ${event.failure.message}`;
    case 'child-started':
      return `${event.child} for ${event.callId}`;
    case 'compacted':
      return event.result.kind === 'compacted'
        ? `${event.result.turns.length} turns, ${formatCount(event.result.tokensBefore)} → ${formatCount(event.result.tokensAfter)} tokens, by ${event.result.method}`
        : 'there was nothing to compact';
    case 'truncated':
      return `${event.result.entries} entries, about ${formatCount(event.result.tokens)} tokens (slots ${countSlots(event.result.dropped)})`;
    case 'consolidation-ended':
    case 'consolidated':
      return event.consolidation;
    case 'hand-over-due':
      return event.reason;
    default:
      return '';
  }
}

function answerInWords({ answer }: Extract<ConversationEvent, { kind: 'model-answered' }>): string {
  const tools = answer.blocks.flatMap((block) => (block.kind === 'tool-call' ? [block.name] : []));
  const said = answer.blocks.flatMap((block) =>
    block.kind === 'text' ? [typeof block.text === 'string' ? block.text : block.text.preview] : [],
  );
  const asks = tools.length === 0 ? '' : ` asks for ${tools.join(', ')}`;
  return `${answer.call} ${answer.stop}${asks}${said.length === 0 ? '' : ` “${said.join(' ').slice(0, 100)}”`}`;
}
