/**
 * Long histories are replayed side by side, each share of the runs in a process of its own: a replay keeps a core busy, and where it
 * heals, a worker has others to serve.
 */
import { fork } from 'node:child_process';
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { temporal } from '@temporalio/proto';
import type { History } from './fetch-runs.js';
import { hasBegun, replayHere, type Replayed, type WorkflowCode } from './replay-here.js';

/** Events that take about as long to replay as a process takes to begin. */
const WORTH_A_PROCESS = 1_000;
/** Characters of its last words. */
const MOST_SAID = 1_000;

/** What a process is told; it answers with `Replayed`. */
export interface Share {
  readonly code: WorkflowCode;
  readonly workflowId: string;
  /** Temporal's `History` messages. */
  readonly histories: readonly Uint8Array[];
}

/** In the order of `histories`. `program` is what the processes run; without one all is replayed here. */
export async function replayRuns(
  code: WorkflowCode,
  workflowId: string,
  histories: readonly History[],
  { program = builtProgram(), worthAProcess = WORTH_A_PROCESS }: { readonly program?: string; readonly worthAProcess?: number } = {},
): Promise<Replayed> {
  const begun = histories.filter(hasBegun);
  const events = begun.reduce((sum, history) => sum + (history.events?.length ?? 0), 0);
  const processes = Math.min(begun.length, availableParallelism(), Math.floor(events / worthAProcess));
  if (program === undefined || code.workflowBundle === undefined || processes < 2) return replayHere(code, workflowId, histories);

  const shares = shared(begun, processes);
  const ending = new AbortController();
  try {
    const answers = await Promise.all(
      shares.map((share) => {
        const bytes = share.map((history) => temporal.api.history.v1.History.encode(history).finish());
        return replayElsewhere(program, { code, workflowId, histories: bytes }, ending.signal);
      }),
    );
    const runs = new Map(shares.flatMap((share, s) => share.map((history, i) => [history, answers[s]?.runs[i]] as const)));
    return { runs: histories.map((history) => runs.get(history)), problems: answers.flatMap(({ problems }) => problems) };
  } finally {
    ending.abort();
  }
}

/** Undefined where the sources run as they are. */
function builtProgram(): string | undefined {
  const program = join(__dirname, 'replay-process.js');
  return existsSync(program) ? program : undefined;
}

/** Each goes to whom has least, the longest first. */
function shared(histories: readonly History[], parts: number): History[][] {
  const shares = Array.from({ length: parts }, () => ({ histories: [] as History[], events: 0 }));
  const sizeOf = (history: History): number => history.events?.length ?? 0;
  for (const history of [...histories].sort((a, b) => sizeOf(b) - sizeOf(a))) {
    const [least] = shares.sort((a, b) => a.events - b.events);
    least?.histories.push(history);
    if (least) least.events += sizeOf(history);
  }
  return shares.map((share) => share.histories);
}

function replayElsewhere(program: string, share: Share, signal: AbortSignal): Promise<Replayed> {
  return new Promise((resolve, reject) => {
    const child = fork(program, { serialization: 'advanced', execArgv: [], stdio: ['ignore', 'ignore', 'pipe', 'ipc'], signal });
    let said = '';
    child.stderr?.setEncoding('utf8').on('data', (words: string) => (said = (said + words).slice(-MOST_SAID)));
    child.once('message', (replayed) => resolve(replayed as Replayed));
    child.on('error', reject);
    child.once('close', (code, killed) => {
      const why = `the process that did it ended with ${killed ?? code}${said === '' ? '' : ` (${said.trim()})`}`;
      reject(new Error(`cannot replay the history of ${share.workflowId}: ${why}; try again`));
    });
    child.send(share);
  });
}
