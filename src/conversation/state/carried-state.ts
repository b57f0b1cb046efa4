/**
 * What a run is handed by the one before it, looked at before it is used: anybody's workflow may continue as a conversation with a state
 * of its own making, and a state that throws would fail its workflow task for ever. Total, pure, and without a library.
 */
import { ID_PATTERN, STOP_REASONS } from '../protocol/contract.js';
import { isScope } from '../protocol/tenant.js';
import { bool, fields, is, kinds, list, maybe, number, object, oneOf, orNull, pair, text, time, usage, values } from '../protocol/shape.js';
import { CHILD_PATTERN, excessOf, isCount, refuse, type Checked } from '../protocol/fields.js';
import type { ConversationState } from '../state.js';
import { WEBHOOK_EVENTS } from '../../records/webhooks.js';
import { countSlots, type SlotRange } from '../../records/slots.js';

/** Levels, and values: a state holds at most 1.5 MB of JSON. */
const [MAX_LEVELS, MAX_VALUES] = [100, 1_500_000];
/** Slots in all that one list of ranges may stand for: the longest sessions have far fewer in their context. */
const MAX_SLOTS = 1_000_000;

const slots = is('ranges of slots', isSlots);
const scope = is('a scope', isScope);
const id = is('an id', (value) => typeof value === 'string' && ID_PATTERN.test(value));
const conversation = is('a conversation', (value) => typeof value === 'string' && (ID_PATTERN.test(value) || CHILD_PATTERN.test(value)));
const error = fields({ type: text, message: text });
const failure = fields({ type: text, message: text, transient: bool, retryAfterMs: maybe(number) });
const retry = fields({ until: time, attempts: number, failure });
const budget = fields({ maxCostUsd: maybe(number), maxTokens: maybe(number) });
const amount = fields({ tokens: number, nanoUsd: number });
const sharedBudget = fields({ conversation, life: text, limit: budget, at: time, own: amount, all: amount });
const entry = fields({ slot: number, turn: text, seq: number, ts: number, message: object });
const item = kinds({
  message: fields({
    number,
    messageId: text,
    turn: number,
    slot: number,
    session: number,
    at: time,
    bytes: number,
    delivery: text,
    text: maybe(text),
    images: maybe(list(object)),
    audio: maybe(list(object)),
    video: maybe(list(object)),
    documents: maybe(list(object)),
    tools: maybe(list(object)),
    toolsRef: maybe(text),
    recorded: bool,
    parts: maybe(list(text)),
  }),
  app: fields({ number, id: text, type: text, bytes: number, at: time }),
  reset: fields({ number, at: time }),
  spilled: fields({ number, at: time, slots, turns: pair(number, number) }),
});
const ask = fields({ conversation, callId: text, turnId: text, tool: text, target: text, hash: text, askedAt: time, expiresAt: time });
const action = kinds({
  'ask-person': fields({ expiresMs: number, options: maybe(list(text)) }),
  'ask-client': fields({ expiresMs: number }),
  'wait-until': fields({ until: time }),
  'wait-for': fields({ ms: number }),
  compact: object,
  delegate: fields({
    agent: text,
    task: text,
    title: text,
    maxDepth: number,
    maxChildren: number,
    maxTotal: maybe(number),
    budget: maybe(budget),
  }),
});
const breakpoints = fields({ tools: maybe(list(text)), events: maybe(list(text)), onError: maybe(bool), costUsd: maybe(number) });
const mode = oneOf('auto', 'stepping');
const order = fields({ number, changes: number, mode, breakpoints, spentUsd: number, step: maybe(text) });
const stepOfChild = fields({ stepId: text, conversation, did: text, words: text });
const standing = { mode, next: orNull(text), pausedBy: orNull(text) };
const childControl = fields({
  ...standing,
  number,
  changes: number,
  pausedIn: maybe(conversation),
  step: maybe(stepOfChild),
  subAgents: list(fields({ conversation, ...standing })),
});
const plan = fields({
  rides: bool,
  repeatable: bool,
  timeoutMs: number,
  attempts: maybe(number),
  fingerprint: maybe(text),
  approval: maybe(fields({ policy: oneOf('ask', 'deny'), expiresMs: maybe(number), why: maybe(text), same: maybe(text) })),
  workflowAction: maybe(action),
});
const call = fields({
  id: text,
  name: text,
  slot: number,
  seq: number,
  askedIn: number,
  target: text,
  plan,
  status: oneOf('waiting', 'asking', 'sleeping', 'delegated', 'done'),
  asked: maybe(fields({ kind: oneOf('approval', 'question', 'client-tool'), at: time, until: time })),
  sleepsUntil: maybe(time),
  child: maybe(
    fields({
      id: conversation,
      asks: list(ask),
      looks: maybe(fields({ next: time, count: number })),
      ordered: maybe(fields({ number, key: text })),
      control: maybe(childControl),
    }),
  ),
});
const turn = fields({
  number,
  messageIds: list(text),
  firstSlot: number,
  messageTokens: number,
  isConfigured: bool,
  deferred: list(text),
  seq: number,
  rounds: number,
  overflowRecoveries: number,
  modelCalls: number,
  toolCalls: number,
  usage,
  answerSlot: orNull(number),
  phase: kinds({
    model: fields({ call: fields({ id: text, slot: number, seq: number, failures: number }), riding: list(call) }),
    tools: fields({ calls: list(call) }),
  }),
  stopping: orNull(fields({ reason: orNull(text), at: time, sentAt: orNull(time) })),
  delegations: maybe(number),
  outputRef: maybe(text),
  toolsRef: maybe(text),
  fallback: maybe(fields({ model: orNull(text), insteadOf: text, reason: text, rounds: number, until: maybe(time) })),
  repeats: maybe(list(pair(text, number))),
});
const fallback = fields({ model: text, insteadOf: text, reason: text });
const ended = fields({
  number,
  stopReason: oneOf(...STOP_REASONS),
  usage,
  toolCalls: number,
  answerSlot: orNull(number),
  fallback: maybe(fallback),
  error: maybe(error),
});
const dueEvent = kinds({
  'turn-ended': fields({ number, at: time, turn: text, ended }),
  waiting: fields({
    number,
    at: time,
    turn: text,
    callId: text,
    what: oneOf('approval', 'question'),
    tool: text,
    hash: text,
    askedIn: number,
    until: time,
  }),
});
const awaited = fields({ requestId: text, slots, until: time, outcome: orNull(text) });
const limits = fields({ events: number, bytes: number, updates: number });
const windowTurn = fields({ turn: number, messages: number, slots });
const task = fields({ goal: text, openTasks: list(text) });
const thresholds = fields({ soft: number, hard: number, truncation: number, autoCompact: bool });
const request = fields({ id: text });
const choice = fields({ id: text, input: maybe(slots) });
const pending = kinds({
  message: request,
  dispatch: request,
  reset: fields({ id: text, input: number }),
  compact: choice,
  truncate: choice,
  undo: request,
  rewind: fields({ id: text, input: fields({ to: text, before: maybe(bool), messageId: maybe(text) }) }),
});
const outcome = fields({ id: text, outcome: object });
const answered = kinds({
  message: fields({ id: text, outcome: number }),
  event: fields({ id: text, outcome: orNull(object) }),
  dispatch: outcome,
  reset: fields({ id: text, outcome: is('a result, or withdrawn', (value) => value === 'withdrawn' || typeof value === 'object') }),
  compact: outcome,
  truncate: outcome,
  undo: outcome,
  rewind: outcome,
  step: outcome,
});
const state = fields({
  v: oneOf(1),
  identity: fields({ life: text, agent: id, scope }),
  // Nothing is in flight when a run hands over.
  inFlight: is('an empty list', (value) => Array.isArray(value) && value.length === 0),
  retries: values(retry),
  abandoned: list(text),
  parent: maybe(
    fields({ conversation, life: text, callId: text, depth: number, share: maybe(number), budgets: maybe(list(sharedBudget)) }),
  ),
  capability: maybe(text),
  subAgents: maybe(list(pair(text, text))),
  parentNotified: maybe(fields({ asks: text, reported: bool, control: maybe(fields({ sent: text, number })) })),
  budget: maybe(budget),
  appContext: maybe(fields({ ref: text, changes: maybe(list(object)) })),
  startContext: maybe(object),
  allowedCalls: maybe(list(fields({ same: text, tool: text, target: text, callId: text }))),
  lateChildren: maybe(list(conversation)),
  childDecisions: maybe(list(fields({ child: conversation, decision: object }))),
  appEvents: maybe(
    fields({
      chunks: list(object),
      unreduced: fields({ count: number, types: list(text) }),
      parked: list(object),
      parkedCount: number,
    }),
  ),
  control: maybe(
    fields({
      mode,
      lock: orNull(
        fields({
          id: text,
          did: text,
          target: text,
          words: text,
          over: maybe(bool),
          before: fields({ slots: list(number), count: number, contextTokens: number }),
        }),
      ),
      breakpoints,
      pausedBy: orNull(text),
      pausedIn: maybe(conversation),
      passed: orNull(text),
      changes: maybe(number),
      order: maybe(order),
      ordered: maybe(stepOfChild),
    }),
  ),
  title: orNull(text),
  autoTitle: maybe(oneOf('wanted', 'due')),
  betterTitle: maybe(fields({ slot: number, isAsked: maybe(bool) })),
  words: maybe(fields({ asked: maybe(text), answered: maybe(text) })),
  modelOverride: orNull(text),
  isModelOpen: maybe(bool),
  isModeOpen: maybe(bool),
  now: time,
  settings: orNull(
    fields({
      hash: text,
      agentHash: text,
      model: text,
      maxTokens: number,
      maxToolRounds: number,
      contextBudget: number,
      compactionRatio: number,
      fixedTokens: number,
      handOver: limits,
      thresholds,
      budget: maybe(budget),
      fallback: maybe(fields({ first: text, next: list(text), tries: number })),
      webhooks: maybe(list(oneOf(...WEBHOOK_EVENTS))),
      memory: fields({ window: number, keep: number, timeoutMs: number, trim: oneOf('when-needed', 'at-window'), version: text }),
    }),
  ),
  session: number,
  epoch: number,
  counters: fields({ turn: number, slot: number, queued: number, effect: number, feed: number, move: number }),
  queue: list(item),
  turn: orNull(turn),
  context: slots,
  contextTokens: number,
  compaction: fields({
    base: orNull(text),
    baseTokens: number,
    task: orNull(task),
    reported: orNull(number),
    shownOnce: maybe(number),
    compactions: number,
    truncationRest: maybe(fields({ turn: number, tokens: number })),
    leftOut: maybe(slots),
    attempts: number,
    forced: orNull(error),
    rest: maybe(orNull(fields({ tokens: number, turn: maybe(number) }))),
    learned: maybe(fields({ model: text, assumed: number, tokens: number })),
    cited: maybe(slots),
    before: orNull(
      fields({
        epoch: number,
        base: orNull(text),
        context: slots,
        cited: maybe(slots),
        leftOut: maybe(slots),
        contextTokens: number,
        archived: slots,
      }),
    ),
    prefix: fields({ hash: orNull(text), epoch: number, changes: number }),
  }),
  consolidation: fields({
    since: time,
    turns: list(windowTurn),
    pending: orNull(fields({ requestId: text, slots, until: time, turns: number })),
    covered: list(fields({ requestId: text, turns: list(windowTurn) })),
    trimRest: maybe(text),
    trims: number,
    trimmed: maybe(fields({ times: number, messages: number, unsummarized: number })),
    ending: orNull(fields({ until: time, awaited: list(awaited) })),
    pendingRequests: list(fields({ requestId: text, slots })),
    unbilled: list(text),
  }),
  usage,
  ofSubAgents: maybe(usage),
  turnsEnded: number,
  latestTurn: number,
  ended: list(ended),
  requests: fields({ pending: list(pending), answered: list(answered) }),
  outbox: fields({
    messages: list(item),
    settle: list(fields({ effect: text, entry: orNull(entry) })),
    feed: list(fields({ number, event: fields({ kind: text }) })),
    entries: list(entry),
    limit: maybe(fields({ limit: budget, at: time })),
  }),
  deliveries: maybe(fields({ count: number, due: list(dueEvent) })),
  rejected: fields({ count: number, last: list(fields({ name: text, reason: text, at: time })) }),
  closing: oneOf('no', 'running-out', 'consolidated'),
  closesWithoutMemory: maybe(bool),
  handOver: orNull(text),
  heal: orNull(fields({ slots: list(number), tried: bool })),
  lineage: maybe(
    fields({
      origin: fields({ kind: oneOf('fork', 'resume'), conversation, life: text, turn: maybe(text) }),
      isOpen: bool,
      held: list(fields({ kind: text, at: time })),
      refused: orNull(error),
      opened: orNull(object),
    }),
  ),
  branches: maybe(number),
  lastTool: orNull(fields({ name: text, target: text, outcome: maybe(text) })),
  attributes: fields({ known: text, upserted: orNull(fields({ status: text, turns: number, model: maybe(text) })) }),
});

/** `life` is the one that Temporal says it is: a state of another life would read and write what is not this one's. */
export function readCarriedState(value: unknown, life: string): Checked<ConversationState> {
  const excess = excessOf(value, MAX_LEVELS, MAX_VALUES);
  if (excess !== undefined) return refuse(`carried ${excess}`);
  const problem = state(value);
  if (problem !== undefined) return refuse(`carried${problem}`);
  const read = value as ConversationState;
  return read.identity.life === life ? { ok: true, value: read } : refuse('carried.identity.life is another conversation’s');
}

function isSlots(value: unknown): boolean {
  if (!Array.isArray(value)) return false;
  const all = (value as unknown[]).every(
    (range) => Array.isArray(range) && range.length === 2 && isSlot(range[0]) && isSlot(range[1]) && range[0] <= range[1],
  );
  return all && countSlots(value as SlotRange[]) <= MAX_SLOTS;
}

function isSlot(value: unknown): value is number {
  return isCount(value, Number.MAX_SAFE_INTEGER);
}
