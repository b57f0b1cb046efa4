/** The step engine's messages (seed 004): mode, step, breakpoints, the queue by hand, and events of the application's own. */
import { ApplicationFailure, setHandler, uuid4 } from '@temporalio/workflow';
import type { QueuedEvent } from '../conversation/protocol/contract.js';
import { isKnownEvent, appEventRefusal } from '../conversation/inbox/app-events.js';
import { readAppEvent, readBreakpoints, readMode, readQueueEdit } from '../conversation/protocol/control-input.js';
import { stepRefusal } from '../conversation/stepping/control.js';
import { readOptionalText } from '../conversation/protocol/input.js';
import { editRefusal } from '../conversation/inbox/queue-editing.js';
import { queuedCount } from '../conversation/inbox/spill.js';
import { controlOf, controlViewOf, queueOf } from '../conversation/views/view.js';
import { now } from './clock.js';
import { type Handling, accepted, askAgain, refuseUnopened, refuseWhenClosing } from './handling.js';
import {
  controlQuery,
  dispatchUpdate,
  editQueueUpdate,
  eventSignal,
  FAILURES,
  setBreakpointsUpdate,
  setModeUpdate,
  stepUpdate,
} from './messages.js';
import type { ControlStatus, StepResult } from '../conversation/protocol/stepping.js';

export function handleStepping({ state, dispatch, notifier, isHandingOver, counted, reject }: Omit<Handling, 'accept'>): void {
  const resultOf = (id: string): StepResult | undefined => state().control?.results.find(({ stepId }) => stepId === id);

  setHandler(eventSignal, (payload: unknown) => {
    const event = readAppEvent(payload);
    if (event.ok) dispatch({ kind: 'app-event-received', ...event.value, id: event.value.id ?? uuid4(), at: now() });
    else reject('event', event.reason);
  });
  setHandler(
    dispatchUpdate,
    counted((payload: unknown) => {
      const event = accepted(readAppEvent(payload));
      const id = event.id ?? uuid4();
      const position = queuedCount(state().queue);
      dispatch({ kind: 'app-event-received', ...event, id, at: now() });
      return Promise.resolve({ id, position });
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
  setHandler(controlQuery, () => controlViewOf(state()));
  setHandler(
    setModeUpdate,
    counted((payload: unknown): Promise<ControlStatus> => {
      dispatch({ kind: 'mode-set', mode: accepted(readMode(payload)), at: now() });
      return Promise.resolve(controlOf(state()));
    }),
    { validator: (payload: unknown) => void accepted(readMode(payload)) },
  );
  setHandler(
    setBreakpointsUpdate,
    counted((payload: unknown): Promise<ControlStatus> => {
      dispatch({ kind: 'breakpoints-set', breakpoints: accepted(readBreakpoints(payload)), at: now() });
      return Promise.resolve(controlOf(state()));
    }),
    { validator: (payload: unknown) => void accepted(readBreakpoints(payload)) },
  );
  setHandler(
    stepUpdate,
    counted(async (payload?: unknown): Promise<StepResult> => {
      const id = accepted(readOptionalText(payload, 'step', 'id')) ?? uuid4();
      if (!resultOf(id)) dispatch({ kind: 'step-requested', id, at: now() });
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
        const id = accepted(readOptionalText(payload, 'step', 'id')) ?? '';
        const refused = stepRefusal(state(), id);
        if (refused !== undefined) throw ApplicationFailure.nonRetryable(refused, FAILURES.cannotStep);
      },
    },
  );
  setHandler(
    editQueueUpdate,
    counted((payload: unknown): Promise<{ readonly queue: QueuedEvent[] }> => {
      dispatch({ kind: 'queue-edited', edit: accepted(readQueueEdit(payload)), at: now() });
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
