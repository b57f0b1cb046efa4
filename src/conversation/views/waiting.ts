/** What a conversation waits for: as data, and in the words of `status.waitingFor`. */
import { planned } from '../stepping/control.js';
import { runningChildren } from '../turn/delegation.js';
import { approvalsOf } from '../turn/approvals.js';
import type { Waiting } from '../protocol/contract.js';
import { isRunning } from '../effect.js';
import { awaitedOrigin } from '../lineage/lineage.js';
import { isStoreUpToDate } from '../state/queue-state.js';
import type { ConversationState } from '../state.js';
import type { Retry } from '../state/turn-state.js';
import { isoTime } from '../../records/time.js';

export function waitingOf(state: ConversationState): Waiting | undefined {
  const origin = awaitedOrigin(state);
  if (origin !== undefined) return { kind: 'origin', conversation: origin };
  const { turn, retries, consolidation } = state;
  const call = turn?.phase.kind === 'model' ? turn.phase.call : undefined;
  const storeRetry = isStoreUpToDate(state) ? undefined : retries['store'];
  const retry = (call && retries[call.id]) ?? storeRetry;
  // A repeated call does not show that a failed store is back; a model may well be thinking after a repeated call.
  if (retry && (!isRunning(state, 'model-step') || retry.failure.type === STORE_AWAY)) return retryOf(retry);
  const evictRetry = turn || isRunning(state, 'evict') ? undefined : retries['evict'];
  if (evictRetry) return retryOf(evictRetry);
  const { ending } = consolidation;
  if (ending && !turn) return { kind: 'memory', scope: state.identity.scope, until: isoTime(ending.until) };
  return waitingForStep(state) ?? waitingForPerson(state) ?? waitingForTime(state) ?? waitingForChild(state);
}

const STORE_AWAY = 'StoreUnavailable';

export function explainWaiting(waiting: Waiting): string {
  switch (waiting.kind) {
    case 'origin':
      return `the turns of ${waiting.conversation} that it begins with`;
    case 'retry':
      return `${waiting.reason}: ${waiting.message}; trying again at ${waiting.until}`;
    case 'memory':
      return `memory:${waiting.scope} to consolidate this session; not waited for after ${waiting.until}`;
    case 'step':
      return `a step: ${waiting.next}`;
    case 'breakpoint':
      return `a step: ${waiting.next} (stopped by ${waiting.why})`;
    case 'approval':
    case 'question':
    case 'client-tool': {
      const { kind, tool, target, others, until } = waiting;
      const what = {
        question: 'a person: an answer to',
        approval: 'a person: approval of',
        'client-tool': 'the client: what it answers to',
      }[kind];
      const more = others === 0 ? '' : ` and ${others} more`;
      return `${what} ${tool}${target === '' ? '' : ` (${target})`}${more}; until ${until}`;
    }
    case 'time':
      return `the time that ${waiting.tool} names: ${waiting.until}`;
    case 'sub-agent':
      return `the sub-agent ${waiting.conversation}`;
  }
}

/** What stopped it, and where when that was in a sub-agent. */
export function explainPause({ control }: ConversationState): string | null {
  if (!control || control.pausedBy === null) return null;
  return control.pausedIn === undefined ? control.pausedBy : `${control.pausedBy} in ${control.pausedIn}`;
}

function waitingForStep(state: ConversationState): Waiting | undefined {
  const { control } = state;
  const next = control?.mode === 'stepping' && control.lock === null ? planned(state)?.words : undefined;
  if (next === undefined) return undefined;
  const why = explainPause(state);
  return why === null ? { kind: 'step', next } : { kind: 'breakpoint', next, why };
}

/** The oldest request. */
function waitingForPerson(state: ConversationState): Waiting | undefined {
  const [first, ...others] = approvalsOf(state);
  if (!first) return undefined;
  const { kind, conversation, callId, tool, target, expiresAt } = first;
  return { kind, conversation, callId, tool, target, others: others.length, until: isoTime(expiresAt) };
}

/** The one that is over first. */
function waitingForTime({ turn }: ConversationState): Waiting | undefined {
  if (turn?.phase.kind !== 'tools') return undefined;
  const [first] = turn.phase.calls
    .flatMap(({ status, name, sleepsUntil }) => (status === 'sleeping' && sleepsUntil !== undefined ? [{ tool: name, sleepsUntil }] : []))
    .sort((a, b) => a.sleepsUntil - b.sleepsUntil);
  return first && { kind: 'time', tool: first.tool, until: isoTime(first.sleepsUntil) };
}

function waitingForChild(state: ConversationState): Waiting | undefined {
  const [conversation] = runningChildren(state);
  return conversation === undefined ? undefined : { kind: 'sub-agent', conversation };
}

function retryOf({ failure, until }: Retry): Waiting {
  return { kind: 'retry', reason: failure.type, message: failure.message, until: isoTime(until) };
}
