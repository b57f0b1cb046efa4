/** What is shown while something is waited for, what it waits for, and how the end of a turn counts for a program that waited. */
import type { WorkerChange } from '../services/worker-process.js';
import { EXIT } from '../terminal/exit.js';
import type { Output } from '../terminal/output.js';
import { textOfDrawn, toTerminalLine } from '../terminal/terminal-text.js';
import { renderApproval } from '../views/approvals.js';
import type { PerduraClient } from '../../client.js';
import type { FeedEvent, Status, TurnResult, WaitKind } from '../../conversation/protocol/contract.js';
import { explainEnd } from '../../insight/turns.js';

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
        if (!shown.has(key)) output.note('(waiting for a person; decide in another terminal)');
        if (!shown.has(key)) for (const line of renderApproval(one, { timeFormat: 'iso', now: Date.now() })) output.note(textOfDrawn(line));
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

/** Without a worker no query is answered, and Temporal waits half a minute for one. */
const PATIENCE_MS = 10_000;

/** Only a worker can say how the conversation stands; what Temporal knows is worth showing without it. */
export async function withTimeoutFallback<T>(work: Promise<T>, instead: T, patienceMs = PATIENCE_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const patience = new Promise<T>((resolve) => (timer = setTimeout(() => resolve(instead), patienceMs)));
  const answer = work.catch((error: unknown) => {
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
  const reason = explainEnd(result);
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

export interface Waiting {
  /** With `{s}` in place of the seconds since `since`. */
  readonly text: string;
  /** Epoch milliseconds. */
  readonly since: number;
  /** A time or a day, for people. */
  readonly until?: string;
  /** It holds the work up: a status may say better. */
  readonly isTrouble?: true;
}

const THINKING = 'model thinking {s}';
const WRITING = 'model writing {s}';
const OF_PHASE: Partial<Record<Status['phase'], string>> = {
  thinking: THINKING,
  'running-tools': 'tools running {s}',
  resetting: 'clearing the session {s}',
};

/** What is awaited after an event; undefined when nothing is. */
export function waitingAfter(event: FeedEvent, before: Waiting | undefined, now: number): Waiting | undefined {
  switch (event.kind) {
    case 'message':
    case 'tool-finished':
    case 'reset':
    case 'fallback':
    case 'decided':
      return { text: THINKING, since: now };
    case 'thinking':
      return sinceBefore(THINKING, before, now);
    case 'text':
      return sinceBefore(WRITING, before, now);
    case 'tool-started':
      return { text: `${event.name} ${pickTarget(event.input)} {s}`.replace(/ {2,}/g, ' '), since: now };
    case 'waiting':
      return toTrouble(event.reason === undefined ? event.for : describeReason(event.reason, event.for), now, clock(event.until));
    case 'asked':
      return toTrouble(describePerson(event.what, event.name), now, formatMoment(event.until, now));
    case 'turn-finished':
      return undefined;
    default:
      return before;
  }
}

/** What a status says, when no event came for a while. */
export function waitingOfStatus(status: Status, before: Waiting | undefined, now: number): Waiting | undefined {
  const { waiting, waitingFor, phase } = status;
  switch (waiting?.kind) {
    case 'memory': {
      const text = `waiting for the memory of ${waiting.scope} {s}`;
      return before?.text === text ? before : { text, since: before === undefined || before.isTrouble ? now : before.since };
    }
    case 'approval':
    case 'question':
    case 'client-tool':
      return toTrouble(describePerson(waiting.kind, waiting.tool), now, formatMoment(Date.parse(waiting.until), now));
    case 'retry':
      return toTrouble(describeReason(waiting.reason, `${waiting.reason}: ${waiting.message}`), now, clock(Date.parse(waiting.until)));
    default:
      if (waitingFor !== undefined) return toTrouble(waitingFor, now);
  }
  const text = OF_PHASE[phase];
  if (text === undefined || before?.text === text || (before !== undefined && !before.isTrouble)) return before;
  return { text, since: now };
}

/** Something does not answer. It is waited for, and goes on where it stood. */
export function trouble(what: string, before: Waiting | undefined, now: number): Waiting {
  return { ...sinceBefore(`${what}, trying again {s}`, before, now), isTrouble: true };
}

/** The worker of this chat has ended, or another is there: what happens, since when, and what will be. */
export function waitingForWorker(change: WorkerChange): Waiting {
  if (change.kind === 'away') return { text: `worker ended ${change.how} {s} ago; another starts and goes on`, since: change.at };
  return { text: 'new worker there for {s}; what was cut off begins again within 10 s', since: change.at, isTrouble: true };
}

export function toWords({ text, since, until }: Waiting, now: number): string {
  return `${text.replace('{s}', `${Math.max(Math.floor((now - since) / 1000), 0)} s`)}${until === undefined ? '' : ` until ${until}`}`;
}

/** Its seconds are counted from where it began. */
function sinceBefore(text: string, before: Waiting | undefined, now: number): Waiting {
  return before?.text === text ? before : { text, since: now };
}

function toTrouble(why: string, since: number, until?: string): Waiting {
  return { text: `waiting: ${why}`, since, until, isTrouble: true };
}

function describePerson(what: WaitKind, tool: string): string {
  if (what === 'client-tool') return `what its client answers to ${tool}`;
  return `your ${what === 'question' ? 'answer' : `approval of ${tool}`}`;
}

/** The types of failures are for programs: those that read as English are enough for a person, another needs its message. */
function describeReason(reason: string, whole: string): string {
  if (reason === 'rate-limit') return 'rate limited';
  return /^[a-z-]+$/.test(reason) ? reason.replaceAll('-', ' ') : whole;
}

/** The one thing in a tool's input that distinguishes this call from another. */
function pickTarget(input: string): string {
  try {
    const value: unknown = JSON.parse(input);
    if (typeof value !== 'object' || value === null) return input;
    const first = Object.values(value).find((part) => typeof part === 'string' || typeof part === 'number');
    return first === undefined ? '' : String(first);
  } catch {
    // A long input arrives cut.
    return /:\s*"([^"]*)/.exec(input)?.[1] ?? '';
  }
}

/** Days are named where it is not today. */
function formatMoment(at: number, now: number): string {
  const isToday = new Date(at).toDateString() === new Date(now).toDateString();
  return isToday ? clock(at) : new Date(at).toLocaleDateString('en-GB', { day: 'numeric', month: 'short' });
}

function clock(at: number): string {
  return new Date(at).toLocaleTimeString('en-GB');
}
