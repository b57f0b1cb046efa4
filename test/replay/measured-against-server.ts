/** Loaded beside the workflows: says after each activation how long history is by our count and by Temporal's. */
import { proxySinks, workflowInfo, type WorkflowInterceptors } from '@temporalio/workflow';
import type { MeasuredHistory } from '../../src/workflows/host.js';
import type { MeasureHistory } from '../../src/workflows/measured-history.js';

type Lengths = { readonly measured: MeasuredHistory; readonly server: MeasuredHistory };
export type LengthSinks = { readonly lengths: { seen(lengths: Lengths): void } };

const { lengths } = proxySinks<LengthSinks>();

export function interceptors(): WorkflowInterceptors {
  let measure: MeasureHistory | undefined;
  return {
    inbound: [
      {
        execute(input, next) {
          measure = input.args[1] as MeasureHistory;
          return next(input);
        },
      },
    ],
    internals: [
      {
        concludeActivation(input, next) {
          const { historyLength, historySize, unsafe } = workflowInfo();
          if (measure && unsafe.isReplayingHistoryEvents)
            lengths.seen({ measured: measure(), server: { events: historyLength, bytes: historySize } });
          return next(input);
        },
      },
    ],
  };
}
