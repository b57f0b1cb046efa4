/**
 * Effects of a played conversation that end as they did then, since no candidate has a part in how they ended: what a person has stopped, what
 * failed while a worker, a store or a limit was away, what reads a world that is no more. What each had written, it writes in the sandbox too.
 */
import { Context } from '@temporalio/activity';
import { ApplicationFailure, CancelledFailure, TimeoutFailure } from '@temporalio/common';
import type { Activities } from '../activities/index.js';
import type { EffectName, Effects } from '../conversation/effect.js';
import type { StepFailure } from '../conversation/outbox/writes.js';
import type { ModelStepResult } from '../conversation/turn/model-step-effects.js';
import { writeAgain } from '../heal/heal.js';
import { NO_USAGE } from '../records/message.js';
import type { Store } from '../stores/store.js';
import type { Part } from './part.js';
import { nameActivity, type RecordedEffect, type RecordedStep } from './recording.js';

export interface Playing {
  readonly present: () => Part | undefined;
  readonly store: Store;
  /** Compactions, recall and MEMORY.md are as they were. */
  readonly isRecorded: boolean;
}

type Name = Exclude<EffectName, 'model-step' | 'start-child' | 'report'>;

export function playAgain(activities: Activities, { present, store, isRecorded }: Playing): Activities {
  const used = new WeakSet<RecordedEffect>();
  const write = (part: Part, name: EffectName, input: object, output: unknown): Promise<void> =>
    part.track ? writeAgain(store, part.track.conversation.key, [{ kind: 'completed', name, input, output }]) : Promise.resolve();

  /** It failed, as far as its conversation knew, and the store had it all the same: so it is there again. */
  const commit = async (part: Part, ids: readonly string[], perform: () => Promise<unknown>): Promise<void> => {
    if (ids.some((id) => part.track?.committed(id) !== undefined)) await perform().catch(() => undefined);
  };

  const again = <N extends Name>(name: N, endsAsThen: (output: Effects[N]['output']) => boolean = () => false) => {
    const perform = activities[name] as (input: Effects[N]['input']) => Promise<Effects[N]['output']>;
    return async (input: Effects[N]['input']): Promise<Effects[N]['output']> => {
      const part = present();
      const all = part?.track?.effects(name, nameActivity(name, input)) ?? [];
      const then = all.find((one) => !used.has(one) && isSameInput(name, one.effect.input, input));
      if (!part || !then) return perform(input);
      used.add(then);
      const { ended } = then;
      if (ended?.kind === 'effect-failed') {
        await commit(part, [then.effect.id], () => perform(input));
        throw toThrown(ended.failure);
      }
      if (!ended || !endsAsThen(ended.output as Effects[N]['output'])) return perform(input);
      await write(part, name, input, ended.output);
      return ended.output as Effects[N]['output'];
    };
  };

  const modelStep: Activities['model-step'] = async (input) => {
    const part = present();
    const step = part?.begin(input, Context.current().info.attempt);
    if (!part?.track || !step) return activities['model-step'](input);
    const { result, failure = STOPPED } = step;
    if (!result) {
      await commit(part, [input.call.id, ...input.tools.map(({ callId }) => callId)], () => activities['model-step'](input));
      throw toThrown(failure);
    }
    if (!isAnswerable(step)) return repeat(part, input, result);
    try {
      const output = await activities['model-step'](input);
      return part.present()?.isRepeated ? await repeat(part, input, result) : output;
    } catch (error) {
      if (part.present()?.isRepeated) return repeat(part, input, result);
      throw error;
    }
  };
  const repeat = async (part: Part, input: object, result: ModelStepResult): Promise<ModelStepResult> => {
    await write(part, 'model-step', input, result);
    return result;
  };

  return {
    ...activities,
    'model-step': modelStep,
    'store-step': again('store-step'),
    'run-tool': again('run-tool', ({ fenced }) => fenced === true),
    compact: again('compact', () => isRecorded),
    truncate: again('truncate'),
    uncompact: again('uncompact'),
    evict: again('evict', () => isRecorded),
    rewind: again('rewind', () => true),
    'open-origin': again('open-origin', () => true),
    'look-after': again('look-after', () => true),
    'ask-memory': (input) => (isRecorded ? Promise.resolve() : activities['ask-memory'](input)),
    // A title is for lists, and no list has this one.
    title: () => Promise.resolve({ usage: NO_USAGE }),
    deliver: () => Promise.resolve(),
  };
}

const STOPPED: StepFailure = { type: 'cancelled', message: 'it was stopped', transient: false };

/** Whether the candidate says how it ends: it was not stopped, or given up, before a model had answered or refused. */
function isAnswerable({ result }: RecordedStep): boolean {
  switch (result?.kind) {
    case 'answered':
      return result.answer.fenced !== true;
    case 'failed':
      return result.failure.isInLine !== true && result.failure.type !== 'StoreUnavailable';
    case 'deferred':
      return !['stopped', 'duplicate'].includes(result.reason) && result.usedUp === undefined;
    default:
      return false;
  }
}

/** Of what decides the result: the rest are counts, which another model's answers change. */
const COUNTED = 'session leftOut context currentTurn chosen to before waiting slot origin what epoch child'.split(' ');

function isSameInput(name: Name, recorded: object, played: object): boolean {
  const pick = (input: object): string => {
    if (name === 'run-tool') {
      const { name: tool, plan } = input as Effects['run-tool']['input'];
      return JSON.stringify([tool, plan.fingerprint]);
    }
    if (name !== 'store-step') return JSON.stringify(COUNTED.map((field) => (input as Record<string, unknown>)[field] ?? null));
    const { write, rehydrate } = input as Effects['store-step']['input'];
    const slots = [...write.messages, ...write.entries].map(({ slot }) => slot);
    return JSON.stringify([slots, write.settle.map(({ effect }) => effect), rehydrate]);
  };
  return pick(recorded) === pick(played);
}

/** What its workflow takes for that failure; nothing of it is tried again. */
function toThrown({ type, message, retryAfterMs, unbegun }: StepFailure): Error {
  if (unbegun && type === 'timeout') return new TimeoutFailure(message, undefined, 'SCHEDULE_TO_START');
  if (unbegun) return new CancelledFailure(message, ['ACTIVITY_ID_NOT_STARTED']);
  return ApplicationFailure.create({
    type,
    message,
    nonRetryable: true,
    ...(retryAfterMs !== undefined && { details: [{ retryAfterMs }] }),
  });
}
