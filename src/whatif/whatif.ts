/** Plays recorded conversations with something changed, several at a time, and says of each what became of it, as lines of a report. */
import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { errorMessage } from '../platform/errors.js';
import { play, type Played, type PlayOptions } from './player.js';
import type { Candidate, Project } from './project.js';
import type { Recordings } from './recording.js';
import { REPORT_VERSION, type Lane, type ReportedConversation, type ReportHeader, type ToolPolicy, type Verdict } from './report.js';
import type { Stub } from './stub.js';

export interface WhatIfOptions extends Pick<PlayOptions, 'memory' | 'signal'> {
  readonly recordings: Recordings;
  readonly project: Project;
  readonly candidate: Candidate;
  /** What is different in it, a line each. */
  readonly changes: readonly string[];
  /** The recorded configuration is played beside it. */
  readonly hasBaseline: boolean;
  readonly policy: ToolPolicy;
  readonly stub?: Stub;
  /** Conversations of which something is missing: played as far as it is there, or left out. */
  readonly gaps: 'play' | 'skip';
  readonly judge?: {
    /** `provider/model` */
    readonly name: string;
    judge(line: ReportedConversation, signal: AbortSignal): Promise<Verdict>;
  };
  /** Conversations that are played at the same time. */
  readonly atOnce: number;
}

/** The header, then a line for each conversation, in the order of `ids`. Rejects when `signal` is aborted. */
export async function* whatIf(
  ids: Iterable<string> | AsyncIterable<string>,
  options: WhatIfOptions,
): AsyncGenerator<ReportHeader | ReportedConversation> {
  const { changes, policy, memory, hasBaseline, judge, atOnce } = options;
  const lanes: readonly Lane[] = hasBaseline ? ['candidate', 'baseline'] : ['candidate'];
  const madeAt = new Date().toISOString();
  yield { kind: 'header', version: REPORT_VERSION, madeAt, changes, policy, memory, lanes, ...(judge && { judge: judge.name }) };
  const dir = await realpath(await mkdtemp(join(tmpdir(), 'perdura-what-if-')));
  try {
    const running: Promise<ReportedConversation>[] = [];
    let number = 0;
    for await (const id of ids) {
      const playing = playLanes(id, lanes, options, join(dir, String(++number)));
      // It is looked at when those before it are over.
      playing.catch(() => undefined);
      running.push(playing);
      if (running.length >= atOnce) yield (await running.shift()) as ReportedConversation;
    }
    for (const one of running) yield await one;
  } finally {
    await rm(dir, { recursive: true, force: true, maxRetries: 3 });
  }
}

async function playLanes(id: string, lanes: readonly Lane[], options: WhatIfOptions, dir: string): Promise<ReportedConversation> {
  const { gaps, signal, judge } = options;
  const skipped = (why: string, known: readonly string[] = [], agent = ''): ReportedConversation => ({
    ...{ kind: 'conversation', id, agent, skipped: why, gaps: known, turns: 0, lanes: {} },
  });
  const played = new Map<Lane, Played>();
  try {
    if (gaps === 'skip') {
      const { gaps: known } = await options.recordings.open(id);
      if (known.length > 0) return skipped('something of it is missing', known);
    }
    for (const lane of lanes) {
      signal.throwIfAborted();
      const place = join(dir, lane);
      await mkdir(place, { recursive: true });
      const candidate: Candidate = lane === 'baseline' ? options.project : options.candidate;
      played.set(lane, await play(id, { ...options, candidate, lane, dir: place }));
      await rm(place, { recursive: true, force: true, maxRetries: 3 });
    }
  } catch (error) {
    signal.throwIfAborted();
    return skipped(errorMessage(error));
  }
  const [first] = played.values();
  const missing = [...new Set([...played.values()].flatMap((one) => one.gaps))];
  if (gaps === 'skip' && missing.length > 0) return skipped('something of it is missing', missing, first?.agent);
  const line: ReportedConversation = {
    kind: 'conversation',
    id,
    agent: first?.agent ?? '',
    gaps: missing,
    turns: first?.turns ?? 0,
    lanes: Object.fromEntries([...played].map(([lane, one]) => [lane, one.lane])),
  };
  return judge ? { ...line, verdict: await judge.judge(line, signal) } : line;
}
