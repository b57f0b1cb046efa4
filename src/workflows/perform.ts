/** Starts steps and turns what comes of them into events. Nothing here decides. */
import { CancellationScope, upsertSearchAttributes } from '@temporalio/workflow';
import { policyOf } from '../conversation/effect-table.js';
import type { ConversationEvent } from '../conversation/event.js';
import type { Effect } from '../conversation/lifecycle.js';
import type { Step } from '../conversation/next-step.js';
import type { createReducerRegistry } from '../conversation/inbox/reducers.js';
import { runActivity, type ActivityEffect } from './activities.js';
import { now } from './clock.js';
import { failureOf } from './failure.js';
import type { Handled } from './handlers.js';
import { childSignal, decideSignal, interruptSignal } from './messages.js';
import { report, signalOther, startSubAgent } from './relatives.js';
import { toPairs } from './search-attributes.js';

type Performed = Exclude<Step, { kind: 'wait' | 'hand-over' | 'finish' | 'refuse' }>;

export interface Performer {
  start(step: Performed): void;
}

export function createPerformer(
  dispatch: (event: ConversationEvent) => void,
  resultOf: Handled['resultOf'],
  reduce: ReturnType<typeof createReducerRegistry>,
): Performer {
  /** A stop is for all that is in flight; what starts after it has a scope of its own. */
  let scope = new CancellationScope();

  const work = (effect: Effect): Promise<unknown> => {
    switch (effect.effect) {
      case 'start-child':
        return startSubAgent(effect.input, dispatch);
      case 'report':
        return report(effect.input.parent, effect.input.ended, resultOf);
      default:
        return runActivity(effect as ActivityEffect);
    }
  };
  /** One promise and no more: a replay pays for each. */
  const perform = (effect: Effect): Promise<void> => {
    const { effect: name, id } = effect;
    return work(effect).then(
      // The activity of that name answers with this effect's output.
      (output) => dispatch({ kind: 'effect-completed', effect: name, id, output, at: now() } as ConversationEvent),
      (error: unknown) => dispatch({ kind: 'effect-failed', effect: name, id, failure: failureOf(error), at: now() }),
    );
  };

  return {
    start(step) {
      const at = now();
      switch (step.kind) {
        case 'effect': {
          const { kind: _, ...effect } = step;
          dispatch({ kind: 'effect-started', ...effect, at });
          return void (policyOf(effect)?.isStoppable ? scope.run(() => perform(effect)) : perform(effect));
        }
        case 'begin-turn':
          return dispatch({ kind: 'turn-begun', at });
        case 'reduce':
          return dispatch({ kind: 'app-event-reduced', id: step.event.id, reduced: reduce(step.event, step.view), at });
        case 'stop':
          scope.cancel();
          scope = new CancellationScope();
          for (const child of step.children) void signalOther(child, interruptSignal, { reason: 'its parent was stopped' });
          return dispatch({ kind: 'stop-sent', at });
        case 'tell-attributes': {
          const { AgentStatus: status, AgentTurns: turns } = step.attributes;
          upsertSearchAttributes(toPairs(step.attributes));
          return dispatch({ kind: 'attributes-told', status, turns, at });
        }
        case 'tell-children':
          for (const { child, decision } of step.told) void signalOther(child, decideSignal, decision);
          return dispatch({ kind: 'children-told', at });
        case 'tell-parent': {
          const { parent, news } = step;
          void signalOther(parent.conversation, childSignal, news);
          return dispatch({ kind: 'parent-told', asks: JSON.stringify(news.kind === 'asks' ? news.asks : []), at });
        }
        default:
          return step satisfies never;
      }
    },
  };
}
