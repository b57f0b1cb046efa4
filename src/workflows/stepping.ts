/** The step engine's messages (seed 004): mode, step, breakpoints, the queue by hand, and events of the application's own. */
import { ApplicationFailure, type UpdateDefinition } from '@temporalio/common';
import type { ConversationEvent } from '../conversation/event.js';
import type { CompactionOutcome, QueuedEvent } from '../conversation/protocol/contract.js';
import { choiceRefusal, compactionOutcome, isChoiceKnown, tokenUsageOf } from '../conversation/context/requests.js';
import { toRanges } from '../records/slots.js';
import { appEventRefusal, isKnownEvent, outcomeOfEvent } from '../conversation/inbox/app-events.js';
import { readParentOrder } from '../conversation/protocol/stepping.js';
import {
  type ReadAppEvent,
  readAppEvent,
  readBreakpoints,
  readChosenChunks,
  readMode,
  readQueueEdit,
  readStepRequest,
} from '../conversation/protocol/stepping.js';
import { stepRefusal } from '../conversation/stepping/control.js';
import { editRefusal } from '../conversation/inbox/queue-editing.js';
import { queuedCount } from '../conversation/inbox/spill.js';
import { controlOf, controlViewOf, queueOf } from '../conversation/views/view.js';
import { type Handling, accepted, askAgain, refuseUnopened, refuseWhenClosing } from './handling.js';
import {
  checkTokenUsageQuery,
  controlQuery,
  dispatchUpdate,
  editQueueUpdate,
  eventSignal,
  executeTruncationUpdate,
  FAILURES,
  parentSignal,
  setBreakpointsUpdate,
  setModeUpdate,
  stepUpdate,
  triggerCompactionUpdate,
} from './messages.js';
import type { ControlStatus, DispatchedEvent, StepResult } from '../conversation/protocol/stepping.js';

export function handleStepping({ host, state, dispatch, notifier, isHandingOver, counted, reject }: Omit<Handling, 'accept'>): void {
  const resultOf = (id: string): StepResult | undefined => state().control?.results.find(({ stepId }) => stepId === id);
  /** Set at once; the answer is how the conversation stands then. `read` throws what refuses the update. */
  const handleSetting = <T>(update: UpdateDefinition<ControlStatus, [T]>, read: (payload: unknown) => ConversationEvent): void =>
    host.setHandler(
      update,
      counted((payload: unknown) => {
        dispatch(read(payload));
        return Promise.resolve(controlOf(state()));
      }),
      { validator: (payload: unknown) => void read(payload) },
    );

  host.setHandler(eventSignal, (payload: unknown) => {
    const event = readAppEvent(payload);
    if (event.ok) dispatch(appEventReceived(event.value, event.value.id ?? host.uuid(), host.now()));
    else reject('event', event.reason);
  });
  host.setHandler(
    dispatchUpdate,
    counted(async (payload: unknown): Promise<DispatchedEvent> => {
      const event = accepted(readAppEvent(payload));
      const id = event.id ?? host.uuid();
      const position = queuedCount(state().queue);
      dispatch(appEventReceived(event, id, host.now()));
      if (!event.wait) return { id, position };
      await notifier.until(() => isHandingOver() || outcomeOfEvent(state(), id) !== undefined);
      const result = outcomeOfEvent(state(), id);
      if (result) return { id, position, result };
      throw askAgain('the conversation hands over to its next run');
    }),
    {
      validator: (payload: unknown) => {
        const { id, payload: data } = accepted(readAppEvent(payload));
        refuseWhenClosing(state());
        const refused = id !== undefined && isKnownEvent(state(), id) ? undefined : appEventRefusal(state(), data);
        if (refused !== undefined) throw ApplicationFailure.nonRetryable(`the event is refused: ${refused}`, FAILURES.queueFull);
      },
    },
  );
  host.setHandler(parentSignal, (payload: unknown) => {
    const read = readParentOrder(payload);
    if (!read.ok) return reject('parent', read.reason);
    const { order, capability } = read.value;
    if (!state().parent || capability !== state().capability) return reject('parent', 'parent.capability is not the one of its start');
    dispatch({ kind: 'parent-ordered', order, at: host.now() });
  });
  host.setHandler(controlQuery, () => controlViewOf(state()));
  handleSetting(setModeUpdate, (payload) => ({ kind: 'mode-set', mode: accepted(readMode(payload)), at: host.now() }));
  handleSetting(setBreakpointsUpdate, (payload) => ({
    kind: 'breakpoints-set',
    breakpoints: accepted(readBreakpoints(payload)),
    at: host.now(),
  }));
  host.setHandler(
    stepUpdate,
    counted(async (payload?: unknown): Promise<StepResult> => {
      const { id = host.uuid(), scope } = accepted(readStepRequest(payload));
      if (!resultOf(id)) dispatch({ kind: 'step-requested', id, ...(scope !== undefined && { scope }), at: host.now() });
      // Taken out of stepping meanwhile, no event answers this step any more.
      await notifier.until(() => isHandingOver() || resultOf(id) !== undefined || state().control?.lock?.id !== id);
      refuseUnopened(state());
      const result = resultOf(id);
      if (result) return result;
      if (!isHandingOver())
        throw ApplicationFailure.nonRetryable('the conversation was set to auto while this step ran', FAILURES.cannotStep);
      throw askAgain('the conversation hands over to its next run');
    }),
    {
      validator: (payload?: unknown) => {
        const { id = '' } = accepted(readStepRequest(payload));
        const refused = stepRefusal(state(), id);
        if (refused !== undefined) throw ApplicationFailure.nonRetryable(refused, FAILURES.cannotStep);
      },
    },
  );
  for (const [update, name, what] of [
    [executeTruncationUpdate, 'executeTruncation', 'truncate'],
    [triggerCompactionUpdate, 'triggerCompaction', 'compact'],
  ] as const) {
    host.setHandler(
      update,
      counted(async (payload: unknown): Promise<CompactionOutcome> => {
        const { id = host.uuid(), slots } = accepted(readChosenChunks(payload, name));
        if (!compactionOutcome(state(), id))
          dispatch({ kind: 'chunks-chosen', requestId: id, what, slots: toRanges(slots), at: host.now() });
        await notifier.until(() => isHandingOver() || compactionOutcome(state(), id) !== undefined);
        refuseUnopened(state());
        const outcome = compactionOutcome(state(), id);
        if (outcome) return outcome;
        throw askAgain('the conversation hands over to its next run');
      }),
      {
        validator: (payload: unknown) => {
          const { id, slots } = accepted(readChosenChunks(payload, name));
          refuseWhenClosing(state());
          // Asked again, in a later run, it is known.
          if (id !== undefined && (isChoiceKnown(state(), id) || compactionOutcome(state(), id))) return;
          const refused = choiceRefusal(state(), slots);
          if (refused !== undefined) throw ApplicationFailure.nonRetryable(`${name} is refused: ${refused}`, FAILURES.invalidMessage);
        },
      },
    );
  }
  host.setHandler(checkTokenUsageQuery, () => tokenUsageOf(state()));
  host.setHandler(
    editQueueUpdate,
    counted((payload: unknown): Promise<{ readonly queue: QueuedEvent[] }> => {
      dispatch({ kind: 'queue-edited', edit: accepted(readQueueEdit(payload)), at: host.now() });
      return Promise.resolve({ queue: queueOf(state()) });
    }),
    {
      validator: (payload: unknown) => {
        const refused = editRefusal(state(), accepted(readQueueEdit(payload)));
        if (refused !== undefined) throw ApplicationFailure.nonRetryable(refused, FAILURES.invalidMessage);
      },
    },
  );
}

function appEventReceived({ type, payload, wait }: ReadAppEvent, id: string, at: number): ConversationEvent {
  return { kind: 'app-event-received', id, type, payload, ...(wait && { isAwaited: true }), at };
}
