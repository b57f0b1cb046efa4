/** What the world's activities do: a store, a ledger, models and tools, which end well or badly as a choice says. */
import { obstacleTo } from '../../../src/conversation/context/call-gate.js';
import { withResultCounted } from '../../../src/conversation/context/citing.js';
import type {
  DeferReason,
  ModelAnswer,
  ModelStepInput,
  ModelStepResult,
  ToolFinished,
  ToolPlan,
} from '../../../src/conversation/turn/model-step-effects.js';
import type { StepFailure, Writes, Written } from '../../../src/conversation/outbox/writes.js';
import type { AgentSettings, ConfigureRequest } from '../../../src/conversation/state/settings.js';
import type { ConversationEvent } from '../../../src/conversation/event.js';
import type { Effect, EffectOf } from '../../../src/conversation/effect.js';
import { type JsonValue, addUsage } from '../../../src/records/message.js';
import { listSlots, toRanges } from '../../../src/records/slots.js';
import { WEBHOOK_EVENTS } from '../../../src/records/turn-end.js';
import { answer, askingFor, evicted, finished, ORDINARY, QUICK, SETTINGS, STORE_AWAY, stored, USAGE, written } from '../drive.js';
import { isAwaited, noteAnswered, noteDelivered } from './rules.js';
import type { World } from './world.js';

/** A window that a few turns fill, and a context that a few long answers do. */
const SMALL = {
  ...SETTINGS,
  contextBudget: 1_000,
  thresholds: { soft: 700, hard: 800, truncation: 950, autoCompact: true, suggests: true },
  memory: { ...SETTINGS.memory, window: 6, keep: 2 },
  fixedTokens: 5,
  titles: 'model' as const,
  webhooks: WEBHOOK_EVENTS,
};

/** The agent's list, as a worker finds it from the model that a step asks for. */
export const MODELS = ['anthropic/first', 'openai/second', 'gemini/third'];

function settingsFor({ fallback, model }: ConfigureRequest): AgentSettings {
  const name = fallback ?? model ?? MODELS[0] ?? '';
  const next = MODELS.slice(MODELS.indexOf(name) + 1);
  return { ...SMALL, hash: `of ${name}`, model: name, ...(model === null && { fallback: { first: MODELS[0] ?? '', next, tries: 2 } }) };
}

const PASSING: StepFailure = { type: 'overloaded', message: 'no', transient: true };
const LASTING: StepFailure = { type: 'auth', message: 'no', transient: false };
const TOO_MUCH: StepFailure = { type: 'too-large', message: 'no', transient: false };

const TOOLS = [{ name: 'look', inputSchema: { type: 'object' } }];

export function brings(id: number): { readonly tools?: typeof TOOLS } {
  return id % 3 === 0 ? { tools: TOOLS } : {};
}

/** Of a round, by a number: all of one kind, or mixed. */
function plansOf(how: number, tools: number): ToolPlan[] {
  const kinds: ToolPlan[] = [
    QUICK,
    ORDINARY,
    { ...ORDINARY, repeatable: false },
    { ...QUICK, approval: { policy: 'ask', expiresMs: 6_000, same: 'call' } },
    { ...QUICK, workflowAction: { kind: 'ask-person', expiresMs: 6_000 } },
    { ...QUICK, workflowAction: { kind: 'ask-client', expiresMs: 6_000 } },
    { ...QUICK, workflowAction: { kind: 'ask-client', expiresMs: 6_000 }, approval: { policy: 'ask', expiresMs: 6_000, same: 'client' } },
    { ...QUICK, workflowAction: { kind: 'wait-until', until: 8_000 } },
    { ...QUICK, workflowAction: { kind: 'wait-for', ms: 3_000 } },
    { ...QUICK, workflowAction: { kind: 'compact' } },
    { ...QUICK, workflowAction: { kind: 'delegate', agent: 'a', task: 't', title: 't', maxDepth: 1, maxChildren: 3 } },
    { ...QUICK, approval: { policy: 'deny', why: 'no.' } },
    {
      ...{ ...QUICK, approval: { policy: 'ask', expiresMs: 6_000 } },
      workflowAction: { kind: 'delegate', agent: 'a', task: 't', title: 't', maxDepth: 2, maxChildren: 3 },
    },
  ];
  if (how < 4) return Array<ToolPlan>(tools).fill(QUICK);
  if (how === 4) return Array<ToolPlan>(tools).fill(ORDINARY);
  return Array.from({ length: Math.min(tools, 5) }, (_, i) => kinds[(tools + i) % kinds.length] ?? QUICK);
}

function put(world: World, slot: number, what: string): void {
  const before = world.entries.get(slot);
  if (before !== undefined && before !== what) world.problems.push(`slot ${slot} is both ${before} and ${what}`);
  world.entries.set(slot, what);
}

/** As the store takes it: what it has already stays as it is. */
function performWrites(world: World, write: Writes): Written {
  const receipt = written(write);
  const messages = receipt.messages.map((message, i) => {
    const { messageId, slot, turn } = write.messages[i]!;
    const known = world.messages.get(messageId);
    if (known && known.slot !== slot) return { ...message, duplicate: known.turn };
    world.messages.set(messageId, { slot, turn });
    put(world, slot, `message ${messageId}`);
    return message;
  });
  const committed = write.settle.flatMap(({ effect, entry }) => {
    const result = world.committed.get(effect);
    if (result !== undefined) return [{ effect, result }];
    world.fenced.add(effect);
    if (entry) {
      put(world, entry.slot, effect);
      if (entry.message.role === 'tool') {
        noteAnswered(world, entry.message.callId, entry.slot);
        world.outcomes.set(entry.message.callId, entry.message.outcome);
      }
    }
    return [];
  });
  for (const entry of write.entries) putOwed(world, entry);
  return { ...receipt, messages, ...(committed.length > 0 && { committed }) };
}

function putOwed(world: World, { slot, message }: Writes['entries'][number]): void {
  if (message.role === 'tool') {
    put(world, slot, message.callId);
    noteAnswered(world, message.callId, slot);
    world.outcomes.set(message.callId, message.outcome);
  } else put(world, slot, `answer ${slot}`);
}

function performTool(world: World, run: Parameters<typeof finished>[0], how: number, tools: number): ToolFinished {
  const { callId, slot } = run;
  const again = world.committed.get(callId);
  if (again !== undefined) return again as unknown as ToolFinished;
  const usage = tools % 5 === 0 ? { usage: { ...USAGE, inputTokens: 7 } } : {};
  const result = finished(run, { ...usage, persisted: how !== 6, ...(tools === 7 && { text: 'x'.repeat(4_000) }) });
  if (world.fenced.has(callId)) return { ...result, fenced: true };
  if (isLost(result, tools)) return result;
  world.committed.set(callId, { ...result, persisted: true } as unknown as JsonValue);
  put(world, slot, callId);
  noteAnswered(world, callId, slot);
  world.outcomes.set(callId, result.outcome);
  return result;
}

function commitAnswer(world: World, made: ModelAnswer): ModelAnswer {
  const { call, slot, blocks } = made;
  const again = world.committed.get(call) as unknown as { readonly answer: ModelAnswer } | undefined;
  if (again) return again.answer;
  if (world.fenced.has(call)) return { ...made, fenced: true };
  if (isLost(made, slot)) return made;
  world.committed.set(call, { answer: { ...made, persisted: true } } as unknown as JsonValue);
  const callIds = blocks.flatMap((block) => (block.kind === 'tool-call' ? [block.callId] : []));
  if (callIds.length > 0) world.asks.set(slot, callIds);
  if (blocks.length > 0) put(world, slot, `answer ${slot}`);
  return made;
}

/** A store that was away has taken both or neither, and the activity cannot know which. */
function isLost({ persisted }: { readonly persisted: boolean }, luck: number): boolean {
  return !persisted && luck % 2 === 0;
}

type Outcome = ModelStepResult | StepFailure;

/** In the order of the activity: write, tools, decide, call. */
function performModelStep(world: World, input: ModelStepInput, how: number, tools: number): Outcome {
  // Away as the step began, or as it ended.
  if (how === 9 && tools % 2 === 0) return STORE_AWAY;
  const { session, turn, call, configure } = input;
  const receipt = performWrites(world, input.write);
  const found = configure && settingsFor(configure);
  const isNew = found !== null && configure?.knownHash !== found.hash;
  const result = {
    written: { ...receipt, ...(input.asksAttributes && { attributes: tools % 2 === 0 ? ('registered' as const) : ('missing' as const) }) },
    ...(isNew && { configured: { kind: 'settings', settings: found } as const }),
    ...(input.wantsTitle && tools % 2 === 0 && { title: 'first words' }),
  };
  const deferred = (reason: DeferReason, done: readonly ToolFinished[] = []): ModelStepResult => ({
    ...{ ...result, tools: done, kind: 'deferred', reason },
  });
  const runTools = (): ToolFinished[] => input.tools.map((tool) => performTool(world, { session, turn, ...tool }, how, tools));
  const known = world.committed.get(call.id) as unknown as { readonly answer: ModelAnswer } | undefined;
  if (known) return { ...result, tools: runTools(), kind: 'answered', answer: known.answer };
  if (receipt.messages.some(({ duplicate }) => duplicate !== undefined)) return deferred('duplicate');
  if (configure && tools === 13) {
    return {
      ...deferred('unusable'),
      configured: { kind: 'unusable', type: 'unknown-agent', message: 'no agent', webhooks: WEBHOOK_EVENTS },
    };
  }
  const isStopped = typeof world.state.turn?.stopping?.sentAt === 'number';
  const isFirstCall = call.soFar === undefined && input.tools.length === 0;
  if (isFirstCall && how % 4 === 1 && !input.deferred?.includes('recall')) {
    return { ...deferred('recall'), kind: 'deferred', reason: 'recall', recalled: `[RECALLED] for ${turn}` };
  }
  if (isStopped && how === 5) return deferred('stopped');
  const done = runTools();
  if (isStopped && how === 4) return deferred('stopped', done);
  const settings = input.settings ?? SMALL;
  const numbers = done.reduce((now, tool) => {
    const counted = withResultCounted(now, tool, settings.contextBudget);
    return tool.usage ? { ...counted, usage: addUsage(counted.usage, tool.usage) } : counted;
  }, input.numbers);
  // What processors make of a message may be longer than the workflow can know.
  const [limit, { inputTokens, outputTokens }] = [world.limits.get(call.id) ?? Infinity, numbers.usage];
  const obstacle = obstacleTo(numbers, settings) ?? (how === 7 ? 'compaction' : undefined);
  if (obstacle && !input.deferred?.includes(obstacle)) return deferred(obstacle, done);
  if (inputTokens + outputTokens >= limit) world.problems.push(`${call.id} calls a model beyond its budget`);
  if (how === 9) {
    if (tools % 3 === 0) commitAnswer(world, made(input, tools, 0));
    return STORE_AWAY;
  }
  if (how === 8 && tools % 4 > 0) {
    // The worker dies, before or after the answer was committed.
    if (tools % 2 === 0) commitAnswer(world, made(input, tools, 0));
    return tools % 3 === 0 ? LASTING : PASSING;
  }
  if (how === 8) return { ...result, tools: done, kind: 'failed', failure: [PASSING, LASTING, TOO_MUCH][tools % 3] ?? PASSING };
  return { ...result, tools: done, kind: 'answered', answer: commitAnswer(world, made(input, tools, how)) };
}

function made(input: ModelStepInput, tools: number, how: number): ModelAnswer {
  const usage = { ...USAGE, inputTokens: tools === 19 ? 900 : 10 + tools };
  if (isLast(input, how)) return answer(input, { usage, persisted: how !== 6, ...(tools === 17 && { blocks: [], stop: 'context-full' }) });
  return { ...askingFor(input, plansOf(how, tools)), usage, persisted: tools % 7 !== 0 };
}

/** After some rounds an answer has no more calls. */
function isLast({ call }: ModelStepInput, how: number): boolean {
  return how === 0 || how >= 6 || call.firstToolCall > 40;
}

/** Ends it: an event of what became of it. */
export function endOf(world: World, effect: Effect, how: number, tools: number): ConversationEvent {
  const outcome = outcomeOf(world, effect, how, tools);
  const { id, effect: name } = effect;
  const { at } = world;
  return isFailure(outcome)
    ? { kind: 'effect-failed', effect: name, id, failure: outcome, at }
    : ({ kind: 'effect-completed', effect: name, id, output: outcome, at } as ConversationEvent);
}

function isFailure(outcome: unknown): outcome is StepFailure {
  return typeof outcome === 'object' && outcome !== null && 'transient' in outcome;
}

function outcomeOf(world: World, effect: Effect, how: number, tools: number): unknown {
  const fails = how === 9;
  switch (effect.effect) {
    case 'model-step': {
      const result = performModelStep(world, effect.input, how, tools);
      noteStep(world, effect, result);
      return result;
    }
    case 'store-step': {
      // Away before it has written, or after.
      if (fails && tools % 2 === 0) return STORE_AWAY;
      const result = performWrites(world, effect.input.write);
      if (fails) return STORE_AWAY;
      noteCommitted(world, result);
      return { ...stored(effect.input), written: result };
    }
    case 'run-tool': {
      if (fails && tools % 2 === 0) return LASTING;
      const result = performTool(world, effect.input, how, tools);
      // The worker dies after it was committed.
      if (fails) return PASSING;
      notePaid(world, result.callId, result.usage?.inputTokens);
      return result;
    }
    case 'compact': {
      if (fails) return LASTING;
      const { epoch, number, context } = effect.input;
      const slots = listSlots(context);
      if (how < 3 || slots.length < 2) return { kind: 'nothing-to-compact', epoch };
      const half = Math.floor(slots.length / 2);
      notePaid(world, effect.id, USAGE.inputTokens);
      return {
        ...{
          kind: 'compacted',
          life: 'l1',
          epoch,
          kept: toRanges(slots.slice(half)),
          archived: toRanges(slots.slice(0, half)),
          turns: ['turn_0001'],
        },
        ...{ task: { goal: 'g', openTasks: [] }, base: { ref: `base-${epoch}`, text: 'x' }, facts: [], method: 'model' },
        episode: { id: `ep_${number}`, ts: 1, turn_ids: ['turn_0001'], summary: 's', tags: [], salience: 0.5 },
        ...{ tokensBefore: 10, tokensAfter: 5, usage: USAGE },
      };
    }
    case 'truncate': {
      if (fails) return LASTING;
      const { epoch, context, notice } = effect.input;
      const slots = listSlots(context);
      if (how < 3 || slots.length < 3) return { life: 'l1', epoch, dropped: [], tokens: 0, entries: 0 };
      put(world, notice.slot, `notice ${notice.slot}`);
      const message = { role: 'user', text: 'n' };
      const entries = Math.floor(slots.length / 3);
      return {
        life: 'l1',
        epoch,
        dropped: toRanges(slots.slice(0, entries)),
        tokens: 50,
        entries,
        notice: { v: 1, ts: 1, ...notice, message },
      };
    }
    case 'evict':
      return fails ? STORE_AWAY : evicted(effect.input);
    case 'rewind': {
      if (fails) return LASTING;
      const { requestId: id, branch, session } = effect.input;
      const slots = listSlots(world.state.context);
      const cut = { v: 1, id, branch, to: 1, begun: 1, since: 1, slot: 1, at: 1, session, slots: [] };
      const context = toRanges(wholeRounds(world, slots.slice(0, Math.floor(slots.length / 2))));
      return { life: 'l1', cut, turns: 1, session, context, task: null, episodes: [], compactions: 0, tokens: 1 };
    }
    case 'open-origin': {
      if (fails) return LASTING;
      for (let slot = 1; slot <= 21; slot++) put(world, slot, 'shared');
      const beginning = { v: 1, kind: 'fork', of: { conversation: 'c1', life: 'l0' }, turn: 7, shared: [], archived: [] };
      const counts = { slot: 21, session: 2, turns: 7, inContext: 2, compactions: 0, tokens: 10 };
      return { life: 'l1', beginning, ...counts, context: [[15, 21]], task: null, episodes: [], window: [], attributes: 'missing' };
    }
    case 'ask-memory':
      if (how >= 8) return PASSING;
      world.news.push(effect.id);
      return undefined;
    case 'start-child':
      if (fails) return LASTING;
      world.children.push(effect.input.callId);
      return undefined;
    case 'title':
      if (fails) return LASTING;
      notePaid(world, effect.id, USAGE.inputTokens);
      return { ...(how % 2 === 0 && { title: 'Of the model' }), usage: USAGE };
    case 'look-after':
      return fails ? PASSING : how === 8 ? 'TERMINATED' : 'RUNNING';
    case 'deliver':
      if (fails) return PASSING;
      for (const event of effect.input.events) noteDelivered(world, event);
      return undefined;
    case 'report':
      world.reports += 1;
      return fails ? PASSING : undefined;
    case 'uncompact':
    case 'heal':
      return fails ? PASSING : undefined;
  }
}

/** As much of the beginning as has no call without its answer. */
function wholeRounds(world: World, slots: readonly number[]): readonly number[] {
  const isOpen = (slot: number): boolean => (world.asks.get(slot) ?? []).some((callId) => !slots.includes(world.answers.get(callId) ?? -1));
  const first = slots.findIndex(isOpen);
  return first === -1 ? slots : wholeRounds(world, slots.slice(0, first));
}

function noteStep(world: World, effect: EffectOf<'model-step'>, result: Outcome): void {
  if (isFailure(result)) return;
  if (isAwaited(world.state, effect)) {
    noteCommitted(world, result.written);
    if (result.kind === 'deferred') noteDeferral(world, effect.input, result);
    if (result.kind === 'answered') {
      world.deferrals.clear();
      notePlans(world, result.answer);
    }
  }
  for (const { callId, usage } of result.tools) notePaid(world, callId, usage?.inputTokens);
  if (result.kind === 'answered') notePaid(world, result.answer.call, result.answer.usage.inputTokens);
}

/** Only of an answer that is waited for: what a call that was given up has asked for has the same names. */
function notePlans({ plans }: World, { blocks, plans: made = [] }: ModelAnswer): void {
  for (const [i, block] of blocks.entries()) {
    const plan = made[i];
    if (block.kind === 'tool-call' && plan) plans.set(block.callId, plan);
  }
}

/**
 * No reason twice without an answer between them (turn/no-reason-defers-twice). Of a duplicate there may be another, which a person has
 * sent later.
 */
function noteDeferral(
  world: World,
  { turn, write, configure }: ModelStepInput,
  { reason, written: { messages } }: ModelStepResult & { kind: 'deferred' },
): void {
  const ids = messages.flatMap(({ slot, duplicate }) =>
    duplicate === undefined ? [] : [write.messages.find((message) => message.slot === slot)?.messageId],
  );
  // The next model of the list may take less: for it the context may be made shorter again.
  const name = `${turn}${configure?.fallback ?? ''}: ${reason === 'duplicate' ? ids.join() : reason}`;
  const count = (world.deferrals.get(name) ?? 0) + 1;
  world.deferrals.set(name, count);
  if (count > 1) world.problems.push(`${name} has deferred twice`);
}

function noteCommitted(world: World, { committed = [] }: Written): void {
  for (const { effect, result } of committed) {
    const { answer: made, usage } = result as unknown as { answer?: ModelAnswer; usage?: ToolFinished['usage'] };
    notePaid(world, effect, (made?.usage ?? usage)?.inputTokens);
  }
}

function notePaid({ told }: World, id: string, tokens: number | undefined): void {
  if (tokens !== undefined && !told.has(id)) told.set(id, tokens);
}
