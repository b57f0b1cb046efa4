/** How often a context is compacted, and what that is worth: many turns and long ones, with the window that a worker would choose. */
import fc from 'fast-check';
import { apply } from '../../../src/conversation/apply.js';
import type { CompactInput, Compacted } from '../../../src/conversation/context/compaction-effects.js';
import type { ModelStepInput } from '../../../src/conversation/turn/model-step-effects.js';
import { compactsAt } from '../../../src/conversation/context/compaction.js';
import type { ConversationState } from '../../../src/conversation/state.js';
import { planCompaction } from '../../../src/memory/compaction/window.js';
import { citedMessageTokens } from '../../../src/conversation/context/citing.js';
import { estimateTokens } from '../../../src/records/token-estimate.js';
import { isFromPerson, type Entry } from '../../../src/records/message.js';
import { listSlots, toRanges } from '../../../src/records/slots.js';
import { answer, asking, finished, open, said, settle, SETTINGS, USAGE } from '../drive.js';

const BUDGET = 25_000;
const BASE_TOKENS = 400;

interface Freed {
  readonly tokens: number;
  readonly atLeast: number;
  readonly turns: readonly string[];
}

/** The store and the model of one conversation, by the sizes of what is said: each call is as large as its context. */
function world({ window = Infinity, settings = {} }: { readonly window?: number; readonly settings?: Partial<typeof SETTINGS> } = {}) {
  const entries = new Map<number, Entry>();
  const sizes = new Map<number, number>();
  const cited = new Set<number>();
  const calls: { readonly context: readonly number[]; readonly tokens: number; readonly refused: boolean }[] = [];
  const freed: Freed[] = [];
  const agent = {
    ...SETTINGS,
    contextBudget: BUDGET,
    thresholds: { ...SETTINGS.thresholds, hard: 80_000, truncation: 100_000 },
    ...settings,
  };
  let state: ConversationState = open();

  const countEntry = ({ slot, message }: Entry): number =>
    cited.has(slot) && isFromPerson(message) ? Math.min(citedMessageTokens(), sizes.get(slot) ?? 0) : (sizes.get(slot) ?? 0);
  const keep = (slot: number, turn: string, message: Entry['message'], tokens: number): void => {
    entries.set(slot, { v: 1, slot, session: 1, turn, seq: slot, ts: slot, message });
    sizes.set(slot, tokens);
  };
  const at = (slots: readonly number[]): Entry[] => slots.flatMap((slot) => entries.get(slot) ?? []);

  function compact(input: CompactInput): Compacted {
    const plan = planCompaction(at(listSlots([...input.leftOut, ...input.context])), {
      ...(input.currentTurn !== null && { currentTurn: input.currentTurn }),
      ...{
        enough: input.enough,
        free: input.free,
        countEntry,
        cited: new Set(listSlots(input.cited)),
        leftOut: new Set(listSlots(input.leftOut)),
      },
    });
    const { epoch } = input;
    if (plan.turnIds.length + plan.cites.length === 0 || plan.freed < input.atLeast) return { kind: 'nothing-to-compact', epoch };
    freed.push({ tokens: plan.freed, atLeast: input.line / 4, turns: plan.turnIds });
    const kept = plan.kept.reduce((sum, entry) => sum + (plan.cites.includes(entry) ? citedMessageTokens() : countEntry(entry)), 0);
    for (const { slot } of plan.cites) cited.add(slot);
    const cites = toRanges(plan.cites.map(({ slot }) => slot));
    if (plan.turnIds.length === 0) return { kind: 'cited', epoch, cited: cites, tokensBefore: plan.freed + kept, tokensAfter: kept };
    return {
      ...{ kind: 'compacted', life: 'l1', epoch, kept: toRanges(plan.kept.map(({ slot }) => slot)), archived: plan.slots },
      ...{ turns: plan.turnIds, cited: cites, task: { goal: 'g', openTasks: [] }, facts: [], method: 'model', usage: USAGE },
      base: { ref: `base-${epoch}`, text: 'x'.repeat(4 * BASE_TOKENS) },
      episode: { id: `ep_${input.number}`, ts: 1, turn_ids: plan.turnIds, summary: 's', tags: [], salience: 0.5 },
      record: { inputsHash: 'i', compactor: 'c', method: 'model', model: 'm', tokensBefore: 0, tokensAfter: 0 },
      ...{ tokensBefore: plan.freed + kept, tokensAfter: kept + BASE_TOKENS },
    };
  }

  /** A turn: a message, so many tool rounds, an answer; in tokens. */
  function turn(message: number, rounds: readonly number[], reply: number): void {
    let asked = 0;
    const step = (input: ModelStepInput) => {
      for (const one of input.write.messages) keep(one.slot, one.turn, { role: 'user', text: 'u' }, estimateTokens(one.text));
      const context = listSlots(input.call.context);
      const tokens =
        agent.fixedTokens + (input.call.base === null ? 0 : BASE_TOKENS) + at(context).reduce((sum, one) => sum + countEntry(one), 0);
      const refused = tokens > window;
      calls.push({ context, tokens, refused });
      if (refused) return answer(input, { blocks: [], stop: 'context-full', usage: { ...USAGE, inputTokens: tokens, outputTokens: 0 } });
      const round = rounds[asked];
      asked += 1;
      const size = round === undefined ? reply : 50;
      const told = {
        ...(round === undefined ? answer(input) : asking(input, 1)),
        usage: { ...USAGE, inputTokens: tokens, outputTokens: size },
      };
      keep(input.call.slot, input.turn, { role: 'assistant', blocks: told.blocks, model: 'm', stop: told.stop }, size);
      return told;
    };
    const before = state;
    state = settle(apply(before, said(`m${before.counters.turn + 1}`, { text: 'x'.repeat(4 * message) })), {
      compact,
      model: step,
      store: (input) => {
        for (const one of input.write.messages) keep(one.slot, one.turn, { role: 'user', text: 'u' }, estimateTokens(one.text));
        return { life: 'l1', written: { messages: input.write.messages.map(({ slot, text }) => ({ slot, bytes: text.length })) } };
      },
      tool: (run) => {
        const tokens = rounds[asked - 1] ?? 0;
        keep(run.slot, run.turn, { role: 'tool', callId: run.callId, name: 'tool', outcome: 'ok', text: 'r' }, tokens);
        return finished(run, { text: 'x'.repeat(4 * tokens) });
      },
    }).state;
    // The agent's settings are known once its first step has found them.
    if (before.settings === null && state.settings) state = { ...state, settings: agent };
  }

  turn(10, [], 10);
  return { turn, calls, freed, entries, at, now: () => state };
}

test('the tail and the running turn are over the line: few compactions, and each frees at least a quarter of the line', () => {
  const { turn, freed, now } = world();
  // One long answer stays among the last four turns for a while, and each turn adds a little.
  for (let n = 1; n <= 16; n++) turn(200, [], n % 4 === 0 ? 14_000 : 800);
  const line = compactsAt(now().settings!);
  expect(freed.length).toBeGreaterThan(0);
  expect(freed.length).toBeLessThanOrEqual(5);
  for (const { tokens } of freed) expect(tokens).toBeGreaterThanOrEqual(line / 4);
});

test('a turn of 48 rounds is summarized while it runs, each request fits and has the question and the last round', () => {
  const { turn, calls, freed, now, at } = world();
  for (let n = 1; n <= 4; n++) turn(100, [], 100);
  const before = calls.length;
  turn(300, Array<number>(48).fill(2_000), 100);
  expect(now().ended.at(-1)).toMatchObject({ stopReason: 'end', toolCalls: 48 });
  const line = compactsAt(now().settings!);
  expect(freed.length).toBeGreaterThanOrEqual((48 * 2_000) / line);
  expect(freed.length).toBeLessThanOrEqual(12);
  for (const { tokens } of freed) expect(tokens).toBeGreaterThanOrEqual(line / 4);
  const [first, ...later] = calls.slice(before);
  expect(at(first!.context).at(-1)?.message.role).toBe('user');
  for (const { context } of later)
    expect(
      at(context)
        .slice(-2)
        .map(({ message }) => message.role),
    ).toEqual(['assistant', 'tool']);
  for (const { context, tokens } of calls.slice(before)) {
    expect(tokens).toBeLessThanOrEqual(BUDGET);
    const seen = at(context);
    expect(seen.some(({ message, turn: of }) => isFromPerson(message) && of === 'turn_0006')).toBe(true);
  }
});

test('what would free less than a quarter of the line is left alone while there is room', () => {
  const { turn, calls, freed, now } = world();
  turn(19_000, Array<number>(8).fill(300), 50);
  expect(calls.at(-1)!.tokens).toBeGreaterThan(compactsAt(now().settings!));
  expect(freed).toEqual([]);
  // Ended, it is in nobody's way to be taken whole.
  turn(100, [], 50);
  expect(freed).toHaveLength(1);
});

test('a paste is cited as soon as it is in the way, and the question that came with it before is not', () => {
  const { turn, calls, freed, now } = world();
  turn(17_000, [], 200);
  const whole = calls.at(-1)!.tokens;
  expect(whole).toBeGreaterThan(17_000);
  for (let n = 0; n < 6; n++) turn(900, [], 200);
  expect(freed).toHaveLength(1);
  expect(freed[0]?.turns).toEqual([]);
  expect(now().compaction.cited?.length).toBe(1);
  expect(calls.at(-1)!.tokens).toBeLessThan(9_000);
});

describe('a model that takes half of what is assumed', () => {
  const half = BUDGET / 2;

  test('says once that it is full, answers then, and is never given too much again', () => {
    const { turn, calls, now } = world({ window: half });
    for (let n = 1; n <= 30; n++) {
      turn(300, [], 700);
      expect(now().ended.at(-1)).toMatchObject({ stopReason: 'end' });
    }
    expect(calls.filter(({ refused }) => refused)).toHaveLength(1);
    expect(now().compaction.learned).toMatchObject({ model: SETTINGS.model, assumed: BUDGET });
    expect(now().settings?.contextBudget).toBeLessThan(half);
  });

  test('says so in the middle of a long turn, and the turn ends well', () => {
    const { turn, calls, now } = world({ window: half });
    turn(300, Array<number>(20).fill(1_500), 100);
    expect(now().ended.at(-1)).toMatchObject({ stopReason: 'end', toolCalls: 20 });
    expect(calls.filter(({ refused }) => refused)).toHaveLength(1);
  });
});

test('of any talk: every turn ends, no compaction is for little, and the newest question is in every request', () => {
  const turns = fc.array(
    fc.tuple(fc.integer({ min: 1, max: 3_000 }), fc.array(fc.integer({ min: 1, max: 3_000 }), { maxLength: 25 }), fc.nat(2_500)),
    {
      minLength: 1,
      maxLength: 14,
    },
  );
  fc.assert(
    fc.property(turns, fc.constantFrom(Infinity, 15_000), (talk, window) => {
      const { turn, calls, freed, at, now } = world({ window });
      for (const [message, rounds, reply] of talk) {
        const before = calls.length;
        turn(message, rounds, reply);
        expect(now().ended.at(-1)?.error).toBeUndefined();
        for (const { context } of calls.slice(before)) {
          const asked = at(context).filter(({ message: one }) => isFromPerson(one));
          expect(asked.at(-1)?.turn).toBe(`turn_${String(now().latestTurn).padStart(4, '0')}`);
        }
      }
      for (const { tokens, atLeast } of freed) expect(tokens).toBeGreaterThanOrEqual(atLeast - 1);
      expect(calls.filter(({ refused }) => refused).length).toBeLessThanOrEqual(window === Infinity ? 0 : 2);
    }),
    { numRuns: 150 },
  );
});
