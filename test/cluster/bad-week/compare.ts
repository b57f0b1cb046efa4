/**
 * Every conversation of a bad week, message by message with what its person was told; what tools did, with what they answered; and how all
 * of it is told.
 */
import type { PerduraClient } from '../../../src/client.js';
import type { Entry } from '../../../src/records/message.js';
import { textOf, violations as violationsOf } from '../../chaos/invariants.js';
import { seconds, type LedgerLine } from '../../support/scene.js';
import type { Person, Told } from './people.js';

/** What was compared, how many of them there are, and what did not hold. */
export interface Row {
  readonly what: string;
  readonly count: number;
  readonly wrong: readonly string[];
}

export interface WeekReport {
  readonly minutes: number;
  readonly days: readonly Day[];
  readonly compared: readonly Row[];
}

export interface Day {
  readonly name: string;
  readonly happened: readonly string[];
  /** Of turns that ended on it: milliseconds. */
  readonly turnMs: readonly number[];
}

export async function compare(
  client: Pick<PerduraClient, 'history'>,
  people: readonly Person[],
  ledger: readonly LedgerLine[],
): Promise<Row[]> {
  const histories = await Promise.all(people.map(async (person) => ({ person, history: await client.history(person.id) })));
  const told = people.flatMap((person) => person.told);
  const each = (check: (person: Person, history: readonly Entry[]) => readonly string[]): string[] =>
    histories.flatMap(({ person, history }) => check(person, history).map((what) => `${person.id}: ${what}`));
  const calls = histories.flatMap(({ history }) => toCalls(history));
  const payments = calls.filter(({ name }) => name === 'pay');
  return [
    {
      what: 'messages that were answered: each is in the store once, in order, word for word, and nothing else is',
      count: told.length,
      wrong: each((person, history) => [...person.told.flatMap((one) => ofMessage(history, one)), ...ofOrder(person, history)]),
    },
    {
      what: 'answers that people got: the same in the store, one to each message; tool calls with one result; no gap in the numbers',
      count: told.length,
      wrong: each((person, history) => violationsOf(history, person.told)),
    },
    {
      what: 'tool calls: what the store says of them is what the ledger of side effects has',
      count: calls.length,
      wrong: ofCalls(calls, ledger),
    },
    { what: 'payments: none made twice', count: payments.length, wrong: twice(ledger) },
    {
      what: 'payments of which the model read that the outcome is unknown, since their worker died',
      count: payments.filter(({ outcome }) => outcome !== 'ok').length,
      wrong: [],
    },
  ];
}

function isOfPerson({ message }: Entry): boolean {
  return message.role === 'user';
}

function ofMessage(history: readonly Entry[], { messageId, text }: Told): string[] {
  const found = history.filter((entry) => entry.messageId === messageId);
  return [
    ...(found.length === 0 ? [`${messageId} is lost`] : []),
    ...(found.length > 1 ? [`${messageId} is there ${found.length} times`] : []),
    ...found.flatMap((entry) => (textOf(entry) === text ? [] : [`${messageId} is ${JSON.stringify(textOf(entry))} in the store`])),
  ];
}

function ofOrder({ told }: Person, history: readonly Entry[]): string[] {
  const [wanted, found] = [told.map(({ messageId }) => messageId), history.filter(isOfPerson).map(({ messageId = '' }) => messageId)];
  return wanted.join() === found.join() ? [] : [`answered were ${wanted.join()}, stored are ${found.join()}`];
}

interface Call {
  readonly name: string;
  readonly item: string;
  readonly outcome: string;
}

function toCalls(history: readonly Entry[]): Call[] {
  const asked = new Map(
    history.flatMap(({ message }) =>
      message.role === 'assistant'
        ? message.blocks.flatMap((block) =>
            block.kind === 'tool-call' ? [[block.callId, String((block.input as { item?: unknown }).item)]] : [],
          )
        : [],
    ) as [string, string][],
  );
  return history.flatMap(({ message }) =>
    message.role === 'tool' ? [{ name: message.name, outcome: message.outcome, item: asked.get(message.callId) ?? '' }] : [],
  );
}

function ofCalls(calls: readonly Call[], ledger: readonly LedgerLine[]): string[] {
  const count = (call: Call, what: LedgerLine['what']): number =>
    ledger.filter((line) => line.what === what && line.name === call.name && line.item === call.item).length;
  return calls.flatMap((call) => {
    const [begun, ended] = [count(call, 'start'), count(call, 'end')];
    const words = `${call.name} ${call.item} is "${call.outcome}" in the store, and has begun ${begun} and ended ${ended} times`;
    const isTold = call.outcome === 'ok' ? ended > 0 : call.outcome === 'unknown' || begun === 0;
    return isTold ? [] : [words];
  });
}

function twice(ledger: readonly LedgerLine[]): string[] {
  const begun = ledger.flatMap(({ what, name, item }) => (what === 'start' && name === 'pay' ? [item] : []));
  return [...new Set(begun.filter((item, n) => begun.indexOf(item) !== n))].map((item) => `pay ${item} has begun twice`);
}

/** For people: the days with what happened, then what was compared, and what did not hold. */
export function renderWeek({ minutes, days, compared }: WeekReport): string {
  const percentile = (ms: readonly number[], part: number): string =>
    ms.length === 0 ? '–' : seconds([...ms].sort((a, b) => a - b)[Math.ceil(part * ms.length) - 1] ?? 0);
  const ofDays = days.flatMap(({ name, happened, turnMs }) => [
    `${name.padEnd(10)}${String(turnMs.length).padStart(4)} turns, p50 ${percentile(turnMs, 0.5)}, p95 ${percentile(turnMs, 0.95)}, longest ${percentile(turnMs, 1)}`,
    ...happened.map((what) => `  - ${what}`),
  ]);
  const width = Math.max(...compared.map(({ what }) => what.length));
  const ofRows = compared.map(({ what, count, wrong }) => `${what.padEnd(width)}  ${String(count).padStart(6)}  ${wrong.length} wrong`);
  const wrong = compared.flatMap((row) => row.wrong.map((what) => `did not hold: ${row.what}\n  ${what}`));
  const verdict = wrong.length === 0 ? 'Everything held.' : wrong.join('\n');
  return [`A bad week in ${minutes.toFixed(1)} minutes`, '', ...ofDays, '', ...ofRows, '', verdict].join('\n');
}
