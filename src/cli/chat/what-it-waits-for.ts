/** In a few words what a conversation waits for: from its live events, and from its status where those are silent. */
import type { FeedEvent, Status } from '../../conversation/protocol/contract.js';

export interface Waiting {
  /** With `{s}` in place of the seconds since `since`. */
  readonly text: string;
  /** Epoch milliseconds. */
  readonly since: number;
}

/** What is awaited after an event; undefined when nothing is. */
export function waitingAfter(event: FeedEvent, before: Waiting | undefined, now: number): Waiting | undefined {
  switch (event.kind) {
    case 'message':
    case 'tool-finished':
    case 'reset':
      return { text: 'model thinking {s}', since: now };
    case 'thinking':
      return before?.text.startsWith('model thinking') ? before : { text: 'model thinking {s}', since: now };
    case 'text':
      return { text: 'model writing {s}', since: before?.text.startsWith('model writing') ? before.since : now };
    case 'tool-started':
      return { text: `${event.name} ${targetOf(event.input)} {s}`.replace(/ {2,}/g, ' '), since: now };
    case 'waiting':
      return { text: `waiting: ${becauseOf(event.for)} until ${clock(event.until)}`, since: now };
    case 'asked':
      return { text: personInWords(event.what, event.name, event.until, now), since: now };
    case 'decided':
      return { text: 'model thinking {s}', since: now };
    case 'turn-finished':
      return undefined;
    case 'session':
    case 'resync':
      return before;
    default:
      return before;
  }
}

/** What a status says, when no event came for a while. */
export function waitingOfStatus(status: Status, before: Waiting | undefined, now: number): Waiting | undefined {
  if (status.phase === 'resetting' && status.waitingFor?.startsWith('memory:') === true) {
    const scope = /^memory:(\S+)/.exec(status.waitingFor)?.[1] ?? '';
    const text = `waiting for the memory of ${scope} {s}`;
    return before?.text === text ? before : { text, since: before === undefined || isTrouble(before) ? now : before.since };
  }
  const person = /^a person: (approval of|an answer to) (\S+).*until (\d{4}-\d\d-\d\dT[\d:.]+Z)$/s.exec(status.waitingFor ?? '');
  if (person) {
    const [, what, tool = '', until = ''] = person;
    return { text: personInWords(what === 'approval of' ? 'approval' : 'question', tool, Date.parse(until), now), since: now };
  }
  if (status.waitingFor !== undefined) {
    const until = /(?:trying again )?at (\d{4}-\d\d-\d\dT[\d:.]+Z)/.exec(status.waitingFor)?.[1];
    const why = becauseOf(status.waitingFor);
    return { text: until === undefined ? `waiting: ${why}` : `waiting: ${why} until ${clock(Date.parse(until))}`, since: now };
  }
  const text = { thinking: 'model thinking {s}', 'running-tools': 'tools running {s}', resetting: 'clearing the session {s}' }[
    status.phase as string
  ];
  if (text === undefined || before?.text === text || (before !== undefined && !isTrouble(before))) return before;
  return { text, since: now };
}

/** Something does not answer. It is waited for, and goes on where it stood. */
export function trouble(what: string, before: Waiting | undefined, now: number): Waiting {
  const text = `${what}, trying again {s}`;
  return { text, since: before?.text === text ? before.since : now };
}

export function isTrouble({ text }: Waiting): boolean {
  return text.includes(', trying again') || text.startsWith('waiting:');
}

export function toWords({ text, since }: Waiting, now: number): string {
  return text.replace('{s}', `${Math.max(Math.floor((now - since) / 1000), 0)} s`);
}

function personInWords(what: 'approval' | 'question', tool: string, until: number, now: number): string {
  return `waiting: your ${what === 'question' ? 'answer' : `approval of ${tool}`} until ${momentOf(until, now)}`;
}

/** `rate-limit: 429 …` is what programs read; a person needs the first part. */
function becauseOf(text: string): string {
  const kind = /^([a-z][a-z-]*):/.exec(text)?.[1];
  if (kind === 'rate-limit') return 'rate limited';
  return kind?.replaceAll('-', ' ') ?? text;
}

/** The one thing in a tool's input that tells this call from another. */
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
