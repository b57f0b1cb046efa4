/** Claims on turns and on conversations: each is noted, and a hard one that does not hold ends the run. */
import { isRecord } from '../platform/json.js';
import { errorMessage } from '../platform/errors.js';
import { oneLine, truncate } from '../records/text.js';
import type { TestToolCall } from '../testing/test-conversation.js';
import type { CheckResult, Expect, Expectation, InputPattern, Turn } from './index.js';
import type { Judgement } from './judge.js';

/** UTF-16 units of what a claim is about, and of what was found in its place. */
const MAX_SHOWN = 400;

export interface Claim {
  /** `turn_0001: calls book_expense {"cents":350}` */
  readonly what: string;
  readonly isSoft: boolean;
  /** `skipped`: it could not be looked at. */
  readonly outcome: 'passed' | 'failed' | 'skipped';
  /** Why it did not pass. */
  readonly why?: string;
}

/** Ends a run whose claim does not hold; the claim has been noted. */
export class ClaimFailed extends Error {
  override readonly name = 'ClaimFailed';
}

export interface Claiming {
  /** A script answers: its model has no price. */
  readonly isScripted: boolean;
  /** Undefined: there is no judge. */
  readonly judge: ((rubric: string, turns: readonly Turn[]) => Promise<Judgement>) | undefined;
  /** Of the conversation so far. */
  readonly turns: () => readonly Turn[];
}

export interface Claims {
  readonly expect: Expect;
  check(what: string, claim: boolean | (() => CheckResult | Promise<CheckResult>)): Promise<void>;
  judge(rubric: string): Promise<void>;
  /** Notes one that the eval does not have. */
  fail(what: string, why: string, isSoft?: boolean): void;
  /** Waits for those that were not awaited. Never rejects. */
  settled(): Promise<void>;
  readonly all: readonly Claim[];
  /** Turns about whose end something was claimed. */
  readonly ends: ReadonlySet<string>;
}

export function createClaims({ isScripted, judge, turns }: Claiming): Claims {
  const all: Claim[] = [];
  const ends = new Set<string>();
  const open = new Set<Promise<void>>();

  const note = (claim: Claim): void => {
    all.push(claim);
    if (claim.outcome === 'failed' && !claim.isSoft) throw new ClaimFailed(`${claim.what}: ${claim.why ?? 'it does not hold'}`);
  };
  /** `why`: undefined where it holds. */
  const claim = (what: string, isSoft: boolean, why: string | undefined): void =>
    note({ what, isSoft, outcome: why === undefined ? 'passed' : 'failed', ...(why !== undefined && { why }) });
  /** One that is not awaited is waited for at the end, where its rejection is not seen. */
  const later = (work: Promise<void>): Promise<void> => {
    const settled: Promise<void> = work.catch(() => undefined).finally(() => void open.delete(settled));
    open.add(settled);
    return work;
  };
  const checked = async (what: string, isSoft: boolean, look: () => CheckResult | Promise<CheckResult>): Promise<void> => {
    let why: string | undefined;
    try {
      const found = await look();
      why = found === false ? 'it is not so' : typeof found === 'string' ? found : undefined;
    } catch (error) {
      why = errorMessage(error);
    }
    claim(what, isSoft, why);
  };
  const judged = async (what: string, isSoft: boolean, rubric: string, about: readonly Turn[]): Promise<void> => {
    const named = `${what} fits ${shown(rubric)}`;
    if (judge === undefined) return note({ what: named, isSoft, outcome: 'skipped', why: 'there is no judge: --judge names one' });
    const failed = (error: unknown): Pick<Judgement, 'verdict' | 'why'> => ({ verdict: 'unreadable', why: errorMessage(error) });
    const { verdict, why } = await judge(rubric, about).catch(failed);
    claim(named, isSoft, verdict === 'pass' ? undefined : verdict === 'fail' ? `the judge says: ${why}` : why);
  };

  const expectation = (turn: Turn, isSoft: boolean): Expectation => {
    const { id } = turn;
    const add = (what: string, why: string | undefined): Expectation => {
      claim(`${id}: ${what}`, isSoft, why);
      return self;
    };
    const self: Expectation = {
      calledTool(name, input) {
        const fits = turn.calls.some((call) => call.name === name && fitsInput(call.input, input));
        return add(`calls ${name}${shownPattern(input)}`, fits ? undefined : describeCalls(turn, name));
      },
      notCalledTool(name, input) {
        const call = turn.calls.find((one) => one.name === name && fitsInput(one.input, input));
        return add(`does not call ${name}${shownPattern(input)}`, call && `it called ${describeCall(call)}`);
      },
      text(expected) {
        const fits = typeof expected === 'string' ? turn.text.includes(expected) : matches(expected, turn.text);
        const words = typeof expected === 'string' ? `has ${shown(expected)} in its answer` : `answers what fits ${String(expected)}`;
        return add(words, fits ? undefined : turn.text === '' ? describeEnd(turn, 'it has no answer') : `it answered ${shown(turn.text)}`);
      },
      stopReason(expected) {
        ends.add(id);
        return add(
          `ends with ${expected}`,
          turn.stopReason === expected ? undefined : describeEnd(turn, `it ended with ${turn.stopReason}`),
        );
      },
      waitsFor(tool) {
        const waiting = turn.approvals.map((one) => one.tool);
        const why = waiting.length === 0 ? describeEnd(turn, 'nothing waits') : `what waits: ${waiting.join(', ')}`;
        return add(`waits for a person about ${tool}`, waiting.includes(tool) ? undefined : why);
      },
      steps: (most) => add(`takes at most ${most} calls of the model`, turn.steps <= most ? undefined : `it took ${turn.steps}`),
      cost(mostUsd) {
        const { costUsd } = turn.usage;
        const what = `costs at most $${mostUsd}`;
        if (costUsd === null && isScripted) {
          note({ what: `${id}: ${what}`, isSoft, outcome: 'skipped', why: 'a script costs nothing' });
          return self;
        }
        const unknown = 'no price of its model is known: perdura.config declares it under "models"';
        return add(what, costUsd === null ? unknown : costUsd <= mostUsd ? undefined : `it cost $${costUsd.toFixed(6)}`);
      },
      check: (what, look) => later(checked(`${id}: ${what}`, isSoft, () => look(turn))),
      judge: (rubric) => later(judged(`${id}:`, isSoft, rubric, [turn])),
    };
    return self;
  };

  return {
    expect: Object.assign((turn: Turn) => expectation(turn, false), { soft: (turn: Turn) => expectation(turn, true) }),
    check: (what, given) => later(checked(what, false, typeof given === 'function' ? given : () => given)),
    judge: (rubric) => later(judged('the conversation', false, rubric, turns())),
    fail: (what, why, isSoft = false) => void all.push({ what, isSoft, outcome: 'failed', why }),
    async settled() {
      while (open.size > 0) await Promise.all(open);
    },
    all,
    ends,
  };
}

/** Whether what is named in a pattern is so. */
export function fitsInput(input: unknown, pattern: InputPattern | undefined): boolean {
  return pattern === undefined || fits(input, pattern);
}

function fits(value: unknown, pattern: unknown): boolean {
  // An eval may bring expressions of another realm: a test runner has more than one.
  if (Object.prototype.toString.call(pattern) === '[object RegExp]') return typeof value === 'string' && matches(pattern as RegExp, value);
  if (Array.isArray(pattern))
    return Array.isArray(value) && value.length === pattern.length && pattern.every((one, at) => fits(value[at], one));
  if (isRecord(pattern))
    return isRecord(value) && Object.entries(pattern).every(([name, one]) => Object.hasOwn(value, name) && fits(value[name], one));
  return Object.is(value, pattern);
}

/** A global expression goes on where it ended, and would fit every second time. */
function matches(expression: RegExp, text: string): boolean {
  return new RegExp(expression.source, expression.flags.replace(/[gy]/g, '')).test(text);
}

function describeCalls({ calls, ...turn }: Turn, name: string): string {
  if (calls.length === 0) return describeEnd(turn, 'it called no tool');
  const same = calls.filter((call) => call.name === name);
  return `it called ${(same.length > 0 ? same : calls).map(describeCall).join(', ')}`;
}

function describeCall({ name, input }: TestToolCall): string {
  return `${name} ${truncate(JSON.stringify(input), MAX_SHOWN)}`;
}

function describeEnd({ error }: Pick<Turn, 'error'>, words: string): string {
  return error === undefined ? words : `${words}: ${truncate(oneLine(error.message), MAX_SHOWN)}`;
}

function shownPattern(pattern: InputPattern | undefined): string {
  if (pattern === undefined) return '';
  const text = JSON.stringify(pattern, (_, value: unknown) =>
    Object.prototype.toString.call(value) === '[object RegExp]' ? String(value) : value,
  );
  return ` ${truncate(text, MAX_SHOWN)}`;
}

function shown(text: string): string {
  return JSON.stringify(truncate(oneLine(text), MAX_SHOWN));
}
