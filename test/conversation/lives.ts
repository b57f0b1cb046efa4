/**
 * Random lives of a conversation: a world that starts what `nextStep` asks for, ends it somehow, some day, and keeps a store and a
 * ledger as activities do. What must never be is noted in `problems`.
 */
import fc from 'fast-check';
import { apply } from '../../src/conversation/apply.js';
import { obstacleTo } from '../../src/conversation/activity-io/call-gate.js';
import { withResultCounted } from '../../src/conversation/context/citing.js';
import { EFFECTS } from '../../src/conversation/effect-table.js';
import type {
  DeferReason,
  ModelAnswer,
  ModelStepInput,
  ModelStepResult,
  StepFailure,
  Writes,
  Written,
} from '../../src/conversation/activity-io/effects.js';
import type { EvictInput } from '../../src/conversation/activity-io/memory-effects.js';
import { WEBHOOK_EVENTS } from '../../src/records/webhooks.js';
import type { DueEvent } from '../../src/conversation/activity-io/webhook-effects.js';
import type { ConversationEvent } from '../../src/conversation/event.js';
import type { Effect, EffectOf } from '../../src/conversation/effect.js';
import { withOrigin } from '../../src/conversation/lineage/lineage.js';
import { type JsonValue, addUsage } from '../../src/records/message.js';
import { nextStep, type Step } from '../../src/conversation/next-step.js';
import { isStoreUpToDate } from '../../src/conversation/state/queue-state.js';
import { slotsOf, toRanges } from '../../src/records/slots.js';
import type { ConversationState } from '../../src/conversation/state.js';
import { readCarriedState } from '../../src/conversation/state/carried-state.js';
import type { ToolFinished, ToolPlan } from '../../src/conversation/activity-io/tool-effects.js';
import { approvalsOf } from '../../src/conversation/turn/approvals.js';
import type { AgentSettings, ConfigureRequest } from '../../src/conversation/activity-io/settings.js';
import { answer, askingFor, evicted, finished, open, ORDINARY, QUICK, SETTINGS, STORE_AWAY, stored, USAGE, written } from './drive.js';

type Plain = 'reset' | 'interrupt' | 'close' | 'rewind' | 'model' | 'due' | 'news' | 'app' | 'clear' | 'step';

/** One choice of the world: something arrives, something in flight ends somehow, time passes. */
export type Choice =
  | { readonly kind: 'say'; readonly id: number; readonly delivery: 'queue' | 'steer' | 'interrupt'; readonly bytes: number }
  | { readonly kind: 'withdraw'; readonly id: number }
  | { readonly kind: Plain }
  | { readonly kind: 'ask'; readonly what: 'compaction' | 'undo' | 'truncation' }
  | { readonly kind: 'mode'; readonly mode: 'auto' | 'stepping' }
  | { readonly kind: 'break'; readonly at: number }
  | { readonly kind: 'budget'; readonly maxTokens: number }
  | { readonly kind: 'decide'; readonly which: number; readonly decision: 'approve' | 'deny' | 'always' }
  | { readonly kind: 'child'; readonly which: number }
  | { readonly kind: 'holds'; readonly which: number; readonly isPaused: boolean }
  | { readonly kind: 'time'; readonly ms: number }
  | { readonly kind: 'end'; readonly which: number; readonly how: number; readonly tools: number };

const nothingMore = (kind: Plain) => fc.constant<Choice>({ kind });

export const choices = (maxLength: number): fc.Arbitrary<Choice[]> =>
  fc.array(
    fc.oneof(
      {
        weight: 24,
        arbitrary: fc.record({
          kind: fc.constant('say' as const),
          id: fc.nat(30),
          delivery: fc.constantFrom('queue' as const, 'queue' as const, 'steer' as const, 'interrupt' as const),
          bytes: fc.oneof({ weight: 40, arbitrary: fc.constant(1) }, { weight: 2, arbitrary: fc.constant(90_000) }, fc.constant(800_000)),
        }),
      },
      { weight: 2, arbitrary: fc.record({ kind: fc.constant('withdraw' as const), id: fc.nat(30) }) },
      { weight: 4, arbitrary: nothingMore('reset') },
      { weight: 4, arbitrary: nothingMore('interrupt') },
      { weight: 4, arbitrary: nothingMore('due') },
      { weight: 3, arbitrary: nothingMore('rewind') },
      { weight: 2, arbitrary: nothingMore('model') },
      { weight: 8, arbitrary: nothingMore('news') },
      { weight: 2, arbitrary: nothingMore('app') },
      { weight: 1, arbitrary: nothingMore('clear') },
      { weight: 3, arbitrary: nothingMore('step') },
      { weight: 1, arbitrary: nothingMore('close') },
      {
        weight: 4,
        arbitrary: fc.record({
          kind: fc.constant('ask' as const),
          what: fc.constantFrom('compaction' as const, 'undo' as const, 'truncation' as const),
        }),
      },
      {
        weight: 2,
        arbitrary: fc.record({ kind: fc.constant('mode' as const), mode: fc.constantFrom('auto' as const, 'stepping' as const) }),
      },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant('break' as const), at: fc.nat(3) }) },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant('budget' as const), maxTokens: fc.integer({ min: 1, max: 5_000 }) }) },
      {
        weight: 4,
        arbitrary: fc.record({
          kind: fc.constant('decide' as const),
          which: fc.nat(3),
          decision: fc.constantFrom('approve' as const, 'deny' as const, 'always' as const),
        }),
      },
      { weight: 4, arbitrary: fc.record({ kind: fc.constant('child' as const), which: fc.nat(3) }) },
      { weight: 4, arbitrary: fc.record({ kind: fc.constant('holds' as const), which: fc.nat(3), isPaused: fc.boolean() }) },
      { weight: 16, arbitrary: fc.record({ kind: fc.constant('time' as const), ms: fc.integer({ min: 1, max: 5_000 }) }) },
      {
        weight: 60,
        arbitrary: fc.record({
          kind: fc.constant('end' as const),
          which: fc.nat(20),
          how: fc.nat(9),
          tools: fc.integer({ min: 1, max: 20 }),
        }),
      },
    ),
    { maxLength },
  );

/** Plain data, so that a world can be copied. */
export interface World {
  state: ConversationState;
  at: number;
  /** What was started and has not ended: what the state has given up is among it, as a ghost. */
  flying: Effect[];
  readonly said: Set<string>;
  /** Of each slot of the store, what it holds. */
  readonly entries: Map<number, string>;
  /** Where the store has each message. */
  readonly messages: Map<string, { readonly slot: number; readonly turn: string }>;
  /** How each tool call ended, as the store has it. */
  readonly outcomes: Map<string, string>;
  readonly fenced: Set<string>;
  readonly committed: Map<string, JsonValue>;
  /** Slots that answers with calls have, and where each call is answered. */
  readonly asks: Map<number, readonly string[]>;
  readonly answers: Map<string, number>;
  /** What effects have cost, as the conversation was told. */
  readonly told: Map<string, number>;
  /** The turns that each message was in. */
  readonly taken: Map<string, Set<number>>;
  readonly deferrals: Map<string, number>;
  /** Slots that the memory workflow was asked to consolidate, and requests that it has not answered yet. */
  readonly asked: Map<number, string>;
  readonly news: string[];
  readonly children: string[];
  /** Turns that ended where it is known which events webhooks want, and those whose end went out; the numbers of all that went out. */
  readonly ends: number[];
  readonly endsDelivered: number[];
  readonly delivered: number[];
  readonly problems: string[];
  readonly requests: string[];
  resets: number;
  rewinds: number;
  steps: number;
  isOver: boolean;
}

/** Messages that the store has from long ago, when state has forgotten them. */
const LONG_AGO = { ids: ['m28', 'm29', 'm30'], turn: 'turn_9001' };

export function isFromLongAgo(messageId: string): boolean {
  return LONG_AGO.ids.includes(messageId);
}

const ORIGIN = { kind: 'fork', conversation: 'c1', life: 'l0', turn: 'turn_0007' } as const;

export function createWorld({ isFork = false }: { readonly isFork?: boolean } = {}): World {
  return {
    state: isFork ? withOrigin(open(), ORIGIN) : open(),
    ...{ at: 1000, flying: [], said: new Set(), entries: new Map(), outcomes: new Map(), fenced: new Set(), committed: new Map() },
    messages: new Map(LONG_AGO.ids.map((id) => [id, { slot: 0, turn: LONG_AGO.turn }])),
    ...{ asks: new Map(), answers: new Map(), told: new Map(), taken: new Map(), deferrals: new Map(), asked: new Map() },
    ...{ ends: [], endsDelivered: [], delivered: [] },
    ...{ news: [], children: [], problems: [], requests: [], resets: 0, rewinds: 0, steps: 0, isOver: false },
  };
}

/** A window that a few turns fill, and a context that a few long answers do. */
const SMALL = {
  ...SETTINGS,
  contextBudget: 1_000,
  thresholds: { soft: 700, hard: 800, truncation: 950, autoCompact: true, suggests: true },
  memory: { ...SETTINGS.memory, window: 6, keep: 2 },
  fixedTokens: 5,
  titles: 'model' as const,
  notifies: true,
  webhooks: WEBHOOK_EVENTS,
};

/** The agent's list, as a worker finds it from the model that a step asks for. */
const MODELS = ['anthropic/first', 'openai/second', 'gemini/third'];

function settingsFor({ fallback, model }: ConfigureRequest): AgentSettings {
  const name = fallback ?? model ?? MODELS[0] ?? '';
  const next = MODELS.slice(MODELS.indexOf(name) + 1);
  return { ...SMALL, hash: `of ${name}`, model: name, ...(model === null && { fallback: { first: MODELS[0] ?? '', next, tries: 2 } }) };
}

const PASSING: StepFailure = { type: 'overloaded', message: 'no', transient: true };
const LASTING: StepFailure = { type: 'auth', message: 'no', transient: false };
const TOO_MUCH: StepFailure = { type: 'too-large', message: 'no', transient: false };

const TOOLS = [{ name: 'look', inputSchema: { type: 'object' } }];

function brings(id: number): { readonly tools?: typeof TOOLS } {
  return id % 3 === 0 ? { tools: TOOLS } : {};
}

/** Of a round, by a number: all of one kind, or mixed. */
function plansOf(how: number, tools: number): ToolPlan[] {
  const kinds: ToolPlan[] = [
    QUICK,
    ORDINARY,
    { ...ORDINARY, repeatable: false },
    { ...QUICK, approval: { policy: 'ask', expiresMs: 20_000, same: `call ${tools % 3}` } },
    { ...QUICK, workflowAction: { kind: 'ask-person', expiresMs: 20_000 } },
    { ...QUICK, workflowAction: { kind: 'ask-client', expiresMs: 20_000 } },
    { ...QUICK, workflowAction: { kind: 'ask-client', expiresMs: 20_000 }, approval: { policy: 'ask', expiresMs: 20_000, same: 'client' } },
    { ...QUICK, workflowAction: { kind: 'wait-until', until: 8_000 } },
    { ...QUICK, workflowAction: { kind: 'wait-for', ms: 3_000 } },
    { ...QUICK, workflowAction: { kind: 'compact' } },
    { ...QUICK, workflowAction: { kind: 'delegate', agent: 'a', task: 't', title: 't', maxDepth: 1, maxChildren: 3 } },
    { ...QUICK, approval: { policy: 'deny', why: 'no.' } },
  ];
  if (how < 4) return Array<ToolPlan>(tools).fill(QUICK);
  if (how === 4) return Array<ToolPlan>(tools).fill(ORDINARY);
  return Array.from({ length: Math.min(tools, 5) }, (_, i) => kinds[(tools + i) % kinds.length] ?? QUICK);
}

export function tell(world: World, event: ConversationEvent): void {
  const before = world.state;
  world.state = apply(before, event);
  checkMonotone(world, before, world.state);
  noteEnds(world, before, event);
  for (const id of world.state.turn?.messageIds ?? []) {
    const turns = world.taken.get(id) ?? new Set();
    world.taken.set(id, turns.add(world.state.turn?.number ?? 0));
    if (turns.size > 1) world.problems.push(`${id} is in the turns ${[...turns].join()}`);
  }
}

function noteEnds(world: World, before: ConversationState, event: ConversationEvent): void {
  const last = before.ended[before.ended.length - 1];
  const more = world.state.ended.slice(last ? world.state.ended.lastIndexOf(last) + 1 : 0);
  const isUnusable =
    event.kind === 'effect-completed' &&
    event.effect === 'model-step' &&
    event.output.configured?.kind === 'unusable' &&
    !before.turn?.stopping;
  if (world.state.settings === null && !isUnusable) return;
  world.ends.push(...more.filter(({ stopReason }) => stopReason !== 'withdrawn').map(({ number }) => number));
}

function noteDelivered(world: World, event: DueEvent): void {
  const last = world.delivered[world.delivered.length - 1] ?? 0;
  if (event.number <= last) world.problems.push(`event ${event.number} went out after ${last}`);
  world.delivered.push(event.number);
  if (event.kind === 'turn-ended') world.endsDelivered.push(event.ended.number);
}

/** Starts what is next until nothing is. */
export function pump(world: World): void {
  for (let i = 0; i < 1000 && !world.isOver; i++) if (!start(world, nextStep(world.state))) return;
  if (!world.isOver) world.problems.push('nextStep never comes to rest');
}

function start(world: World, step: Step): boolean {
  const { at } = world;
  switch (step.kind) {
    case 'effect': {
      const { kind: _, ...effect } = step;
      checkStart(world, effect);
      tell(world, { kind: 'effect-started', ...effect, at });
      world.flying.push(effect);
      return true;
    }
    case 'begin-turn':
      tell(world, { kind: 'turn-begun', at });
      return true;
    case 'reduce': {
      const reduced = { kind: 'reduced', operations: [{ kind: 'ADD', chunk: { type: 'NOTE', text: 'x' } }] } as const;
      tell(world, { kind: 'app-event-reduced', id: step.event.id, reduced, at });
      return true;
    }
    case 'stop':
      tell(world, { kind: 'stop-sent', at });
      return true;
    case 'stop-late':
      tell(world, { kind: 'late-children-stopped', at });
      return true;
    case 'upsert-attributes':
      tell(world, { kind: 'attributes-upserted', status: step.attributes.AgentStatus, turns: step.attributes.AgentTurns, at });
      return true;
    case 'upsert-title':
      tell(world, { kind: 'title-upserted', at });
      return true;
    case 'notify-children':
      tell(world, { kind: 'children-notified', at });
      return true;
    case 'order-children':
      tell(world, { kind: 'children-ordered', orders: step.orders, at });
      return true;
    case 'notify-parent':
      tell(world, { kind: 'parent-notified', asks: '[]', at });
      return true;
    case 'hand-over':
      if (world.state.inFlight.length > 0) world.problems.push('hand-over with something in flight');
      const carried = readCarriedState(JSON.parse(JSON.stringify(world.state)), world.state.identity.life);
      if (!carried.ok) world.problems.push(`the next run would not take it: ${carried.reason}`);
      world.state = JSON.parse(JSON.stringify(world.state)) as ConversationState;
      // What was given up in this run tells no later one.
      world.flying = [];
      tell(world, { kind: 'run-continued', at });
      return true;
    case 'finish':
      if (world.state.inFlight.length > 0) world.problems.push('finished with something in flight');
      world.isOver = true;
      return true;
    case 'refuse':
      world.isOver = true;
      return true;
    case 'wait':
      return false;
  }
}

function checkStart(world: World, { effect, id, input }: Effect): void {
  const { problems, state, flying } = world;
  const { waitsFor } = EFFECTS[effect];
  const awaited = flying.filter((one) => isAwaited(state, one));
  for (const other of awaited) {
    if (waitsFor.includes(EFFECTS[other.effect].lane)) problems.push(`${effect} beside ${other.effect}`);
    if (other.effect === effect && other.id === id) problems.push(`${effect} ${id} is started twice`);
  }
  if (state.inFlight.some((one) => !awaited.some((other) => other.effect === one.effect && other.id === one.id)))
    problems.push('something is in flight that nobody has started');
  if (state.handOver !== null && effect !== 'store-step' && effect !== 'heal') problems.push(`${effect} while a hand-over is due`);
  const inContext = slotsOf(state.context);
  // N4
  if (['past', 'context'].includes(EFFECTS[effect].lane) && !isStoreUpToDate(state))
    problems.push(`${effect} before all is with the store`);
  switch (effect) {
    case 'model-step':
      checkCall(world, input);
      break;
    case 'run-tool':
      if (!world.entries.has(input.askedIn)) problems.push(`${id} runs before the store has its arguments`);
      break;
    case 'compact':
    case 'truncate':
      checkWritten(world, slotsOf(input.context), new Set(), effect);
      break;
    case 'ask-memory':
      for (const slot of slotsOf(input.request.slots)) {
        const before = world.asked.get(slot);
        if (before !== undefined && before !== id) problems.push(`slot ${slot} is asked for in ${before} and ${id}`);
        world.asked.set(slot, id);
      }
      break;
    case 'evict':
      if (state.turn) problems.push('messages leave the context inside a turn');
      const leaving = leavingSlots(input.what);
      const there = [...inContext, ...slotsOf(state.compaction.leftOut ?? [])];
      for (const slot of leaving) if (!there.includes(slot)) problems.push(`slot ${slot} leaves the context twice`);
      checkWritten(world, leaving, new Set(), effect);
      break;
    case 'rewind':
      if (state.turn) problems.push('rewind inside a turn');
      break;
    case 'report':
      problems.push('a report of one that is no sub-agent');
      break;
    default:
  }
}

function leavingSlots(what: EvictInput['what']): number[] {
  if (what.kind === 'trim') return what.covered.flatMap(({ slots }) => slotsOf(slots));
  return what.kind === 'session-end' ? slotsOf(what.archive) : [];
}

/** T3, N2. */
function checkCall(world: World, { write, tools, call }: ModelStepInput): void {
  const { problems, state } = world;
  const entries = [...write.entries, ...write.settle.flatMap(({ entry }) => entry ?? [])];
  const here = new Set([...write.messages, ...entries, ...tools].map(({ slot }) => slot));
  const slots = slotsOf(call.context);
  checkWritten(world, slots, here, call.id);
  if (new Set(slots).size !== slots.length) problems.push(`a slot is in the context twice: ${slots.join()}`);
  const answered = new Map(world.answers);
  for (const { callId, slot } of tools) answered.set(callId, slot);
  for (const { slot, message } of entries) if (message.role === 'tool') answered.set(message.callId, slot);
  for (const slot of slots) {
    for (const callId of world.asks.get(slot) ?? []) {
      if (!slots.includes(answered.get(callId) ?? -1)) problems.push(`${callId} has no answer in the context of ${call.id}`);
    }
  }
  const { messages, settle, entries: owed, feed } = state.outbox;
  if (write.messages.length !== messages.length || write.settle.length !== settle.length) problems.push(`${call.id} leaves something owed`);
  if (write.entries.length !== owed.length || write.feed.length !== feed.length) problems.push(`${call.id} leaves something owed`);
}

function checkWritten({ entries, problems }: World, slots: readonly number[], here: ReadonlySet<number>, by: string): void {
  for (const slot of slots) if (!entries.has(slot) && !here.has(slot)) problems.push(`${by} sees slot ${slot}, which was never written`);
}

function isAwaited({ inFlight }: ConversationState, { effect, id }: Effect): boolean {
  return inFlight.some((one) => one.effect === effect && one.id === id);
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
        world.answers.set(entry.message.callId, entry.slot);
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
    world.answers.set(message.callId, slot);
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
  world.answers.set(callId, slot);
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

/** E2: result and entry are one write. A store that was away has taken both or neither, and the activity cannot know which. */
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
  const obstacle = obstacleTo(numbers, settings) ?? (how === 7 ? 'compaction' : undefined);
  if (obstacle && !input.deferred?.includes(obstacle)) return deferred(obstacle, done);
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
      const slots = slotsOf(context);
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
      const slots = slotsOf(context);
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
      const slots = slotsOf(world.state.context);
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
    case 'uncompact':
    case 'heal':
    case 'notify':
    case 'report':
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
    if (result.kind === 'answered') world.deferrals.clear();
  }
  for (const { callId, usage } of result.tools) notePaid(world, callId, usage?.inputTokens);
  if (result.kind === 'answered') notePaid(world, result.answer.call, result.answer.usage.inputTokens);
}

/** T6: no reason twice without an answer between them. Of a duplicate there may be another, which a person has sent later. */
function noteDeferral(
  world: World,
  { turn, write }: ModelStepInput,
  { reason, written: { messages } }: ModelStepResult & { kind: 'deferred' },
): void {
  const ids = messages.flatMap(({ slot, duplicate }) =>
    duplicate === undefined ? [] : [write.messages.find((message) => message.slot === slot)?.messageId],
  );
  const name = `${turn}: ${reason === 'duplicate' ? ids.join() : reason}`;
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

export function eventOf(world: World, choice: Exclude<Choice, { kind: 'end' | 'time' }>): ConversationEvent | undefined {
  const { at, state } = world;
  switch (choice.kind) {
    case 'say': {
      const messageId = `m${choice.id}`;
      const isOpen = state.closing === 'no' && !(state.lineage?.held ?? []).some(({ kind }) => kind === 'close-requested');
      if (isOpen) world.said.add(messageId);
      return { kind: 'message-received', messageId, text: 'x'.repeat(choice.bytes), delivery: choice.delivery, ...brings(choice.id), at };
    }
    case 'withdraw':
      return { kind: 'withdraw-requested', messageId: `m${choice.id}`, at };
    case 'reset':
      return { kind: 'reset-requested', resetId: `r${++world.resets}`, at };
    case 'interrupt':
      return { kind: 'interrupt-requested', reason: null, at };
    case 'close':
      return { kind: 'close-requested', at, ...(at % 2 === 0 && { memory: false as const }) };
    case 'rewind':
      return { kind: 'rewind-requested', requestId: `w${++world.rewinds}`, to: 'turn_0001', ...saidInItsPlace(world), at };
    case 'model':
      return { kind: 'model-set', model: at % 2 === 0 ? null : 'anthropic/claude-other', at };
    case 'due':
      return { kind: 'hand-over-due', reason: 'test', at };
    case 'app':
      return { kind: 'app-event-received', id: `e${at}`, type: 'note', payload: 1, at };
    case 'clear':
      return { kind: 'queue-edited', edit: { op: 'clear' }, at };
    case 'step':
      return { kind: 'step-requested', id: `s${++world.steps}`, at };
    case 'mode':
      return { kind: 'mode-set', mode: choice.mode, at };
    case 'break': {
      const breakpoints = [{}, { tools: ['tool'] }, { onError: true }, { events: ['message'] }][choice.at] ?? {};
      return { kind: 'breakpoints-set', breakpoints, at };
    }
    case 'budget':
      return { kind: 'budget-raised', budget: { maxTokens: choice.maxTokens }, at };
    case 'ask': {
      const requestId = `a${world.requests.length}`;
      world.requests.push(requestId);
      return { kind: `${choice.what}-requested`, requestId, at };
    }
    case 'decide': {
      const waiting = approvalsOf(state);
      const one = waiting[choice.which % Math.max(1, waiting.length)];
      const said = choice.decision === 'always' ? ({ decision: 'approve', always: true } as const) : { decision: choice.decision };
      const answers = one?.kind === 'client-tool' && choice.decision !== 'deny';
      const output = { output: 'done', ...(choice.decision === 'always' && { isError: true as const }) };
      return one && { kind: 'decided', decision: { callId: one.callId, ...(answers ? { decision: 'approve', ...output } : said) }, at };
    }
    case 'child': {
      const [callId] = world.children.splice(choice.which % Math.max(1, world.children.length), 1);
      const usage = { inputTokens: 0, cachedTokens: 0, outputTokens: 0, costUsd: 0 };
      return callId === undefined ? undefined : { kind: 'child-ended', callId, report: { text: 'done', stopReason: 'end', usage }, at };
    }
    case 'holds': {
      const callId = world.children[choice.which % Math.max(1, world.children.length)];
      const pausedBy = choice.isPaused ? 'tool: tool' : null;
      const standing = {
        number: at,
        changes: state.control?.changes ?? 0,
        mode: 'stepping',
        next: 'run tool',
        pausedBy,
        subAgents: [],
      } as const;
      return callId === undefined ? undefined : { kind: 'child-stepped', callId, control: standing, at };
    }
    case 'news': {
      const requestId = world.news.shift();
      return requestId === undefined ? undefined : { kind: 'consolidation-ended', requestId, consolidation: 'model', usage: null, at };
    }
  }
}

export function choose(world: World, choice: Choice): void {
  if (world.isOver) return;
  world.at += 1;
  if (choice.kind === 'time') {
    world.at += choice.ms;
    tell(world, { kind: 'time-passed', at: world.at });
  } else if (choice.kind === 'end') {
    const [one] = world.flying.splice(choice.which % Math.max(1, world.flying.length), 1);
    if (one) tell(world, endOf(world, one, choice.how, choice.tools));
  } else {
    const event = eventOf(world, choice);
    if (event) tell(world, event);
  }
  pump(world);
}

/** C1, T1. */
function checkMonotone(world: World, before: ConversationState, after: ConversationState): void {
  const names = Object.keys(before.counters) as (keyof ConversationState['counters'])[];
  for (const name of names) if (after.counters[name] < before.counters[name]) world.problems.push(`${name} went back`);
  if (after.session < before.session || after.turnsEnded < before.turnsEnded) world.problems.push('session or turns went back');
  const numbers = after.ended.map((turn) => turn.number);
  if (new Set(numbers).size !== numbers.length) world.problems.push(`a turn ended twice: ${numbers.join()}`);
}

/** Everything ends well from here on, and time passes, until nothing is left. */
export function finish(world: World): void {
  const { at } = world;
  tell(world, { kind: 'breakpoints-set', breakpoints: {}, at });
  tell(world, { kind: 'mode-set', mode: 'auto', at });
  tell(world, { kind: 'budget-raised', budget: {}, at });
  for (let i = 0; i < 2_000; i++) {
    pump(world);
    if (world.isOver && world.flying.length === 0) return;
    const [one] = world.flying.splice(0, 1);
    const event = one ? endOf(world, one, 0, 1) : (eventOf(world, { kind: 'child', which: 0 }) ?? eventOf(world, { kind: 'news' }));
    world.at += 61_000;
    if (event) tell(world, event);
    else if (isAtRest(world.state)) return;
    else tell(world, { kind: 'time-passed', at: world.at });
  }
  world.problems.push(`it never comes to rest: ${JSON.stringify(nextStep(world.state)).slice(0, 200)}`);
}

/** Every other rewind brings a message, which is taken back where it fails. */
function saidInItsPlace({ rewinds, state }: World): { readonly before: true; readonly messageId?: string } | undefined {
  if (rewinds % 2 === 0) return undefined;
  const item = state.queue.find((one) => one.kind === 'message');
  return { before: true, ...(item?.kind === 'message' && { messageId: item.messageId }) };
}

function isAtRest({ turn, queue, consolidation, rewinds, outbox, compaction, inFlight, deliveries }: ConversationState): boolean {
  const ends = (deliveries?.due ?? []).filter(({ kind }) => kind === 'turn-ended').length;
  const owed =
    outbox.messages.length + outbox.settle.length + outbox.entries.length + outbox.feed.length + consolidation.pendingRequests.length;
  const asked =
    compaction.asked.length + compaction.undoAsked.length + (compaction.truncationAsked?.length ?? 0) + (rewinds?.asked.length ?? 0);
  return (
    turn === null &&
    queue.length + owed + asked + ends + inFlight.length === 0 &&
    consolidation.ending === null &&
    consolidation.pending === null
  );
}

/** What the conversation should have counted. */
export function toldTokens({ told }: World): number {
  return [...told.values()].reduce((sum, tokens) => sum + tokens, 0);
}
