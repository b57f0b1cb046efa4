/** What is shown while something is waited for, and how the end of a turn counts for a program that waited. */
import type { Pending, PerduraClient } from '../../client.js';
import type { TurnResult } from '../../conversation/protocol/contract.js';
import { reasonOf } from '../../insight/turns.js';
import { EXIT } from '../terminal/exit.js';
import type { Output } from '../terminal/output.js';
import { toTerminalLine } from '../terminal/terminal-text.js';
import { renderQuestion, howToDecide, shownArguments, shownName } from '../views/approvals.js';
import { trouble, waitingOfStatus } from './what-it-waits-for.js';

const LOOK_EVERY = 5000;
/** A person soon sees that nothing goes on without them. */
const FIRST_LOOK = 1500;

interface Awaited {
  readonly client: Pick<PerduraClient, 'status' | 'approvals'>;
  readonly id: string;
  readonly output: Pick<Output, 'note'>;
}

/** Says what an answer waits for when it does not come, where no live screen shows it: each reason once. */
export async function withProgress<T>({ client, id, output }: Awaited, answer: Promise<T>): Promise<T> {
  const shown = new Set<string>();
  return looking({ output }, answer, async (report, isOver) => {
    const status = await client.status(id);
    if (isOver()) return;
    if (status.pendingApprovals > 0) {
      for (const one of await client.approvals(id)) {
        const key = `${one.conversation} ${one.callId}`;
        if (!shown.has(key)) for (const line of waitInLines(one)) output.note(line);
        shown.add(key);
      }
      return;
    }
    if (status.waitingFor !== undefined) report(waitingOfStatus(status, undefined, Date.now())?.text ?? '');
  });
}

interface Ending {
  readonly client: Pick<PerduraClient, 'status' | 'scope'>;
  readonly id: string;
  readonly scope: string | null;
  readonly output: Pick<Output, 'note'>;
}

/** Says what the end of a conversation waits for, and where that is long-term memory, what that waits for itself. */
export async function withEndingProgress<T>({ client, id, scope, output }: Ending, end: Promise<T>): Promise<T> {
  return looking({ output }, end, async (report, isOver) => {
    const { waiting, waitingFor } = await client.status(id);
    if (isOver() || waitingFor === undefined) return;
    const memory = waiting?.kind === 'memory' && scope !== null ? await client.scope(scope).status() : undefined;
    if (isOver()) return;
    report(`waiting for ${waitingFor}${memory?.waitingFor === undefined ? '' : `; it waits for its model: ${memory.waitingFor}`}`);
  });
}

type Look = (report: (why: string) => void, isOver: () => boolean) => Promise<void>;

async function looking<T>({ output }: Pick<Awaited, 'output'>, work: Promise<T>, look: Look): Promise<T> {
  let last: string | undefined;
  let isOver = false;
  const report = (why: string): void => {
    if (why !== last) output.note(`(${toTerminalLine(why.replace(' {s}', ''), 400)})`);
    last = why;
  };
  const lookOnce = (): void => {
    look(report, () => isOver).catch(() => {
      if (!isOver) report(trouble('Temporal or its worker does not answer', undefined, Date.now()).text);
    });
  };
  const first = setTimeout(lookOnce, FIRST_LOOK);
  const timer = setInterval(lookOnce, LOOK_EVERY);
  try {
    return await work;
  } finally {
    isOver = true;
    clearTimeout(first);
    clearInterval(timer);
  }
}

/** What waits, until when, and what to type elsewhere: this command goes on waiting. */
function waitInLines(one: Pending): string[] {
  const { kind, tool, expiresAt } = one;
  const asked =
    kind === 'question' ? renderQuestion(one) : [`${shownName(tool)} ${one.arguments === undefined ? '' : shownArguments(one.arguments)}`];
  const whats = {
    question: 'waiting for an answer to a question',
    approval: 'waiting for approval',
    'client-tool': 'waiting for the client that runs a tool',
  };
  const what = whats[kind];
  return [
    `(${what}, until ${new Date(expiresAt).toISOString()}; decide in another terminal)`,
    ...asked.map((line) => `    ${line}`),
    ...howToDecide(one).map((line) => `  ${line}`),
  ];
}

/** Without a worker no query is answered, and Temporal waits half a minute for one. */
const PATIENCE_MS = 10_000;

/** Only a worker can say how the conversation stands; what Temporal knows is worth showing without it. */
export async function withTimeoutFallback<T>(asked: Promise<T>, instead: T, patienceMs = PATIENCE_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const patience = new Promise<T>((resolve) => (timer = setTimeout(() => resolve(instead), patienceMs)));
  const answer = asked.catch((error: unknown) => {
    if ((error as { kind?: unknown }).kind === 'not-found') throw error;
    return instead;
  });
  answer.catch(() => undefined);
  try {
    return await Promise.race([answer, patience]);
  } finally {
    clearTimeout(timer);
  }
}

export function answerExitCode(result: TurnResult): number {
  switch (result.stopReason) {
    case 'end':
    case 'reset':
    case 'continues':
    case 'queued':
      return EXIT.ok;
    case 'interrupted':
      return EXIT.interrupted;
    default:
      return EXIT.failed;
  }
}

/** Why there is no answer, or only a part of one. */
export function endProblems(result: TurnResult): readonly string[] {
  const reason = reasonOf(result);
  return reason === undefined ? [] : [reason];
}

/** Says what is being done once it has taken a second. */
export async function withSlowNotice<T>(output: Output, what: string, work: Promise<T>): Promise<T> {
  const timer = setTimeout(() => output.note(`${what} …`), 1000);
  try {
    return await work;
  } finally {
    clearTimeout(timer);
  }
}
