/** One question to a model beside any conversation, with a schema for its answer where the provider has that. */
import { createHash } from 'node:crypto';
import { log, type Context } from '@temporalio/activity';
import type { AgentConfig } from '../agents/agent-config.js';
import { shownText, type Usage, addUsage, NO_USAGE } from '../records/message.js';
import { measureTokens } from '../records/token-estimate.js';
import type { Ask } from '../memory/long-record.js';
import { ModelFailure, type AnswerSchema, type ModelRequest, type ModelResponse, type ModelUsage } from '../models/model.js';
import { withCost, splitModel, type Models } from '../models/known-models.js';
import { isModelAway } from '../records/turn-end.js';
import { countFallback } from '../telemetry/metrics.js';
import type { ConversationDependencies } from './dependencies.js';

/** Of what estimates allow in one question: they miss by less. */
const ESTIMATED_SHARE = 0.75;
const MIN_CHARACTERS = 4_000;
const MAX_HALVED = 4;

export function isTooMuch(error: unknown): boolean {
  return error instanceof ModelFailure && (error.kind === 'too-large' || error.kind === 'context-full');
}

export interface Room {
  readonly tokens: number;
  /** What the question is about: their script says how many characters these tokens are. */
  readonly texts: readonly string[];
  /** Tokens of an estimated token, as a conversation has learnt it. */
  readonly tokenRatio?: number | undefined;
}

/**
 * `question` with as many characters as there is room for. Estimates are estimates: a model that reports too much input gets half
 * of it, a few times; `isLast` says that no more questions follow.
 */
export async function askWithLess<T>(room: Room, question: (maxCharacters: number, isLast: boolean) => Promise<T>): Promise<T> {
  for (let most = charactersIn(room), halved = 0; ; most /= 2, halved++) {
    const isLast = halved === MAX_HALVED;
    try {
      return await question(Math.max(MIN_CHARACTERS, Math.floor(most)), isLast);
    } catch (error) {
      if (isLast || !isTooMuch(error)) throw error;
    }
  }
}

function charactersIn({ tokens, texts, tokenRatio = 1 }: Room): number {
  const characters = texts.reduce((sum, { length }) => sum + length, 0);
  const estimated = texts.reduce((sum, text) => sum + measureTokens(text), 0) * tokenRatio;
  return (estimated === 0 ? 4 * tokens : (tokens * characters) / estimated) * ESTIMATED_SHARE;
}

/**
 * Which model answers beside a conversation: the agent's `summaryModel`, or the model that the conversation has; where that is one of a
 * list, those after it too (fallback.ts). Without a list, or where a person has chosen the model, it alone.
 */
export function summarizers(
  { circuits }: Pick<ConversationDependencies, 'circuits'>,
  { context: { summaryModel } }: Pick<AgentConfig, 'context'>,
  { model, fallback }: { readonly model: string; readonly fallback?: readonly string[] | undefined },
): Pick<Parameters<typeof createAsker>[0], 'name' | 'others' | 'circuits'> {
  return { name: summaryModel ?? model, ...(fallback?.length && { others: [model, ...fallback], circuits }) };
}

export interface Asker {
  readonly ask: Ask;
  /** What all questions so far have taken. */
  readonly spent: () => Usage;
  /** Which model has answered last; before that the first. */
  readonly model: () => string;
}

export function createAsker({
  models,
  name,
  others = [],
  circuits,
  activity,
  maxTokens,
  contextWindow,
  answerSchema,
  signal,
}: {
  readonly models: Models;
  /** `provider/model`; one that cannot be had fails the question. */
  readonly name: string;
  /** Called in its place, in their order, where it cannot answer now (fallback.ts). */
  readonly others?: readonly string[];
  readonly circuits?: ConversationDependencies['circuits'];
  readonly activity: Context;
  /** Beside the activity's signal: questions end with it. */
  readonly signal?: AbortSignal;
  readonly maxTokens: number;
  /** Of a model; read when there is a question. */
  readonly contextWindow: (name: string) => Promise<number | undefined>;
  /** Absent: the answer is prose. */
  readonly answerSchema?: AnswerSchema;
}): Asker {
  let usage: Usage = NO_USAGE;
  let answeredBy = name;
  const candidates = [name, ...others.filter((other) => other !== name)];
  const options = {
    signal: signal ? AbortSignal.any([activity.cancellationSignal, signal]) : activity.cancellationSignal,
    onDelta: () => undefined,
  };
  const askOne = async (candidate: string, system: string, text: string): Promise<string> => {
    const count = (cost: ModelUsage): void => {
      usage = addUsage(usage, withCost(models.limits(candidate), cost));
    };
    const room = await contextWindow(candidate);
    const request: ModelRequest = {
      model: splitModel(candidate).model,
      maxTokens,
      ...(room !== undefined && { contextWindow: room }),
      system,
      tools: [],
      messages: [{ role: 'user', text }],
    };
    const chosen = models(candidate);
    const counted = (sent: ModelRequest): Promise<ModelResponse> =>
      chosen.stream(sent, options).catch((error: unknown) => {
        if (error instanceof ModelFailure && error.options.usage) count(error.options.usage);
        throw error;
      });
    const answer = await counted({ ...request, ...(answerSchema && { answerSchema }) }).catch((error: unknown) => {
      // What answers by this name may be another server, which knows no schemas.
      if (answerSchema && error instanceof ModelFailure && error.kind === 'invalid-request') return counted(request);
      throw error;
    });
    count(answer.usage);
    return answer.blocks.flatMap((block) => (block.kind === 'text' ? [shownText(block.text)] : [])).join('');
  };
  return {
    spent: () => usage,
    model: () => answeredBy,
    ask: async (system, text) => {
      for (const [at, candidate] of candidates.entries()) {
        const next = candidates[at + 1];
        if (next !== undefined && circuits?.refusal(candidate)) continue;
        try {
          const answer = await askOne(candidate, system, text);
          circuits?.note(candidate);
          answeredBy = candidate;
          return answer;
        } catch (error) {
          circuits?.note(candidate, error);
          if (next === undefined || !(error instanceof ModelFailure) || !isModelAway(error.kind)) throw error;
          countFallback({ from: candidate, to: next, reason: error.kind });
          log.warn('the next model of the list is called', { from: candidate, to: next, reason: error.kind });
        }
      }
      throw new Error('the last model of a list is always called');
    },
  };
}

// What an activity has paid before an attempt of it failed: the next attempt counts it, and asks nothing again that was answered. It goes
// along with heartbeats, which outlive the worker.

/** All answers together, in characters: a heartbeat is a small thing. */
const KEPT_CHARACTERS = 128 * 1024;

interface Paid {
  readonly usage: Usage;
  /** By the hash of the question. */
  readonly answers: Readonly<Record<string, string>>;
}

export interface PriorAttempts {
  /** Of this attempt and those before it. */
  readonly spent: () => Usage;
  /** For heartbeats. */
  readonly details: () => Paid;
  /** The same questions, counted; `keeps`: one that was answered before is not sent again. */
  readonly counted: (asker: Asker, options?: { readonly keeps?: boolean }) => Ask;
}

export function createPriorAttempts(
  activity: Pick<Context, 'heartbeat'> & { readonly info: Pick<Context['info'], 'heartbeatDetails'> },
): PriorAttempts {
  const before = paidIn(activity.info.heartbeatDetails);
  const answers = new Map(Object.entries(before.answers));
  const askers = new Set<Asker>();
  const spent = (): Usage => [...askers].reduce((sum, asker) => addUsage(sum, asker.spent()), before.usage);
  const details = (): Paid => ({ usage: spent(), answers: Object.fromEntries(answers) });
  const hasRoomFor = (text: string): boolean =>
    [...answers.values()].reduce((sum, { length }) => sum + length, text.length) <= KEPT_CHARACTERS;
  const counted: PriorAttempts['counted'] = (asker, { keeps = false } = {}) => {
    askers.add(asker);
    return async (system, text) => {
      const question = createHash('sha256')
        .update(JSON.stringify([system, text]))
        .digest('hex')
        .slice(0, 32);
      const known = keeps ? answers.get(question) : undefined;
      if (known !== undefined) return known;
      try {
        const answer = await asker.ask(system, text);
        if (keeps && hasRoomFor(answer)) answers.set(question, answer);
        return answer;
      } finally {
        // At once: what fails next takes the last beat along, and so does what has failed here.
        activity.heartbeat(details());
      }
    };
  };
  return { spent, details, counted };
}

/** Ours, of an attempt before this one; nothing where there was none, or it was another version's. */
function paidIn(details: unknown): Paid {
  const { usage, answers } = (details ?? {}) as Partial<Paid>;
  return { usage: usage ?? NO_USAGE, answers: answers ?? {} };
}
