/** Starts steps and turns what comes of them into events. Nothing here decides. */
import { CancellationScope, upsertSearchAttributes } from '@temporalio/workflow';
import type { ConversationEvent } from '../conversation/event.js';
import type { ToolFinished } from '../conversation/tool-effects.js';
import type { createReducerRegistry } from '../conversation/reducers.js';
import type { Step, ToolRun } from '../conversation/next-step.js';
import { TOLD_LAST_RULES } from '../conversation/rules.js';
import {
  askMemory,
  callModel,
  compact,
  heal,
  lookAfter,
  notify,
  openOrigin,
  persist,
  putAway,
  record,
  rewind,
  runLocalTool,
  runTool,
  truncate,
  uncompact,
} from './activities.js';
import { now } from './clock.js';
import type { Handled } from './handlers.js';
import { childSignal, decideSignal, interruptSignal } from './messages.js';
import { report, signalOther, startSubAgent } from './relatives.js';
import { failureOf } from './failure.js';
import { toPairs } from './search-attributes.js';
import { toldLast } from './told-last.js';

type Performed = Exclude<Step, { kind: 'wait' | 'hand-over' | 'finish' | 'refuse' }>;

export interface Performer {
  start(step: Performed): void;
}

export function createPerformer(
  tell: (event: ConversationEvent) => void,
  resultOf: Handled['resultOf'],
  reduce: ReturnType<typeof createReducerRegistry>,
  rules: number,
): Performer {
  /** A stop is for all that is in flight; what starts after it has a scope of its own. */
  let scope = new CancellationScope();

  /** `work` tells what came of it, and never rejects. */
  const stoppable = (work: () => Promise<void>): void => void scope.run(work);
  /** One promise and no more: a replay pays for each. */
  const tellEnd = <T>(
    work: Promise<T>,
    done: (result: T) => ConversationEvent,
    failed: (error: unknown) => ConversationEvent,
  ): Promise<void> =>
    work.then(
      (result) => tell(done(result)),
      (error: unknown) => tell(failed(error)),
    );

  /** Every local step goes through it (N5). */
  const local: typeof toldLast = rules < TOLD_LAST_RULES ? (work) => work : toldLast;

  return {
    start(step) {
      const at = now();
      switch (step.kind) {
        case 'record':
          tell({ kind: 'record-started', at });
          return void tellEnd(
            local(record(step.input)),
            (recorded) => ({ kind: 'recorded', recorded, at: now() }),
            (error) => ({ kind: 'record-failed', failure: failureOf(error), at: now() }),
          );
        case 'persist':
          tell({ kind: 'persist-started', at });
          return void tellEnd(
            local(persist({ entries: step.entries, identity: step.identity })),
            () => ({ kind: 'persisted', slots: step.entries.map((entry) => entry.slot), at: now() }),
            (error) => ({ kind: 'persist-failed', failure: failureOf(error), at: now() }),
          );
        case 'heal':
          tell({ kind: 'heal-started', at });
          // Whether it helped shows when the store is read again.
          return void tellEnd(heal(step.input), healEnded, healEnded);
        case 'call-model': {
          const { call } = step.input;
          tell({ kind: 'model-call-started', call, at });
          return stoppable(() =>
            tellEnd(
              callModel(step.input, step.summary),
              (answer) => ({ kind: 'model-answered', answer, at: now() }),
              (error) => ({ kind: 'model-call-failed', call, failure: failureOf(error), at: now() }),
            ),
          );
        }
        case 'run-tools':
          tell({ kind: 'tools-started', callIds: step.runs.map(({ input }) => input.callId), at });
          for (const run of step.runs) {
            const { callId } = run.input;
            stoppable(() =>
              tellEnd(
                step.local ? runLocallyFirst(run, local) : runTool(run),
                (result) => ({ kind: 'tool-finished', result, at: now() }),
                (error) => ({ kind: 'tool-run-failed', callId, failure: failureOf(error), at: now() }),
              ),
            );
          }
          return;
        case 'compact': {
          const { epoch } = step.input;
          tell({ kind: 'compact-started', epoch, at });
          return void tellEnd(
            compact(step.input, step.summary),
            (result) => ({ kind: 'compacted', result, at: now() }),
            (error) => ({ kind: 'compact-failed', epoch, failure: failureOf(error), at: now() }),
          );
        }
        case 'truncate': {
          const { epoch } = step.input;
          tell({ kind: 'truncate-started', epoch, at });
          return void tellEnd(
            truncate(step.input, step.summary),
            (result) => ({ kind: 'truncated', result, at: now() }),
            (error) => ({ kind: 'truncate-failed', epoch, failure: failureOf(error), at: now() }),
          );
        }
        case 'reduce':
          return tell({ kind: 'app-event-reduced', id: step.event.id, reduced: reduce(step.event, step.view), at });
        case 'uncompact': {
          const { epoch } = step.input;
          tell({ kind: 'uncompact-started', epoch, at });
          return void tellEnd(
            local(uncompact(step.input)),
            () => ({ kind: 'uncompacted', epoch, at: now() }),
            (error) => ({ kind: 'uncompact-failed', epoch, failure: failureOf(error), at: now() }),
          );
        }
        case 'stop':
          scope.cancel();
          scope = new CancellationScope();
          for (const child of step.children) void signalOther(child, interruptSignal, { reason: 'its parent was stopped' });
          return tell({ kind: 'stop-sent', at });
        case 'tell-attributes': {
          const { AgentStatus: status, AgentTurns: turns } = step.attributes;
          upsertSearchAttributes(toPairs(step.attributes));
          return tell({ kind: 'attributes-told', status, turns, at });
        }
        case 'consolidate':
          return tell({ kind: 'consolidated', consolidation: 'nothing-to-do', at });
        case 'ask-memory': {
          const { requestId } = step.input.request;
          tell({ kind: 'memory-ask-started', requestId, at });
          return void tellEnd(
            askMemory(step.input, step.summary),
            () => ({ kind: 'memory-asked', requestId, at: now() }),
            (error) => ({ kind: 'memory-ask-failed', requestId, failure: failureOf(error), at: now() }),
          );
        }
        case 'open-origin':
          tell({ kind: 'origin-open-started', at });
          return void tellEnd(
            openOrigin(step.input, step.summary),
            (result) => ({ kind: 'origin-opened', result, at: now() }),
            (error) => ({ kind: 'origin-open-failed', failure: failureOf(error), at: now() }),
          );
        case 'rewind': {
          const { requestId } = step.input;
          tell({ kind: 'rewind-started', requestId, at });
          return void tellEnd(
            rewind(step.input, step.summary),
            (result) => ({ kind: 'rewound', requestId, result, at: now() }),
            (error) => ({ kind: 'rewind-failed', requestId, failure: failureOf(error), at: now() }),
          );
        }
        case 'put-away':
          tell({ kind: 'put-away-started', at });
          return void tellEnd(
            local(putAway(step.input)),
            (result) => ({ kind: 'put-away', result, at: now() }),
            (error) => ({ kind: 'put-away-failed', failure: failureOf(error), at: now() }),
          );
        case 'start-child':
          return startSubAgent(step.start, tell);
        case 'look-after': {
          const { callId, child } = step.look;
          tell({ kind: 'look-started', callId, at });
          return void tellEnd(
            lookAfter(child),
            (status) => ({ kind: 'looked', callId, status, at: now() }),
            () => ({ kind: 'looked', callId, status: null, at: now() }),
          );
        }
        case 'tell-children':
          for (const { child, decision } of step.told) void signalOther(child, decideSignal, decision);
          return tell({ kind: 'children-told', at });
        case 'tell-parent': {
          const { parent, news } = step;
          void signalOther(parent.conversation, childSignal, news);
          return tell({ kind: 'parent-told', asks: JSON.stringify(news.kind === 'asks' ? news.asks : []), at });
        }
        case 'report':
          tell({ kind: 'report-started', at });
          return void report(step.parent, step.ended, resultOf).then(() => tell({ kind: 'reported', at: now() }));
        case 'notify':
          tell({ kind: 'notify-started', callIds: step.input.waiting.map(({ callId }) => callId), at });
          // Nobody waits for it; that it failed is in the Temporal UI.
          return void tellEnd(notify(step.input, step.summary), notified, notified);
        default:
          return step satisfies never;
      }
    },
  };
}

function notified(): ConversationEvent {
  return { kind: 'notified', at: now() };
}

function healEnded(): ConversationEvent {
  return { kind: 'heal-ended', at: now() };
}

/** A local run has one second and no retries; when that is not enough, the ordinary way has both. */
async function runLocallyFirst(run: ToolRun, local: typeof toldLast): Promise<ToolFinished> {
  try {
    return await local(runLocalTool(run.input));
  } catch (error) {
    if (failureOf(error).transient) return runTool(run);
    throw error;
  }
}
