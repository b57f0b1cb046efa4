/**
 * Random lives of everything that changes a context, crossed: turns with tool rounds, pastes, consolidations, trims, truncations,
 * compactions and their undoing, resets, rewinds and forks, with a model that may take less than was assumed. The pure core decides, the
 * activities of truncation, trim, rewind and fork do, and requests are put together as a worker does.
 *
 * - Every request has the person's newest message whole, and the session's goal and open tasks; otherwise the turn ends with words, before
 *   it is paid.
 * - A request fits the prompt's budget.
 * - Every message of the session is in the prompt, in one of its episodes, or left out until the next summary.
 */
import fc from 'fast-check';
import { trim } from '../../../src/activities/memory/evict.js';
import { openOrigin } from '../../../src/activities/lineage/open-origin.js';
import { rewind } from '../../../src/activities/lineage/past.js';
import { beginningOfSession, countedEpisodes } from '../../../src/activities/context/compact.js';
import { fitting, truncate } from '../../../src/activities/context/context.js';
import type { ConversationDependencies } from '../../../src/activities/dependencies.js';
import { agentConfigSchema } from '../../../src/agents/agent-config.js';
import { obstacleTo } from '../../../src/conversation/context/call-gate.js';
import type { Compacted, CompactInput } from '../../../src/conversation/context/compaction-effects.js';
import type { ModelStepInput, ModelStepResult, ToolFinished } from '../../../src/conversation/turn/model-step-effects.js';
import type { Writes } from '../../../src/conversation/outbox/writes.js';
import { withLearnedBudget, type AgentSettings } from '../../../src/conversation/state/settings.js';
import { apply } from '../../../src/conversation/apply.js';
import { citedMessageTokens, withResultCounted } from '../../../src/conversation/context/citing.js';
import type { ConversationEvent } from '../../../src/conversation/event.js';
import type { Effect } from '../../../src/conversation/effect.js';
import { withOrigin } from '../../../src/conversation/lineage/lineage.js';
import { nextStep } from '../../../src/conversation/next-step.js';
import type { ConversationState } from '../../../src/conversation/state.js';
import { claimTurns } from '../../../src/activities/memory/claims.js';
import { consolidationId } from '../../../src/memory/documents/search-history.js';
import { citeMessage, messageItemId, citeOld, frameNew } from '../../../src/memory/channel/citations.js';
import { boundedBundle, beginningIn } from '../../../src/memory/compaction/snapshot.js';
import { planCompaction } from '../../../src/memory/compaction/window.js';
import { retrieve } from '../../../src/memory/facts.js';
import { entryTokens, estimateStringTokens, countMessageTokens } from '../../../src/memory/tokens.js';
import { normalize } from '../../../src/models/normalize.js';
import { modelLimits } from '../../../src/models/known-models.js';
import { ModelFailure } from '../../../src/models/model.js';
import type { Task } from '../../../src/records/episodes.js';
import { turnId, turnNumber } from '../../../src/records/identity.js';
import { episodicId } from '../../../src/records/memory/items.js';
import { isFromPerson, shownText, type AssistantBlock, type ConversationMessage } from '../../../src/records/message.js';
import { listSlots, toRanges } from '../../../src/records/slots.js';
import type { ConversationKey, EpisodeRecord } from '../../../src/stores/store.js';
import {
  answer,
  answered,
  askingFor,
  deferred,
  finished,
  notAnswered,
  open,
  ORDINARY,
  QUICK,
  said,
  SETTINGS,
  stored,
  USAGE,
  written,
} from '../drive.js';
import { createSmallStore } from './small-store.js';

type Plain = 'time' | 'compact' | 'truncate' | 'undo' | 'reset';
type Op =
  /** Sizes in tokens; `sets`: the agent pins a task. */
  | {
      readonly kind: 'turn';
      readonly message: number;
      readonly rounds: readonly number[];
      readonly reply: number;
      readonly sets: 'nothing' | 'goal' | 'tasks';
      readonly steers: boolean;
    }
  | { readonly kind: 'news'; readonly byModel: boolean }
  | { readonly kind: Plain }
  | { readonly kind: 'rewind' | 'fork'; readonly back: number; readonly before: boolean };

const sizes = (...those: number[]) => fc.constantFrom(...those);
const nothing = (kind: Plain) => fc.constant<Op>({ kind });
const back = <const K extends 'rewind' | 'fork'>(kind: K) => fc.record({ kind: fc.constant(kind), back: fc.nat(6), before: fc.boolean() });
const ops = fc.array(
  fc.oneof(
    {
      weight: 24,
      arbitrary: fc.record({
        kind: fc.constant('turn' as const),
        message: sizes(30, 30, 30, 300, 1_500, 3_500, 9_000),
        rounds: fc.array(sizes(20, 200, 1_500, 4_000), { maxLength: 8 }),
        reply: sizes(30, 30, 400, 1_500),
        sets: fc.constantFrom('nothing' as const, 'nothing' as const, 'nothing' as const, 'goal' as const, 'tasks' as const),
        steers: fc.oneof({ weight: 5, arbitrary: fc.constant(false) }, fc.constant(true)),
      }),
    },
    { weight: 6, arbitrary: fc.record({ kind: fc.constant('news' as const), byModel: fc.boolean() }) },
    ...(['time', 'compact', 'truncate', 'undo', 'reset'] as const).map((kind) => ({ weight: 2, arbitrary: nothing(kind) })),
    { weight: 2, arbitrary: back('rewind') },
    { weight: 2, arbitrary: back('fork') },
  ),
  { minLength: 15, maxLength: 50, size: 'max' },
);

const BUDGET = 8_000;
const FIXED = 500;
const settingsFor = (trims: AgentSettings['memory']['trim'], autoCompact: boolean): AgentSettings => ({
  ...SETTINGS,
  contextBudget: BUDGET,
  fixedTokens: FIXED,
  thresholds: { soft: 4_000, hard: 6_400, truncation: 8_000, autoCompact, suggests: true },
  memory: { ...SETTINGS.memory, window: 6, keep: 2, trim: trims },
});

/** `window`: what the model really takes. */
function createWorld(settings: AgentSettings, window: number) {
  const small = createSmallStore();
  const { store } = small;
  const config = agentConfigSchema.parse({ context: { maxTokens: 20_000 } });
  let key: ConversationKey = { namespace: 'default', scope: 'default', conversation: 'chat', life: 'l1' };
  let state: ConversationState = open();
  let at = 1_000;
  let op: Op = { kind: 'time' };
  const problems: string[] = [];
  const news: string[] = [];
  /** Turns of the session, and what each has pinned. */
  let session: number[] = [];
  const tasks = new Map<number, Task>();
  const counts = { calls: 0, trims: 0, compactions: 0, cited: 0, truncations: 0, rewinds: 0, forks: 0, tooLarge: 0, full: 0 };

  const dependencies = (): ConversationDependencies =>
    ({
      ...{ store, key, identity: state.identity, defaultModel: SETTINGS.model },
      agents: () => Promise.resolve({ config, files: {}, servers: [], unread: [] }),
      tools: { names: ['retrieve_from_memory', 'read_episode'], find: () => ({}) },
      models: Object.assign(() => ({}), { limits: modelLimits }),
    }) as unknown as ConversationDependencies;
  // Activities read the clock of this world.
  const ts = (): number => (at += 10) / 1000;
  jest.spyOn(Date, 'now').mockImplementation(() => (at += 10));
  const entry = (slot: number) => small.entry(key, slot);
  const there = (slots: readonly number[]) => slots.flatMap((slot) => entry(slot) ?? []);
  const inSession = (): Promise<readonly EpisodeRecord[]> => countedEpisodes(store, key, state.session);
  const put = (slot: number, turn: string, seq: number, message: ConversationMessage, messageId?: string): void =>
    small.put(key, { v: 1, slot, turn, seq, session: state.session, ts: ts(), message, ...(messageId !== undefined && { messageId }) });

  function perform(write: Writes): void {
    for (const { slot, turn, seq, session: of, text, messageId } of write.messages)
      small.put(key, { v: 1, slot, turn, seq, session: of, ts: ts(), messageId, message: { role: 'user', text } });
    for (const one of [...write.entries, ...write.settle.flatMap(({ entry: settled }) => settled ?? [])]) small.put(key, one);
  }

  /** As `prepareRequest` puts it together; throws ModelFailure. */
  function request(
    { call, settings: known }: ModelStepInput,
    now: AgentSettings,
  ): { messages: readonly ConversationMessage[]; tokens: number } {
    const { contextBudget } = known ?? now;
    const slots = listSlots(call.context);
    const cited = new Set(listSlots(call.cited ?? []));
    const shown = citeOld(
      there(slots).map(({ message }) => message),
      contextBudget,
    ).map((message, i) => (cited.has(slots[i] ?? 0) ? citeMessage(message, messageItemId(slots[i] ?? 0)) : message));
    if (shown.length !== slots.length) problems.push(`${call.id} sees a slot that was never written`);
    const base: ConversationMessage[] = call.base === null ? [] : [{ role: 'user', text: small.body(call.base) ?? '' }];
    const room = contextBudget - FIXED - countMessageTokens(base);
    const fits = fitting(frameNew(shown, contextBudget), room, estimateStringTokens, base);
    return { messages: normalize([...base, ...fits], { provider: 'anthropic' }), tokens: FIXED + countMessageTokens([...base, ...fits]) };
  }

  async function model(input: ModelStepInput): Promise<ModelStepResult> {
    perform(input.write);
    const isNew = input.configure !== null && input.settings === null;
    const now = withLearnedBudget(settings, input.learned);
    const tools = input.tools.map((tool) => runTool({ session: input.session, turn: input.turn, ...tool }));
    const more = {
      ...{ tools, written: written(input.write) },
      ...(isNew && { configured: { kind: 'settings', settings } as const }),
    };
    const gate = input.settings ?? now;
    const numbers = tools.reduce((sum, tool) => withResultCounted(sum, tool, gate.contextBudget), input.numbers);
    const obstacle = obstacleTo(numbers, gate);
    if (obstacle && !input.deferred?.includes(obstacle)) return deferred(input, obstacle, more);
    let made;
    try {
      made = request(input, now);
    } catch (error) {
      if (!(error instanceof ModelFailure)) throw error;
      counts.tooLarge += 1;
      return notAnswered(input, { type: error.kind, message: error.message, transient: false }, more);
    }
    const { messages, tokens } = made;
    check(input, messages, tokens);
    counts.calls += 1;
    if (tokens > window) {
      counts.full += 1;
      return answered(input, { blocks: [], stop: 'context-full', usage: { ...USAGE, inputTokens: tokens, outputTokens: 0 } }, more);
    }
    const told = nextAnswer(input);
    put(input.call.slot, input.turn, input.call.seq, { role: 'assistant', blocks: told.blocks, model: told.model, stop: told.stop });
    const outputTokens = countMessageTokens([{ role: 'assistant', blocks: told.blocks, model: '', stop: 'end' }]);
    return answered(input, { ...told, usage: { ...USAGE, inputTokens: tokens, outputTokens } }, more);
  }

  /** How many rounds of the turn were asked for. */
  let asked = { turn: '', rounds: 0 };
  function nextAnswer(input: ModelStepInput) {
    if (asked.turn !== input.turn) asked = { turn: input.turn, rounds: 0 };
    const turn = op.kind === 'turn' ? op : { rounds: [], reply: 30, sets: 'nothing' as const };
    const [first] = asked.rounds === 0 && turn.sets !== 'nothing' ? ['set_task'] : [];
    const round = asked.rounds - (turn.sets === 'nothing' ? 0 : 1);
    asked.rounds += 1;
    const number = turnNumber(input.turn);
    if (first !== undefined) {
      const goal = turn.sets === 'goal' ? { goal: `goal of ${input.turn}` } : {};
      const pinned = askingFor(input, [QUICK]);
      const block = { ...pinned.blocks[0], name: 'set_task', input: { ...goal, openTasks: [`task of ${input.turn}`] } } as AssistantBlock;
      tasks.set(number, { goal: '', openTasks: [`task of ${input.turn}`], ...goal });
      return { ...pinned, blocks: [block] };
    }
    if (turn.rounds[round] !== undefined) return askingFor(input, [round % 2 === 0 ? QUICK : ORDINARY]);
    return answer(input, { blocks: [{ kind: 'text', text: 'r'.repeat(4 * turn.reply) }] });
  }

  function runTool(run: { session: number; turn: string; callId: string; name: string; slot: number; seq: number }): ToolFinished {
    const task = run.name === 'set_task' ? tasks.get(turnNumber(run.turn)) : undefined;
    const round = op.kind === 'turn' ? (op.rounds[asked.rounds - 1 - (op.sets === 'nothing' ? 0 : 1)] ?? 0) : 0;
    const text = task ? 'Pinned now.' : 't'.repeat(4 * round);
    const item = text.length > 4_096 ? { item: { id: `mem_${run.slot}`, citation: 'a long result' } } : {};
    put(run.slot, run.turn, run.seq, { role: 'tool', callId: run.callId, name: run.name, outcome: 'ok', text, ...item });
    return finished(run, { text, ...item, ...(task && { task }) });
  }

  function check({ call, turn }: ModelStepInput, messages: readonly ConversationMessage[], tokens: number): void {
    const text = messages.map((message) => JSON.stringify(message)).join('\n');
    const newest = there(listSlots(call.context)).findLast((one) => one.turn === turn && isFromPerson(one.message))?.message;
    const question = newest?.role === 'user' ? shownText(newest.text) : '';
    if (question === '' || !text.includes(question)) problems.push(`${call.id} has not the person's newest message`);
    const { goal, openTasks } = pinned();
    if (!text.includes(goal.slice(0, 40))) problems.push(`${call.id} has not the goal "${goal.slice(0, 40)}": ${text.slice(0, 1_500)}`);
    for (const task of openTasks) if (!text.includes(task)) problems.push(`${call.id} has not the open task "${task}": ${text.slice(0, 1_500)}`); // prettier-ignore
    // What the guard says of what it has left out is paid from the margin.
    if (tokens > BUDGET + 400) problems.push(`${call.id} takes ${tokens} tokens`);
  }

  function pinned(): Task {
    const task = session.flatMap((number) => tasks.get(number) ?? []).at(-1);
    // A call that has not run yet pins nothing; what is checked then holds all the same.
    const [first] = session;
    const all = listSlots([[1, state.counters.slot]]);
    const opening = beginningIn(there(all).filter((one) => turnNumber(one.turn) === first).map(({ message }) => message)); // prettier-ignore
    const goal = session.flatMap((number) => tasks.get(number)?.goal || []).at(-1);
    return { goal: goal || opening, openTasks: task?.openTasks ?? [] };
  }

  async function compact(input: CompactInput): Promise<Compacted> {
    const { epoch, number, leftOut, context, currentTurn, task, line } = input;
    const entries = there(listSlots([...leftOut, ...context]));
    const tokensEach = entryTokens(entries, { cited: new Set(listSlots(input.cited)) });
    const plan = planCompaction(entries, {
      ...(currentTurn !== null && { currentTurn }),
      ...{ leftOut: new Set(listSlots(leftOut)), cited: new Set(listSlots(input.cited)), countEntry: tokensEach },
      ...{ enough: input.enough, free: input.free },
    });
    if (plan.entries.length + plan.cites.length === 0 || plan.freed < input.atLeast) return { kind: 'nothing-to-compact', epoch };
    const kept = plan.kept.reduce((sum, one) => sum + (plan.cites.includes(one) ? citedMessageTokens() : tokensEach(one)), 0);
    const cited = toRanges(plan.cites.map(({ slot }) => slot));
    counts.cited += plan.cites.length;
    if (plan.turnIds.length === 0) return { kind: 'cited', epoch, cited, tokensBefore: plan.freed + kept, tokensAfter: kept };
    counts.compactions += 1;
    const beginning = await beginningOfSession(store, key, state.session, entries);
    const pins = { goal: task?.goal || beginningIn(beginning.map(({ message }) => message)), openTasks: task?.openTasks ?? [] };
    const turn_ids = [...plan.turnIds];
    const episode = { id: episodicId(number), ts: ts(), turn_ids, summary: `about ${turn_ids.join()}`, tags: [], salience: 0.5 };
    await store.episodes.add(key, { ...episode, session: state.session, epoch, slots: plan.slots });
    const text = boundedBundle({ ...retrieve(await inSession(), []), ...pins }, line, estimateStringTokens);
    const record = { inputsHash: '', compactor: '', method: 'model', model: '', tokensBefore: 1, tokensAfter: 1 } as const;
    return {
      ...{ kind: 'compacted', life: key.life, epoch, kept: toRanges(plan.kept.map(({ slot }) => slot)), archived: plan.slots, cited },
      ...{ turns: turn_ids, task: pins, base: { ref: (await store.bodies.put(key, text)).ref, text }, episode, facts: [] },
      ...{ method: 'model', record, tokensBefore: plan.freed + kept, tokensAfter: estimateStringTokens(text) + kept, usage: USAGE },
    };
  }

  async function outputOf(effect: Effect): Promise<unknown> {
    switch (effect.effect) {
      case 'model-step':
        return model(effect.input);
      case 'store-step':
        perform(effect.input.write);
        return stored(effect.input);
      case 'run-tool':
        return runTool(effect.input);
      case 'compact':
        return compact(effect.input);
      case 'uncompact':
        return store.episodes.remove(key, effect.input.episode);
      case 'truncate': {
        const result = await truncate(dependencies(), effect.input);
        if (result.entries > 0) counts.truncations += 1;
        return result;
      }
      case 'evict': {
        const { session: of, move, what } = effect.input;
        const result = { life: key.life, session: of, finished: true };
        if (what.kind !== 'trim') return result;
        const trimmed = await trim(store, key, { ...what, session: of, move });
        if (trimmed) counts.trims += 1;
        return { ...result, ...(trimmed && { trimmed }) };
      }
      case 'rewind':
        counts.rewinds += 1;
        return rewind(dependencies(), effect.input);
      case 'open-origin':
        return openOrigin(dependencies(), effect.input);
      case 'ask-memory':
        news.push(effect.id);
        await claimTurns(store, key, effect.id, there(listSlots(effect.input.request.slots)));
        return undefined;
      default:
        return undefined;
    }
  }

  const tell = (event: ConversationEvent): void => {
    state = apply(state, event);
  };
  async function settle(): Promise<void> {
    for (let i = 0; i < 1_000; i++) {
      const step = nextStep(state);
      at += 1;
      if (step.kind === 'begin-turn') {
        tell({ kind: 'turn-begun', at });
        session = [...session, state.turn?.number ?? 0];
      } else if (step.kind === 'effect') {
        tell({ ...step, kind: 'effect-started', at });
        if (step.effect === 'run-tool' && op.kind === 'turn' && op.steers) {
          op = { ...op, steers: false };
          tell(said(`s${at}`, { at, text: `steered at ${at}`, delivery: 'steer' }));
        }
        const output = await outputOf(step);
        const before = state.session;
        tell({ kind: 'effect-completed', effect: step.effect, id: step.id, output, at } as ConversationEvent);
        if (state.session !== before && !['rewind', 'open-origin'].includes(step.effect)) session = [];
      } else if (step.kind === 'upsert-attributes') {
        tell({ kind: 'attributes-upserted', status: step.attributes.AgentStatus, turns: step.attributes.AgentTurns, at });
      } else return;
    }
    problems.push('it never comes to rest');
  }

  /** A conversation of its own that begins with turns of this one. */
  async function fork(to: number): Promise<void> {
    counts.forks += 1;
    const parent = key;
    const life = `l${counts.forks + 1}`;
    key = { ...key, conversation: `fork-${counts.forks}`, life };
    const { identity, ...others } = open();
    const origin = { kind: 'fork', conversation: parent.conversation, life: parent.life, turn: turnId(to) } as const;
    state = withOrigin({ ...others, identity: { ...identity, life } }, origin);
    session = session.slice(0, session.indexOf(to) + 1);
    news.length = 0;
    for (const number of tasks.keys()) if (number > to) tasks.delete(number);
    await settle();
  }

  return {
    ...{ counts, problems },
    async step(next: Op): Promise<void> {
      op = next;
      at += 10;
      const id = `x${at}`;
      const paid = counts.calls - counts.full;
      if (op.kind === 'turn') tell(said(id, { at, text: `message at ${at} ${'m'.repeat(4 * op.message)}` }));
      else if (op.kind === 'news') {
        const requestId = news.shift();
        const consolidation = op.byModel ? 'model' : 'raw-fallback';
        if (requestId !== undefined && op.byModel)
          small.history.unshift({ id: consolidationId(key, requestId), kind: 'summary', ts: ts(), text: `summary of ${requestId}` });
        if (requestId !== undefined) tell({ kind: 'consolidation-ended', requestId, consolidation, usage: null, at });
      } else if (op.kind === 'time') tell({ kind: 'time-passed', at: (at += 31_000) });
      else if (op.kind === 'compact') tell({ kind: 'compaction-requested', requestId: id, at });
      else if (op.kind === 'truncate') tell({ kind: 'truncation-requested', requestId: id, at });
      else if (op.kind === 'undo') tell({ kind: 'undo-requested', requestId: id, at });
      else if (op.kind === 'reset') {
        const before = state.session;
        tell({ kind: 'reset-requested', resetId: id, at });
        await settle();
        tell({ kind: 'time-passed', at: (at += 31_000) });
        await settle();
        if (state.session !== before) session = [];
      } else if (op.kind === 'rewind' || op.kind === 'fork') {
        const to = session.at(-1 - op.back);
        if (to === undefined) return;
        if (op.kind === 'fork') await fork(to);
        else {
          // A rewind before a turn leaves what it came after; before the first of a session that is nothing of it.
          const isBefore = op.before && session[0] !== to;
          tell({ kind: 'rewind-requested', requestId: id, to: turnId(to), ...(isBefore && { before: true as const }), at });
          await settle();
          session = session.slice(0, session.indexOf(to) + (isBefore ? 0 : 1));
        }
      }
      await settle();
      const last = state.ended.at(-1);
      if (op.kind !== 'turn' || !last) return;
      if (state.turn) problems.push('the turn has not ended');
      if (last.stopReason === 'end') return;
      if (last.stopReason !== 'failed' || !last.error?.message) problems.push(`a turn ended with ${last.stopReason}, without words`);
      // Of a turn that fails for its size nothing was paid but what brought it there; a model that refuses it for its size is how that is known.
      if (last.error?.type === 'too-large' && op.rounds.length === 0 && op.sets === 'nothing' && counts.calls - counts.full > paid)
        problems.push('a message that was too large was paid for');
    },
    async lost(): Promise<string | undefined> {
      const left = [...state.context, ...(state.compaction.leftOut ?? [])];
      const kept = new Set([...listSlots(left), ...(await inSession()).flatMap(({ slots }) => listSlots(slots))]);
      const all = state.counters.slot === 0 ? [] : there(listSlots([[1, state.counters.slot]]));
      const cut = new Set(small.cuts(key).flatMap(({ slots }) => listSlots(slots)));
      const own = all.filter(({ turn, slot, message }) => session.includes(turnNumber(turn)) && !cut.has(slot) && !(message.role === 'user' && message.from === 'notice')); // prettier-ignore
      const lost = own.filter(({ slot }) => !kept.has(slot));
      return lost.length === 0 ? undefined : `slots ${lost.map(({ slot }) => slot).join()} are in neither the prompt nor an episode`;
    },
  };
}

const LONG = process.env['PERDURA_LONG'] === '1';

type Form = readonly [trims: AgentSettings['memory']['trim'], autoCompact: boolean, window: number];

export const FORMS: readonly Form[] = [
  ['when-needed', true, Infinity],
  ['at-window', true, Infinity],
  ['when-needed', false, Infinity],
  ['when-needed', true, 5_000],
];

/** How often each thing was done, in all lives together. */
export async function tryLives([trims, autoCompact, window]: Form, runs: number): Promise<Readonly<Record<string, number>>> {
  const all: Record<string, number> = {};
  await fc.assert(
    fc.asyncProperty(ops, async (list) => {
      const world = createWorld(settingsFor(trims, autoCompact), window);
      for (const [i, one] of list.entries()) {
        await world.step(one);
        const problem = world.problems[0] ?? (await world.lost());
        if (problem !== undefined) throw new Error(`after ${i + 1} of ${JSON.stringify(list)}: ${problem}`);
      }
      for (const [name, count] of Object.entries(world.counts)) all[name] = (all[name] ?? 0) + count;
    }),
    { numRuns: LONG ? runs * 100 : runs },
  );
  return all;
}
