/**
 * What an installation needs for so many turns a day: workers, Redis, Temporal's history and actions, and what models cost. By what the bench
 * has measured (data/capacity.json) and what one says of the turns; an estimate, with its assumptions in it.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { costUsd, modelLimits } from './known-models.js';

/** Of a turn without tools, and what one further round of each kind of tool adds. */
export interface PerRound {
  readonly turn: number;
  readonly ordinaryTool: number;
  readonly quickTool: number;
}

/** As the bench has measured it, on one core of its machine. */
export interface Capacity {
  readonly date: string;
  /** Of client and worker together. */
  readonly cpuMs: PerRound;
  /** Without what people, models and tools write. */
  readonly historyBytes: PerRound;
  /** With texts of a few words. */
  readonly redisBytes: PerRound;
  /** As Temporal Cloud bills them, without heartbeats, queries and repeated attempts. */
  readonly actions: PerRound;
}

/** What the turns are like, as the caller knows it. */
export interface Load {
  readonly turnsPerDay: number;
  /** Calls of tools in a turn, one after the other. */
  readonly tools: number;
  /** How many of them are quick, and ride on a model call. */
  readonly quickTools: number;
  /** Files that come with a turn, and the bytes of each. */
  readonly attachments: number;
  readonly attachmentBytes: number;
  /** `provider/model`. */
  readonly model: string;
  /** Tokens of a model call. */
  readonly inputTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
  readonly modelSeconds: number;
  readonly toolSeconds: number;
  /** Of the busiest time, as a multiple of the mean. */
  readonly peak: number;
  /** For how long messages stay in Redis, and histories with Temporal. */
  readonly keepDays: number;
  readonly retentionDays: number;
}

export const USUAL_LOAD: Omit<Load, 'turnsPerDay'> = {
  ...{ tools: 2, quickTools: 0, attachments: 0, attachmentBytes: 500_000, model: 'anthropic/claude-sonnet-5-5' },
  ...{ inputTokens: 8_000, cachedTokens: 6_000, outputTokens: 400, modelSeconds: 8, toolSeconds: 1 },
  ...{ peak: 4, keepDays: 90, retentionDays: 30 },
};

export interface CapacityReport {
  readonly load: Load;
  readonly measured: string;
  readonly turnsPerSecond: { readonly mean: number; readonly peak: number };
  /** Cores and calls under way at the peak; a worker has one core and so many calls, and should not be full. */
  readonly workers: { readonly count: number; readonly cores: number; readonly calls: number; readonly boundBy: 'cpu' | 'calls' | 'two' };
  readonly redisBytes: { readonly perDay: number; readonly kept: number };
  readonly historyBytes: { readonly perTurn: number; readonly kept: number };
  readonly actions: { readonly perTurn: number; readonly heartbeats: number; readonly perDay: number; readonly perSecond: number };
  /** Dollars; null where the price is not known. */
  readonly modelUsd: { readonly perTurn: number | null; readonly perDay: number | null };
}

/** Of the CPU, and of the calls, that a worker has: the rest is for the death of another one. */
const FULL = 0.7;
/** Activities that a worker runs at once (Temporal's default). */
const CALLS_AT_ONCE = 100;
const FEWEST = 2;
/** Bytes of what is written by people, models and tools, in a few words each: a message, an answer (twice in history), a tool's result. */
const TEXT = { message: 500, answer: 1_500, result: 2_000 } as const;
/** Activities beat twice a second, and Temporal hears one a second (maxHeartbeatThrottleInterval). */
const BEATS_PER_SECOND = 1;

export function readCapacity(): Capacity {
  return JSON.parse(readFileSync(join(__dirname, '..', '..', 'data', 'capacity.json'), 'utf8')) as Capacity;
}

export function computeCapacity(load: Load, constants: Capacity): CapacityReport {
  const { turnsPerDay, tools, quickTools, peak, keepDays, retentionDays } = load;
  const ordinary = tools - quickTools;
  const sum = ({ turn, ordinaryTool, quickTool }: PerRound): number => turn + ordinary * ordinaryTool + quickTools * quickTool;
  const modelCalls = 1 + tools;
  const seconds = modelCalls * load.modelSeconds + ordinary * load.toolSeconds;

  const mean = turnsPerDay / 86_400;
  const atPeak = mean * peak;
  const cores = (atPeak * sum(constants.cpuMs)) / 1000;
  const calls = atPeak * seconds;
  const [byCpu, byCalls] = [Math.ceil(cores / FULL), Math.ceil(calls / (CALLS_AT_ONCE * FULL))];
  const count = Math.max(FEWEST, byCpu, byCalls);

  const results = tools * TEXT.result;
  const redisPerTurn = sum(constants.redisBytes) + TEXT.message + TEXT.answer + results + load.attachments * load.attachmentBytes;
  const historyPerTurn = sum(constants.historyBytes) + TEXT.message + 2 * TEXT.answer + results;
  const heartbeats = seconds * BEATS_PER_SECOND;
  const actions = sum(constants.actions) + heartbeats;
  const usage = { inputTokens: load.inputTokens, cachedTokens: load.cachedTokens, outputTokens: load.outputTokens };
  const perCall = costUsd(modelLimits(load.model), usage);
  const perTurn = perCall === null ? null : perCall * modelCalls;
  return {
    load,
    measured: constants.date,
    turnsPerSecond: { mean, peak: atPeak },
    workers: { count, cores, calls, boundBy: count === FEWEST ? 'two' : byCpu >= byCalls ? 'cpu' : 'calls' },
    redisBytes: { perDay: redisPerTurn * turnsPerDay, kept: redisPerTurn * turnsPerDay * keepDays },
    historyBytes: { perTurn: historyPerTurn, kept: historyPerTurn * turnsPerDay * retentionDays },
    actions: { perTurn: actions, heartbeats, perDay: actions * turnsPerDay, perSecond: actions * atPeak },
    modelUsd: { perTurn, perDay: perTurn === null ? null : perTurn * turnsPerDay },
  };
}
