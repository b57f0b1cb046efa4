/** What a debugger shows of one state: the same facts, whether a worker gave them or they were folded from the history. */
import type { ContextIndex, QueuedEvent, Status } from '../conversation/protocol/contract.js';
import type { Approval } from '../conversation/protocol/human-input.js';
import type { ControlView } from '../conversation/protocol/stepping.js';
import type { Moment } from '../conversation/replay/past.js';
import type { ConversationState } from '../conversation/state.js';
import { approvalsOf } from '../conversation/turn/approvals.js';
import { contextOf, controlViewOf, queueOf, statusOf } from '../conversation/views/view.js';
import { selectTruncation } from '../memory/compaction/truncation.js';
import { entryTokens, estimateMessageTokens, type CountTokens } from '../memory/tokens.js';
import { answerText, shownText, type Entry } from '../records/message.js';
import { listSlots } from '../records/slots.js';

export interface DebugScene {
  readonly id: string;
  readonly status: Status;
  readonly queue: readonly QueuedEvent[];
  readonly index: ContextIndex;
  /** null from a worker of an earlier version. */
  readonly control: ControlView | null;
  readonly approvals: readonly Approval[];
  readonly chunks: readonly DebugChunk[];
}

/** A piece of the context. */
export interface DebugChunk {
  /** As in a step's result: `chunk_<slot>`. */
  readonly id: string;
  readonly kind: 'SYSTEM' | 'MEMORY' | 'WORKING_FLOW';
  readonly tokens: number;
  readonly turn: string;
  readonly role: string;
  readonly words: string;
  /** The next truncation takes it. */
  readonly drops: boolean;
  readonly slot?: number;
}

/** More than a line of any screen. */
const LINE_CHARACTERS = 500;

export function pastScene(
  id: string,
  { state, position }: Pick<Moment, 'state' | 'position'>,
  entries: ReadonlyMap<number, Entry>,
  count?: CountTokens,
): DebugScene {
  const index = contextOf(state);
  const control = controlViewOf(state);
  return {
    id,
    status: statusOf(state, position),
    queue: queueOf(state),
    index,
    control,
    approvals: approvalsOf(state),
    chunks: chunksOf(index, entries, control, count),
  };
}

/** One line of `-o json`: enough to find a moment by. */
export function summaryOf(state: ConversationState): object {
  const { phase, session, turn, turns, epoch, mode, stepLock, pausedBy, queued, context, usage } = statusOf(state, 0);
  const running = controlViewOf(state).turn;
  return {
    ...{ phase, mode, session, turn, turns, epoch, queued, stepLock, pausedBy },
    tokens: context.tokens,
    chunks: context.chunks,
    running: running && { id: running.id, calls: running.calls.map(({ id, name, status }) => ({ id, name, status })) },
    costUsd: usage.costUsd,
  };
}

/** With nothing too much, what would be the first to go. */
export function chunksOf(
  index: ContextIndex,
  entries: ReadonlyMap<number, Entry>,
  control: ControlView | null,
  count?: CountTokens,
): DebugChunk[] {
  const flow = index.chunks.flatMap(({ slots = [] }) => listSlots(slots));
  const known = flow.flatMap((slot) => entries.get(slot) ?? []);
  const excess = Math.max(1, index.total - (control?.thresholds?.hard ?? index.total));
  const next = new Set(
    selectTruncation(known, excess, control?.turn?.id ?? null, entryTokens(known, { count })).dropped.map(({ slot }) => slot),
  );
  return [
    ...index.chunks.flatMap(({ kind, tokens, ref }): DebugChunk[] =>
      kind === 'WORKING_FLOW'
        ? []
        : [
            {
              id: kind.toLowerCase(),
              kind,
              tokens,
              turn: '',
              role: '',
              words: kind === 'SYSTEM' ? 'system prompt and tools' : `what older turns became (${ref ?? ''})`,
              drops: false,
            },
          ],
    ),
    ...flow.map((slot): DebugChunk => {
      const entry = entries.get(slot);
      return {
        id: `chunk_${slot}`,
        kind: 'WORKING_FLOW',
        tokens: entry ? estimateMessageTokens(entry.message, count) : 0,
        turn: entry?.turn ?? '',
        role: entry?.message.role ?? '?',
        words: entry ? wordsOf(entry).slice(0, LINE_CHARACTERS) : 'the store does not have it',
        drops: next.has(slot),
        slot,
      };
    }),
  ];
}

export function wordsOf(entry: Entry): string {
  const { message } = entry;
  switch (message.role) {
    case 'user':
      return shownText(message.text);
    case 'tool':
      return `${message.name} (${message.callId}) ${message.outcome}: ${shownText(message.text)}`;
    case 'assistant': {
      const calls = message.blocks.flatMap((block) =>
        block.kind === 'tool-call' ? [`${block.name}(${JSON.stringify(block.input)})`] : [],
      );
      return [answerText(entry.message), ...calls].filter((part) => part !== '').join(' ');
    }
  }
}
