/**
 * In a few words what a conversation waits for: from its live events, and from its status where those are silent. A worker of an
 * older version, or of a newer one, says it in words alone: these are shown as they are.
 */
import type { WorkerChange } from '../services/worker-process.js';
import type { FeedEvent, Status, WaitKind } from '../../conversation/protocol/contract.js';

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
      return { text: `${event.name} ${targetOf(event.input)} {s}`.replace(/ {2,}/g, ' '), since: now };
    case 'waiting':
      return held(event.reason === undefined ? event.for : reasonInWords(event.reason, event.for), now, clock(event.until));
    case 'asked':
      return held(personInWords(event.what, event.name), now, momentOf(event.until, now));
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
      return held(personInWords(waiting.kind, waiting.tool), now, momentOf(Date.parse(waiting.until), now));
    case 'retry':
      return held(reasonInWords(waiting.reason, `${waiting.reason}: ${waiting.message}`), now, clock(Date.parse(waiting.until)));
    default:
      if (waitingFor !== undefined) return held(waitingFor, now);
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

function held(why: string, since: number, until?: string): Waiting {
  return { text: `waiting: ${why}`, since, until, isTrouble: true };
}

function personInWords(what: WaitKind, tool: string): string {
  if (what === 'client-tool') return `what its client answers to ${tool}`;
  return `your ${what === 'question' ? 'answer' : `approval of ${tool}`}`;
}

/** The types of failures are for programs: those that read as English are enough for a person, another needs its message. */
function reasonInWords(reason: string, whole: string): string {
  if (reason === 'rate-limit') return 'rate limited';
  return /^[a-z-]+$/.test(reason) ? reason.replaceAll('-', ' ') : whole;
}

/** The one thing in a tool's input that distinguishes this call from another. */
function targetOf(input: string): string {
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
function momentOf(at: number, now: number): string {
  const isToday = new Date(at).toDateString() === new Date(now).toDateString();
  return isToday ? clock(at) : new Date(at).toLocaleDateString('en-GB', { day: 'numeric', month: 'short' });
}

function clock(at: number): string {
  return new Date(at).toLocaleTimeString('en-GB');
}
