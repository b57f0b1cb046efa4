/** What handlers of all messages share, and the one shape of an update: read, turned into events, answered from the state. */
import { ApplicationFailure, type UpdateDefinition } from '@temporalio/common';
import type { ConversationEvent } from '../conversation/event.js';
import { messageReceived } from '../conversation/inbox/arrivals.js';
import type { Checked } from '../conversation/protocol/schema.js';
import type { ParsedMessage } from '../conversation/protocol/message.js';
import { isKnown, outcomeFor, type Outcome, type RequestKind } from '../conversation/requests.js';
import type { ConversationState } from '../conversation/state.js';
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
}

interface RequestDefinition<Input, Result, Kind extends RequestKind> {
  /** Throws nothing; what it refuses the validator refuses. */
  readonly read: (payload: unknown) => Checked<Input>;
  /** Throws where the state does not allow it. */
  readonly refuse?: (state: ConversationState, input: Input) => void;
  /** Under which it is remembered and may be sent again (conversation/answered-once). Absent: it is done at once, and under no id. */
  readonly known?: { readonly as: Kind; readonly id: (input: Input) => string | undefined };
  readonly events: (
    input: Input,
    request: { readonly id: string; readonly at: number; readonly before: ConversationState },
  ) => readonly ConversationEvent[];
  /** Whether nothing is waited for any more. Absent: what is known has its outcome, and all else never waits. */
  readonly isOver?: (state: ConversationState, id: string, input: Input) => boolean;
  /** May throw: then the update fails so. `before` is the state before its events. */
  readonly answer: (
    outcome: Outcome<Kind> | undefined,
    request: { readonly id: string; readonly input: Input; readonly before: ConversationState; readonly state: ConversationState },
  ) => Result;
}

export type DefineRequest = ReturnType<typeof createRequests>;

export function createRequests({ host, state, dispatch, notifier, isHandingOver, counted }: Handling) {
  return function defineRequest<Input, Result, Payload extends unknown[], Kind extends RequestKind = never>(
    update: UpdateDefinition<Result, Payload>,
    { read, refuse, known, events, isOver, answer }: RequestDefinition<Input, Result, Kind>,
  ): void {
    const isAnswered = (id: string): boolean => known === undefined || outcomeFor(state(), known.as, id) !== undefined;
    const handle = async (payload?: unknown): Promise<Result> => {
      const input = accepted(read(payload));
      const id = known ? (known.id(input) ?? host.uuid()) : '';
      const before = state();
      if (!known || !isKnown(before, known.as, id)) for (const event of events(input, { id, at: host.now(), before })) dispatch(event);
      const isDone = (): boolean => (isOver ? isOver(state(), id, input) : isAnswered(id));
      await notifier.until(() => isHandingOver() || isDone());
      refuseUnopened(state());
      if (isDone()) return answer(known && outcomeFor(state(), known.as, id), { id, input, before, state: state() });
      throw sendAgain('the conversation hands over to its next run');
    };
    const validator = (payload?: unknown): void => {
      const input = accepted(read(payload));
      refuse?.(state(), input);
    };
    host.setHandler(update, counted(handle), { validator });
  };
}

/** A message or a reset, under its id. */
export function arrival(message: ParsedMessage, id: string, at: number): ConversationEvent {
  return message.kind === 'reset' ? { kind: 'reset-requested', resetId: id, at } : messageReceived(message, id, at);
}

/** How handlers refuse: by a failure that names what is wrong. */
export function accepted<T>(checked: Checked<T>): T {
  if (checked.ok) return checked.value;
  throw ApplicationFailure.nonRetryable(checked.reason, FAILURES.invalidMessage);
}

export function refuseFor(reason: string | undefined, type: string): void {
  if (reason !== undefined) throw ApplicationFailure.nonRetryable(reason, type);
}

export function refuseWhenClosing({ closing }: ConversationState): void {
  refuseFor(closing === 'no' ? undefined : 'the conversation is closing and takes no new messages; start another', FAILURES.closing);
}

/** A sub-agent takes no new messages from its start, and all else as any conversation does, until its task is done. */
export function refuseWhenDone(state: ConversationState): void {
  const isWorking = state.parent && state.closing === 'running-out' && (state.turn !== null || state.queue.length > 0);
  if (!isWorking) refuseWhenClosing(state);
}

/** Of one that cannot begin with the turns that it was to begin with: a waiting caller gets its reason, and is not sent to a next run. */
export function refuseUnopened({ lineage }: ConversationState): void {
  if (lineage?.refused) refuseFor(lineage.refused.message, failureType(lineage.refused.type));
}

export function failureType(type: string): string {
  return type === 'unknown-turn' ? FAILURES.unknownTurn : type;
}

export function sendAgain(why: string): ApplicationFailure {
  return ApplicationFailure.create({ message: `${why}; ask again with the same id`, type: FAILURES.continues });
}

/**
 * Rung whenever something has happened, for all who wait for it. Looking is cheap and a promise is not (the SDK keeps the stack
 * trace of each, and a replay makes them all again): each waiting caller has one, and its condition is checked when it is notified.
 */
interface ChangeNotifier {
  notify(): void;
  /** Resolves when it is so; looks at once, and then at each notification. */
  until(isSo: () => boolean): Promise<void>;
}

interface Waiter {
  readonly isSo: () => boolean;
  readonly go: () => void;
}

export function createChangeNotifier(): ChangeNotifier {
  let waiting: Waiter[] = [];
  return {
    notify() {
      if (waiting.length === 0) return;
      const all = waiting;
      waiting = [];
      for (const waiter of all) {
        if (waiter.isSo()) waiter.go();
        else waiting.push(waiter);
      }
    },
    until: (isSo) => new Promise((go) => (isSo() ? go() : waiting.push({ isSo, go }))),
  };
}
