/**
 * How a worker keeps to the limits of providers, together with all others (stores/rate-limits.ts): before a call it takes room, and from the
 * answer's headers it learns. A call without room is not made: who wanted it comes back.
 *
 * @rule activities/limiter-never-stops: Limits are kept where the store can say them. Without it calls go out as if there were none, and
 *   what they have used is learnt from the next answer. (test: test/activities/rate-limiter.test.ts)
 * @rule activities/room-given-back: The room of a call that has ended is given back also when the store was away meanwhile: as soon as it
 *   answers, and for as long as it would hold the room. (test: test/activities/rate-limiter.test.ts)
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Context, log } from '@temporalio/activity';
import { splitChildId } from '../conversation/protocol/limits.js';
import { splitModel, type Models } from '../models/known-models.js';
import { ModelFailure, withStream, type Model, type ModelRequest, type ModelUsage, type StreamOptions } from '../models/model.js';
import { readTenant } from '../records/identity.js';
import { answerText, shownText } from '../records/message.js';
import { describePlace, LEASE_MS, type PlaceInLine, type SeenLimits } from '../records/rate-limit.js';
import { estimateTokens } from '../records/token-estimate.js';
import type { LimitClaim, Outcome, RateLimits } from '../stores/store.js';
import { countLimitWait } from '../telemetry/metrics.js';
import { errorMessage } from '../platform/errors.js';

/** Tokens of an answer that is not there yet; what a provider counts for them is learnt. */
const EXPECTED_ANSWER = 1_000;
/** So long one worker takes a provider that says nothing of limits for one without any, and the store for one that is away. */
const FREE_MS = 30_000;
const AWAY_MS = 10_000;
/** Of a provider that refuses and does not say for how long. */
const REFUSED_MS = 2_000;
/** A limit of a day or a month: a call each minute finds out whether it is over. */
const MAX_REFUSED_MS = 60_000;
/** Between two tries to give room back. */
const RELEASED_MS = 1_000;
/** A wait that is spent where the call is. */
const SHORT_MS = 1_000;

export interface LimitedCall extends Pick<LimitClaim, 'tenant' | 'conversation' | 'isBackground'> {
  /** Of the call, over all attempts. */
  readonly id: string;
  /** `provider/model` */
  readonly model: string;
  /** Tokens, by estimate. */
  readonly input: number;
}

/** Room for one call. */
export interface LimitRoom {
  readonly onLimits: (seen: SeenLimits) => void;
  /** Once the call has ended; again it does nothing. */
  readonly done: (ended: { readonly usage: Pick<ModelUsage, 'inputTokens' | 'outputTokens'> } | { readonly error: unknown }) => void;
}

export type Place = PlaceInLine & {
  /** When to come back. */
  readonly ms: number;
  /** For people. */
  readonly words: string;
};

export interface RateLimiter {
  /** Never rejects (activities/limiter-never-stops). */
  take(call: LimitedCall): Promise<{ readonly room: LimitRoom } | { readonly place: Place }>;
}

export function createRateLimiter(
  { limits, models }: { readonly limits: RateLimits; readonly models: Models },
  now: () => number = Date.now,
): RateLimiter {
  const freeUntil = new Map<string, number>();
  let awayUntil = 0;
  const noteAway = (error: unknown): void => {
    if (now() >= awayUntil) log.warn('limits of providers are not kept: the store does not say them', { reason: errorMessage(error) });
    awayUntil = now() + AWAY_MS;
  };

  /** `unknown`: the store did not say; it may have given room all the same, or a place in line. */
  const openRoom = (of: string, claim: LimitClaim, given: 'granted' | 'free' | 'unknown'): LimitRoom => {
    let last: Promise<unknown> = Promise.resolve();
    // In their order, and beside the call: it waits for none of them.
    const tell = (work: () => Promise<unknown>): void => {
      last = last.then(() => (now() < awayUntil ? undefined : work())).catch(noteAway);
    };
    let isDone = false;
    const renewal = given === 'granted' ? setInterval(() => tell(() => limits.take(of, claim)), LEASE_MS / 3).unref() : undefined;
    const release = ({ refusedMs, ...outcome }: Outcome): void => {
      const ended = now();
      // A refusal counts from when it came, however late it is told.
      const sinceThen = (): Outcome => ({
        ...outcome,
        ...(refusedMs !== undefined && { refusedMs: Math.max(0, ended + refusedMs - now()) }),
      });
      last = last.then(async () => {
        for (; now() < ended + LEASE_MS; await sleep(RELEASED_MS, undefined, { ref: false })) {
          if (now() < awayUntil) continue;
          try {
            return void (await limits.release(of, claim.id, sinceThen()));
          } catch (error) {
            noteAway(error);
          }
        }
      });
    };
    return {
      onLimits(seen) {
        if (Object.keys(seen).length === 0) return;
        freeUntil.delete(of);
        tell(() => limits.learn(of, claim.id, seen, claim.set));
      },
      done(ended) {
        if (isDone) return;
        isDone = true;
        clearInterval(renewal);
        const refusedMs = 'error' in ended ? refusedFor(ended.error) : undefined;
        if (refusedMs !== undefined) freeUntil.delete(of);
        if (refusedMs !== undefined) release({ refusedMs });
        else if (given !== 'free') release('usage' in ended ? { input: ended.usage.inputTokens, output: ended.usage.outputTokens } : {});
      },
    };
  };

  return {
    async take({ model, ...call }) {
      const of = nameLimits(models, model);
      const set = models.limits(model).rateLimits ?? {};
      const claim: LimitClaim = { ...call, output: EXPECTED_ANSWER, set };
      const isFree = Object.keys(set).length === 0 && (freeUntil.get(of) ?? 0) > now();
      if (isFree || now() < awayUntil) return { room: openRoom(of, claim, isFree ? 'free' : 'unknown') };
      try {
        const taken = await limits.take(of, claim);
        if (taken.status === 'free') freeUntil.set(of, now() + FREE_MS);
        if (taken.status !== 'wait') return { room: openRoom(of, claim, taken.status) };
        countLimitWait(model, call.isBackground, taken.ms);
        return { place: { ...taken, words: describePlace(taken, model) } };
      } catch (error) {
        noteAway(error);
        return { room: openRoom(of, claim, 'unknown') };
      }
    },
  };
}

/** Both of OpenAI's APIs share its limits. */
function nameLimits(models: Models, name: string): string {
  const { provider, model } = splitModel(name);
  return `${provider === 'openai-responses' ? 'openai' : provider}/${model}#${models(name).account ?? ''}`;
}

function refusedFor(error: unknown): number | undefined {
  if (!(error instanceof ModelFailure) || error.kind !== 'rate-limit') return undefined;
  return Math.min(error.options.retryAfterMs ?? REFUSED_MS, MAX_REFUSED_MS);
}

/** Whose call it is, by the running activity: a sub-agent's or a schedule's conversation waits behind those of people. */
export function describeCaller(scope: string): Pick<LimitedCall, 'tenant' | 'conversation' | 'isBackground'> {
  const { workflowExecution, activityType } = Context.current().info;
  const workflowId = workflowExecution?.workflowId ?? '';
  const [conversation, ...below] = splitChildId(workflowId);
  const isBackground = below.length > 0 || BACKGROUND.includes(activityType) || SCHEDULED.test(conversation);
  return { tenant: readTenant(scope) ?? '', conversation, isBackground };
}

/** Nothing waits for these at once. */
const BACKGROUND: readonly string[] = ['title', 'consolidate', 'care'];
/** As Temporal names what a schedule starts. */
const SCHEDULED = /-\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$/;

/** The same models, for calls beside a conversation's answers: those that take room themselves say so by `onLimits`. */
export function withinLimits(models: Models, limiter: RateLimiter | undefined, scope: string): Models {
  if (!limiter) return models;
  let calls = 0;
  const limited = (name: string): Model => {
    const model = models(name);
    return withStream(model, async (request, options) => {
      if (options.onLimits) return model.stream(request, options);
      const { workflowExecution, activityId } = Context.current().info;
      const id = `${workflowExecution?.runId ?? ''}/${activityId}/${calls++}`;
      const room = await takeOrFail(limiter, { id, model: name, input: measure(request), ...describeCaller(scope) }, options.signal);
      return callInRoom(room, (onLimits) => model.stream(request, { ...options, onLimits }));
    });
  };
  return Object.assign(limited, { limits: models.limits });
}

/** A wait that is longer goes back to Temporal, or to the workflow: it holds no slot of the worker. */
async function takeOrFail(limiter: RateLimiter, call: LimitedCall, signal: AbortSignal): Promise<LimitRoom> {
  for (let tries = 0; ; tries++) {
    const taken = await limiter.take(call);
    if ('room' in taken) return taken.room;
    const { ms, words } = taken.place;
    if (ms > SHORT_MS || tries > 1 || signal.aborted) throw new ModelFailure('rate-limit', words, { retryAfterMs: ms });
    await sleep(ms);
  }
}

export async function callInRoom<T extends { readonly usage: ModelUsage }>(
  room: LimitRoom,
  call: (onLimits: NonNullable<StreamOptions['onLimits']>) => Promise<T>,
): Promise<T> {
  try {
    const answer = await call(room.onLimits);
    room.done({ usage: answer.usage });
    return answer;
  } catch (error) {
    room.done({ error });
    throw error;
  }
}

function measure({ system, messages }: ModelRequest): number {
  const texts = messages.map((message) => (message.role === 'assistant' ? answerText(message) : shownText(message.text)));
  return [system, ...texts].reduce((sum, text) => sum + estimateTokens(text), 0);
}
