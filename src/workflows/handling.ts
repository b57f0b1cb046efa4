/** What the handlers of all messages share. */
import type { ConversationEvent } from '../conversation/event.js';
import type { ParsedMessage } from '../conversation/protocol/message.js';
import type { ConversationState } from '../conversation/state.js';
import type { ChangeNotifier } from './change-notifier.js';
import { ApplicationFailure } from '@temporalio/common';
import type { Checked } from '../conversation/protocol/schema.js';
import type { Host } from './host.js';
import { FAILURES } from './messages.js';

export interface Handling {
  readonly host: Host;
  readonly state: () => ConversationState;
  readonly dispatch: (event: ConversationEvent) => void;
  readonly notifier: ChangeNotifier;
  /** True once the run is about to hand over: waiting callers get `continues`. */
  readonly isHandingOver: () => boolean;
  /** An update after the last hand-over check would be lost with this run's results: it is counted, then served. */
  readonly counted: <Args extends unknown[], Result>(handle: (...args: Args) => Promise<Result>) => (...args: Args) => Promise<Result>;
  /** A message or a reset, under its id. */
  readonly accept: (said: ParsedMessage, id: string) => void;
  /** A signal cannot be refused: it is listed in the status. */
  readonly reject: (name: string, reason: string) => void;
}

/** How handlers refuse: by a failure that names what is wrong. */
export function accepted<T>(checked: Checked<T>): T {
  if (checked.ok) return checked.value;
  throw ApplicationFailure.nonRetryable(checked.reason, FAILURES.invalidMessage);
}

export function refuseWhenClosing(state: ConversationState): void {
  if (state.closing === 'no') return;
  throw ApplicationFailure.nonRetryable('the conversation is closing and takes no new messages; start another', FAILURES.closing);
}

/** Of one that cannot begin with the turns that it was to begin with: a waiting caller gets its reason, and is not sent to a next run. */
export function refuseUnopened({ lineage }: ConversationState): void {
  if (!lineage?.refused) return;
  const { type, message } = lineage.refused;
  throw ApplicationFailure.nonRetryable(message, type === 'unknown-turn' ? FAILURES.unknownTurn : type);
}

export function askAgain(why: string): ApplicationFailure {
  return ApplicationFailure.create({ message: `${why}; ask again with the same id`, type: FAILURES.continues });
}
