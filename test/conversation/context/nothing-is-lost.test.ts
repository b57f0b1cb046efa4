/**
 * Random lives of turns, consolidations, trims, compactions and their undoing, resets and rewinds, against a simple model: every message
 * of the session is in the prompt or in one of its episodes, and what the session is for is always in the prompt.
 */
import fc from 'fast-check';
import { apply } from '../../../src/conversation/apply.js';
import type { Compacted, CompactInput } from '../../../src/conversation/activity-io/compaction-effects.js';
import type { ModelStepInput, ModelStepResult } from '../../../src/conversation/activity-io/effects.js';
import type { Rewound, RewindInput } from '../../../src/conversation/activity-io/lineage-effects.js';
import type { Evicted, EvictInput } from '../../../src/conversation/activity-io/memory-effects.js';
import type { AgentSettings } from '../../../src/conversation/activity-io/settings.js';
import type { ConversationEvent } from '../../../src/conversation/event.js';
import type { Effect } from '../../../src/conversation/effect.js';
import { nextStep } from '../../../src/conversation/next-step.js';
import type { ConversationState } from '../../../src/conversation/state.js';
import { compactionWindow } from '../../../src/memory/compaction/window.js';
import { memoryBundle } from '../../../src/memory/compaction/snapshot.js';
import { episodesInSight, prefixOf, rangesOf, slotsIn, sortedRanges } from '../../../src/memory/prefix.js';
import type { Task } from '../../../src/records/episodes.js';
import { turnId, turnNumber } from '../../../src/records/identity.js';
import type { Cut } from '../../../src/records/lives.js';
import { byAge, episodicId, MAX_EPISODIC_ITEMS } from '../../../src/records/memory/items.js';
import { isFromPerson, shownText, type Entry } from '../../../src/records/message.js';
import { slotsOf, toRanges } from '../../../src/records/slots.js';
import type { EpisodeRecord } from '../../../src/stores/store.js';
import { answer, answered, asking, finished, open, QUICK, said, SETTINGS, stored, USAGE, written } from '../drive.js';

type Op =
  | { readonly kind: 'turn'; readonly tokens: number; readonly sets: boolean }
  | { readonly kind: 'news'; readonly byModel: boolean }
  | { readonly kind: 'time' }
  | { readonly kind: 'compact' }
  | { readonly kind: 'undo' }
  | { readonly kind: 'reset' }
  | { readonly kind: 'rewind'; readonly back: number };

const ops = fc.array(
  fc.oneof(
    {
      weight: 12,
      arbitrary: fc.record({
        kind: fc.constant('turn' as const),
        tokens: fc.constantFrom(100, 100, 100, 60_000),
        sets: fc.oneof({ weight: 4, arbitrary: fc.constant(false) }, fc.constant(true)),
      }),
    },
    { weight: 5, arbitrary: fc.record({ kind: fc.constant('news' as const), byModel: fc.boolean() }) },
    { weight: 1, arbitrary: fc.constant<Op>({ kind: 'time' }) },
    { weight: 2, arbitrary: fc.constant<Op>({ kind: 'compact' }) },
    { weight: 1, arbitrary: fc.constant<Op>({ kind: 'undo' }) },
    { weight: 1, arbitrary: fc.constant<Op>({ kind: 'reset' }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('rewind' as const), back: fc.nat(6) }) },
  ),
  { minLength: 20, maxLength: 60, size: 'max' },
);

const settingsFor = (trim: AgentSettings['memory']['trim']): AgentSettings => ({
  ...SETTINGS,
  memory: { ...SETTINGS.memory, window: 6, keep: 2, trim },
});

/** What a store and activities would do, kept in lists. */
function createWorld(settings: AgentSettings, refuses: (trim: number) => boolean) {
  let state = open();
  let at = 1_000;
  let op: Op = { kind: 'time' };
  const entries = new Map<number, Entry>();
  let episodes: EpisodeRecord[] = [];
  const cuts: Cut[] = [];
  const bases = new Map<string, string>();
  const news: string[] = [];
  /** Turns of the session, and what each has pinned. */
  let session: number[] = [];
  const tasks = new Map<number, Task>();
  const counts = { trims: 0, refused: 0, compactions: 0, rewinds: 0, resets: 0 };

  const ts = (): number => (at += 10) / 1000;
  const past = () => ({ entries: [...entries.values()], cuts, episodes, archived: [] });
  const inSession = (): EpisodeRecord[] =>
    episodesInSight(episodes, cuts)
      .filter((one) => one.session === state.session)
      .sort(byAge);
  const textOf = (entry: Entry | undefined): string => (entry && isFromPerson(entry.message) ? shownText(entry.message.text) : '');
  /** As an activity finds it: the first entry of the oldest episode, or of what leaves. */
  const goalIn = (known: readonly Entry[]): string => textOf(known.find((entry) => textOf(entry) !== ''));
  const firstOfEpisodes = (): Entry[] => {
    const first = inSession().at(-1)?.slots[0]?.[0];
    return first === undefined ? [] : [entries.get(first)!];
  };
  const baseOf = (name: string, all: readonly EpisodeRecord[], task: Task | null): { ref: string; text: string } => {
    const text = memoryBundle({ episodic: all.slice(0, MAX_EPISODIC_ITEMS), ...task });
    bases.set(name, text);
    return { ref: name, text };
  };
  const remember = (number: number, epoch: number, slots: readonly number[]): EpisodeRecord => {
    const turn_ids = [...new Set(slots.map((slot) => entries.get(slot)?.turn ?? ''))];
    const shown = { id: episodicId(number), ts: ts(), turn_ids, summary: `about ${turn_ids.join()}`, tags: [], salience: 0.5 };
    const episode = { ...shown, session: state.session, epoch, slots: toRanges(slots) };
    episodes = [...episodes, episode];
    return episode;
  };

  function model(input: ModelStepInput): ModelStepResult {
    for (const { slot, turn, seq, session: of, text, messageId } of input.write.messages)
      entries.set(slot, { v: 1, slot, turn, seq, session: of, ts: ts(), messageId, message: { role: 'user', text } });
    const number = turnNumber(input.turn);
    const sets = op.kind === 'turn' && op.sets && input.call.firstToolCall === 1;
    const made = {
      ...(sets ? asking(input, 1, QUICK) : answer(input)),
      usage: { ...USAGE, inputTokens: op.kind === 'turn' ? op.tokens : 100 },
    };
    const { slot, blocks, model: by, stop } = made;
    const common = { v: 1, turn: input.turn, session: input.session, ts: ts() } as const;
    entries.set(slot, { ...common, slot, seq: input.call.seq, message: { role: 'assistant', blocks, model: by, stop } });
    const tools = input.tools.map((tool) => {
      const task = { goal: `goal of ${input.turn}`, openTasks: [`task of ${input.turn}`] };
      tasks.set(number, task);
      const message = { role: 'tool', callId: tool.callId, name: tool.name, outcome: 'ok', text: 'Pinned.' } as const;
      entries.set(tool.slot, { ...common, slot: tool.slot, seq: tool.seq, message });
      return finished({ session: input.session, turn: input.turn, ...tool }, { task });
    });
    const isNew = input.configure !== null && input.settings === null;
    return answered(input, made, { tools, written: written(input.write), ...(isNew && { configured: { kind: 'settings', settings } }) });
  }

  function compact({ context, number, epoch, task }: CompactInput): Compacted {
    const here = slotsOf(context).flatMap((slot) => entries.get(slot) ?? []);
    const window = compactionWindow(here);
    if (window.turnIds.length === 0) return { kind: 'nothing-to-compact', epoch };
    counts.compactions += 1;
    const pinned = { goal: task?.goal || goalIn([...firstOfEpisodes(), ...window.entries]), openTasks: task?.openTasks ?? [] };
    const { session: _session, epoch: _epoch, slots: _slots, ...episode } = remember(number, epoch, slotsOf(window.slots));
    const record = { inputsHash: '', compactor: '', method: 'model', model: '', tokensBefore: 1, tokensAfter: 1 } as const;
    return {
      ...{ kind: 'compacted', life: 'l1', epoch, kept: toRanges(window.kept.map(({ slot }) => slot)), archived: window.slots },
      ...{ turns: window.turnIds, task: pinned, base: baseOf(`compacted-${epoch}`, inSession(), pinned), episode, facts: [] },
      ...{ method: 'model', record, tokensBefore: 1, tokensAfter: 1, usage: USAGE },
    };
  }

  function evict({ session: of, what }: EvictInput): Evicted {
    const result = { life: 'l1', session: of, finished: true };
    if (what.kind !== 'trim') return result;
    if (refuses(what.number)) {
      counts.refused += 1;
      return result;
    }
    counts.trims += 1;
    const archived = what.covered.flatMap(({ slots }) => slotsOf(slots));
    const known = [...slotsOf(what.before), ...archived].flatMap((slot) => entries.get(slot) ?? []);
    const inOrder = [...firstOfEpisodes(), ...known].sort((a, b) => turnNumber(a.turn) - turnNumber(b.turn) || a.seq - b.seq);
    const task = { goal: what.task?.goal || goalIn(inOrder), openTasks: what.task?.openTasks ?? [] };
    const { session: _session, epoch, slots, ...episode } = remember(what.number, what.epoch, archived);
    const base = baseOf(`trimmed-${epoch}`, inSession(), task);
    return { ...result, trimmed: { archived: slots, messages: 1, unsummarized: 0, tokens: 0, task, base, episode } };
  }

  function rewind(input: RewindInput): Rewound {
    const prefix = prefixOf(past(), turnNumber(input.to));
    if (!prefix) throw new Error(`there is no ${input.to}`);
    counts.rewinds += 1;
    const kept = new Set(slotsIn(prefix.line));
    const gone = session.filter((number) => number > prefix.turn.number);
    const next = prefix.turn.session < input.session ? input.session + 1 : input.session;
    const { turn } = prefix;
    const slots = [...entries.keys()].filter((slot) => !kept.has(slot));
    cuts.push({
      ...{ v: 1, id: input.requestId, branch: input.branch, to: turn.number, begun: turn.begun, since: turn.ended, slot: input.slot },
      ...{ at: input.at, session: next, slots: sortedRanges(slots) },
    });
    at = Math.max(at, input.at * 1000 + 10);
    session = prefix.session.map(({ number }) => number);
    const task = session.flatMap((number) => tasks.get(number) ?? []).at(-1) ?? null;
    const pinned =
      prefix.context.length === prefix.session.length ? null : { goal: task?.goal || goalOf(), openTasks: task?.openTasks ?? [] };
    const retold = prefix.episodes.map((episode, i) => ({
      ...episode,
      id: episodicId(input.compactions + 1 + i),
      session: next,
      ts: ts(),
    }));
    if (next !== input.session) episodes = [...episodes, ...retold];
    return {
      ...{ life: 'l1', cut: cuts.at(-1) ?? null, turns: gone.length, session: next, context: rangesOf(prefix.context) },
      ...{ base: baseOf(`rewound-${counts.rewinds}`, prefix.episodes, pinned), task: pinned ?? task, episodes: [], tokens: 100 },
      compactions: input.compactions + (next === input.session ? 0 : retold.length),
    };
  }

  function outputOf(effect: Effect): unknown {
    switch (effect.effect) {
      case 'model-step':
        return model(effect.input);
      case 'store-step':
        return stored(effect.input);
      case 'compact':
        return compact(effect.input);
      case 'uncompact':
        episodes = episodes.filter(({ id }) => id !== effect.input.episode);
        return undefined;
      case 'evict':
        return evict(effect.input);
      case 'rewind':
        return rewind(effect.input);
      case 'ask-memory':
        news.push(effect.id);
        return undefined;
      default:
        return undefined;
    }
  }

  const tell = (event: ConversationEvent): void => {
    state = apply(state, event);
  };
  function settle(): void {
    for (let i = 0; i < 1_000; i++) {
      const step = nextStep(state);
      at += 1;
      if (step.kind === 'begin-turn') {
        tell({ kind: 'turn-begun', at });
        session = [...session, state.turn?.number ?? 0];
      } else if (step.kind === 'effect') {
        tell({ ...step, kind: 'effect-started', at });
        const output = outputOf(step);
        const before = state.session;
        tell({ kind: 'effect-completed', effect: step.effect, id: step.id, output, at } as ConversationEvent);
        if (state.session !== before && step.effect !== 'rewind') session = [];
      } else return;
    }
    throw new Error('it never comes to rest');
  }

  function goalOf(): string {
    const [first] = session;
    return [...entries.values()].filter(({ turn }) => turnNumber(turn) === first).map(textOf).find((text) => text !== '') ?? ''; // prettier-ignore
  }

  return {
    counts,
    step(next: Op): void {
      op = next;
      at += 10;
      if (op.kind === 'turn') tell(said(`m${at}`, { at, text: `message at ${at}` }));
      else if (op.kind === 'news') {
        const requestId = news.shift();
        const consolidation = op.byModel ? 'model' : 'raw-fallback';
        if (requestId !== undefined) tell({ kind: 'consolidation-ended', requestId, consolidation, usage: null, at });
      } else if (op.kind === 'time') tell({ kind: 'time-passed', at: (at += 31_000) });
      else if (op.kind === 'compact') tell({ kind: 'compaction-requested', requestId: `c${at}`, at });
      else if (op.kind === 'undo') tell({ kind: 'undo-requested', requestId: `u${at}`, at });
      else if (op.kind === 'reset') {
        const before = state.session;
        tell({ kind: 'reset-requested', resetId: `r${at}`, at });
        settle();
        tell({ kind: 'time-passed', at: (at += 31_000) });
        if (state.session !== before) session = [];
      } else if (op.kind === 'rewind') {
        const to = session.at(-1 - op.back);
        if (to !== undefined) tell({ kind: 'rewind-requested', requestId: `w${at}`, to: turnId(to), at });
      }
      settle();
    },
    /** What is wrong; undefined when nothing is. */
    problem(): string | undefined {
      const inPrompt = new Set(slotsOf(state.context));
      const told = new Set(inSession().flatMap(({ slots }) => slotsOf(slots)));
      const slots = [...entries.values()].filter(({ turn }) => session.includes(turnNumber(turn))).map(({ slot }) => slot);
      const lost = slots.filter((slot) => !inPrompt.has(slot) && !told.has(slot));
      if (lost.length > 0) return `slots ${lost.join()} are in neither the prompt nor an episode`;
      const strangers = [...inPrompt].filter((slot) => !slots.includes(slot));
      if (strangers.length > 0) return `slots ${strangers.join()} are in the prompt and not of this session`;
      if (slots.every((slot) => inPrompt.has(slot))) return undefined;
      const base = bases.get(state.compaction.base ?? '') ?? '';
      const latest = session.flatMap((number) => tasks.get(number) ?? []).at(-1);
      // What was pinned since the epoch began stands there as the call that pinned it.
      const setBy = session.findLast((number) => tasks.has(number)) ?? 0;
      const isShown = [...entries.values()].some(({ turn, slot }) => turnNumber(turn) === setBy && inPrompt.has(slot));
      const goal = latest?.goal || goalOf();
      if (!isShown && !base.includes(`Goal: ${goal}`)) return `the goal "${goal}" is not in the prompt: ${base}`;
      if (!isShown && !(latest?.openTasks ?? []).every((task) => base.includes(`- ${task}`)))
        return `an open task is not in the prompt: ${base}`;
      return undefined;
    },
    state: (): ConversationState => state,
  };
}

test.each(['when-needed', 'at-window'] as const)('%s: no message and no pin is ever lost', (trim) => {
  const all = { trims: 0, refused: 0, compactions: 0, rewinds: 0, resets: 0 };
  fc.assert(
    fc.property(ops, fc.infiniteStream(fc.boolean()), (list, refusals) => {
      const world = createWorld(settingsFor(trim), () => refusals.next().value === true);
      list.forEach((one, i) => {
        world.step(one);
        const problem = world.problem();
        if (problem !== undefined) throw new Error(`after ${i + 1} of ${JSON.stringify(list)}: ${problem}`);
      });
      for (const name of Object.keys(all) as (keyof typeof all)[]) all[name] += world.counts[name];
    }),
    { numRuns: 100 },
  );
  // What was to be tried was tried.
  expect(Math.min(all.trims, all.refused, all.compactions, all.rewinds)).toBeGreaterThan(20);
});
