/**
 * Plays a scenario to a conversation whose model is one by rules, which can answer from nothing but its request: its answers are the
 * measure of what the product shows it.
 */
import { z } from 'zod';
import type { PerduraClient } from '../../src/client.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { withOwnWorker, type OwnWorkerNeeds } from '../own-worker.js';
import type { Measured } from '../row.js';
import { createPromptCache } from './prompt-cache.js';
import { createReader, type Seen } from './reader.js';
import type { Scenario } from './script.js';
import { GOAL } from './statements.js';

const MIN_REACHABLE = 0.95;
const MAX_SUMMARIES = 6;
/** Milliseconds between two requests, by the clock of the simulated cache. */
const BETWEEN = 20_000;

interface Tally {
  turns: number;
  asked: number;
  verbatim: number;
  reached: number;
  wrong: string[];
  /** Requests in which a goal, and a decision, were to be found, and in which they were. */
  pinned: { requests: number; goal: number; decision: number; question: number };
  /** Statements shown as remembered that were no longer true. */
  stale: number;
  summaries: number;
  largest: number;
  /** In tokens of plain input, with a provider's cache and without. */
  cost: number;
  uncached: number;
}

/** What is left of it as rows of the table. `name`: of its scope and task queue. */
export async function playScenario(
  needs: Pick<OwnWorkerNeeds, 'temporal' | 'options'>,
  scenario: Scenario,
  name: string,
): Promise<Measured[]> {
  const { findings, files } = scenario;
  const survey = defineTool({
    name: 'survey',
    description: 'Surveys a round.',
    input: z.object({ round: z.number().int() }),
    policy: { repeatable: true, quick: true, timeoutMs: 10_000 },
    run: ({ round }) => findings?.(round) ?? '',
  });
  const { tally, compactions, trims } = await play(scenario, name, (model, run) =>
    withOwnWorker({ ...needs, taskQueue: name, agents: { default: scenario.agent }, tools: [survey], model, ...(files && { files }) }, run),
  );
  return rowsOf(scenario, tally, compactions, trims);
}

type With = <T>(reader: ReturnType<typeof createReader>, run: (client: PerduraClient) => Promise<T>) => Promise<T>;

async function play(
  { lines, maxCost }: Scenario,
  scope: string,
  withWorker: With,
): Promise<{ readonly tally: Tally; readonly compactions: readonly Freed[]; readonly trims: number }> {
  const tally: Tally = {
    ...{ turns: 0, asked: 0, verbatim: 0, reached: 0, wrong: [], stale: 0, summaries: 0, largest: 0, cost: 0, uncached: 0 },
    pinned: { requests: 0, goal: 0, decision: 0, question: 0 },
  };
  const truth = new Map<string, string>();
  let asking = { text: '', decision: '' };
  const bill = createPromptCache();
  const look = (seen: Seen): void => {
    tally.largest = Math.max(tally.largest, seen.tokens);
    if (seen.kind === 'summary') {
      tally.summaries += 1;
      return;
    }
    const { pinned } = tally;
    pinned.requests += 1;
    if (maxCost !== undefined) {
      const { cost, read, written, plain } = bill(seen.body, pinned.requests * BETWEEN);
      tally.cost += cost;
      tally.uncached += read + written + plain;
    }
    if (seen.stated.get(GOAL) === truth.get(GOAL)) pinned.goal += 1;
    if (seen.stated.get(asking.decision) === truth.get(asking.decision)) pinned.decision += 1;
    if (seen.question.endsWith(asking.text)) pinned.question += 1;
    tally.stale += seen.remembered.filter(
      ({ subject, value }) => seen.stated.get(subject) === value && (truth.get(subject) ?? value) !== value,
    ).length;
  };
  let calls = 0;
  const reader = createReader((seen) => ((calls += 1), look(seen)));
  return withWorker(reader, async (client) => {
    const { id } = await client.start(undefined, { scope });
    for (const line of lines) {
      if (line.kind === 'reset') {
        await client.reset(id);
        continue;
      }
      if (line.kind === 'say') {
        for (const { subject, value } of line.states) truth.set(subject, value);
        asking = { text: line.text, decision: line.states.at(-1)?.subject ?? asking.decision };
      } else asking = { ...asking, text: line.text };
      const before = calls;
      const { text } = await client.send(id, line.text);
      if (line.kind === 'say') for (const { subject, value } of line.finds ?? []) truth.set(subject, value);
      tally.turns += 1;
      if (line.kind === 'say') continue;
      tally.asked += 1;
      if (text !== `It is ${truth.get(line.subject)}.`) tally.wrong.push(`${line.subject}: ${text}`);
      else if (calls - before === 1) tally.verbatim += 1;
      else tally.reached += 1;
    }
    return { tally, ...(await leavingsOf(client, id)) };
  });
}

interface Freed {
  readonly before: number;
  readonly after: number;
}

/** What made room in the prompt of its session. */
async function leavingsOf(client: PerduraClient, id: string): Promise<{ readonly compactions: Freed[]; readonly trims: number }> {
  const { episodes } = await client.memory(id);
  const compactions = episodes.flatMap(({ made }) => (made ? [{ before: made.tokensBefore, after: made.tokensAfter }] : []));
  return { compactions, trims: episodes.filter(({ tags }) => tags.includes('trimmed')).length };
}

function rowsOf({ name, isTalk, isTrimmed, maxCost }: Scenario, tally: Tally, compactions: readonly Freed[], trims: number): Measured[] {
  const { turns, asked, verbatim, reached, wrong, pinned, stale, summaries, largest, cost, uncached } = tally;
  const found = (verbatim + reached) / Math.max(1, asked);
  const perHundred = (100 * summaries) / turns;
  const least = Math.min(1, ...compactions.map(({ before, after }) => 1 - after / before));
  const share = (part: number): number => (100 * part) / Math.max(1, pinned.requests);
  const row = (what: string, product: number, toHold: string, holds: boolean, unit = '%', notes?: string[]): Measured => ({
    row: `memory, ${name}: ${what}`,
    ...{ product, unit, toHold, holds },
    ...(notes && notes.length > 0 && { notes }),
  });
  return [
    row('what is asked is in the request, or a call away', 100 * found, '≥ 95 %', found >= MIN_REACHABLE, '%', [
      `${asked} asked: ${verbatim} in the request, ${reached} by a call, ${wrong.length} not${wrong.length > 0 ? `: ${wrong.slice(0, 5).join('; ')}` : ''}`,
      `${turns} turns, largest request ${largest} tokens, ${summaries} calls of summarizers`,
      `${compactions.length} compactions freed ${
        compactions
          .map(({ before, after }) => before - after)
          .slice(0, 12)
          .join(', ') || 'nothing'
      } tokens`,
    ]),
    row('the goal', share(pinned.goal), '100 %', pinned.goal === pinned.requests),
    row('the newest decision', share(pinned.decision), '100 %', pinned.decision === pinned.requests),
    row('the question', share(pinned.question), '100 %', pinned.question === pinned.requests),
    row('what is no longer true, shown as remembered', stale, '0', stale === 0, ''),
    row('summarizer calls in 100 turns', perHundred, isTalk ? `≤ ${MAX_SUMMARIES}` : '', !isTalk || perHundred <= MAX_SUMMARIES, ''),
    row('least that a compaction freed', 100 * least, '≥ 25 %', least >= 0.25),
    ...(isTrimmed ? [row('how often turns left the prompt', trims + compactions.length, '≥ 1', trims + compactions.length > 0, '')] : []),
    ...(maxCost === undefined
      ? []
      : [row('cost of prompts', (100 * cost) / uncached, `≤ ${100 * maxCost} %`, cost / uncached <= maxCost, '% of uncached')]),
  ];
}
