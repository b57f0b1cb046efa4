/**
 * How long a run's history is, by what the run has seen and done.
 *
 * Temporal gives a length with each task, but not the same on replay: tasks that timed out have made it longer, and what was
 * decided in an activation of theirs (early-questions.ts) was decided with a shorter one. A hand-over that went by it could be due on
 * replay and not live. Jobs and commands are the same both times, so they are what is counted here: all events but those of tasks that
 * failed or timed out, of which Temporal writes at most three for each task.
 */
import { workflowInfo, type WorkflowInterceptors } from '@temporalio/workflow';
import { MEMORY_WORKFLOW_TYPE } from '../conversation/protocol/memory-contract.js';
import { accepted, eventsOfCommands, eventsOfJob } from './history-events.js';
import type { MeasuredHistory } from './host.js';
import { WORKFLOW_TYPE } from './messages.js';

/** The second argument of a workflow function, which only the interceptor below gives. */
export type MeasureHistory = () => MeasuredHistory;

/** Of an event without its payloads. Those of commands are not counted: another version may word them with other bytes. */
const BYTES_OF_EVENT = 200;

export function interceptors(): WorkflowInterceptors {
  const { workflowType } = workflowInfo();
  // An application's workflows in the same bundle keep their arguments.
  if (workflowType !== WORKFLOW_TYPE && workflowType !== MEMORY_WORKFLOW_TYPE) return {};
  let past = 0;
  let present = 0;
  let payloads = 0;
  let isQuestion = false;
  /** Bytes of updates that the present task has brought. */
  let updateBytes = new Map<string, number>();
  const measure: MeasureHistory = () => {
    // A task has been scheduled and started when it is seen.
    const events = past + present + 2;
    return { events, bytes: events * BYTES_OF_EVENT + payloads };
  };
  return {
    inbound: [{ execute: (input, next) => next({ ...input, args: [input.args[0], measure] }) }],
    internals: [
      {
        activate(input, next) {
          const jobs = input.activation.jobs ?? [];
          isQuestion = jobs.some(({ queryWorkflow }) => queryWorkflow);
          if (!isQuestion) {
            present = jobs.reduce((sum, job) => sum + eventsOfJob(job), 0);
            payloads += jobs.reduce((sum, job) => sum + (eventsOfJob(job) > 0 ? bytesIn(job) : 0), 0);
            updateBytes = new Map(jobs.flatMap((job) => (job.doUpdate ? [[job.doUpdate.protocolInstanceId ?? '', bytesIn(job)]] : [])));
          }
          return next(input);
        },
        concludeActivation(input, next) {
          const output = next(input);
          if (isQuestion) return output;
          for (const id of accepted(output.commands)) payloads += updateBytes.get(id) ?? 0;
          const made = present + eventsOfCommands(output.commands, new Set(updateBytes.keys())).most;
          // A task with nothing but updates that are refused is not in history.
          if (made > 0) past += made + 3;
          present = 0;
          return output;
        },
      },
    ],
  };
}

/** For a run whose worker was made without the interceptor. */
export const measureByServer: MeasureHistory = () => {
  const { historyLength, historySize } = workflowInfo();
  return { events: historyLength, bytes: historySize };
};

function bytesIn(value: unknown): number {
  // What comes from outside the sandbox is no instance of its classes.
  if (ArrayBuffer.isView(value)) return value.byteLength;
  if (typeof value !== 'object' || value === null) return 0;
  return Object.values(value).reduce((sum: number, part) => sum + bytesIn(part), 0);
}
