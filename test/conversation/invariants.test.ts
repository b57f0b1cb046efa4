/** Random lives of a conversation against the rules that apply.ts, arrivals.ts, recording.ts and turn.ts number. */
import fc from 'fast-check';
import { apply } from '../../src/conversation/apply.js';
import { turnOfMessage } from '../../src/conversation/arrivals.js';
import type { Recorded, RecordInput } from '../../src/conversation/effects.js';
import type { Rewound } from '../../src/conversation/lineage-effects.js';
import type { ConversationEvent } from '../../src/conversation/event.js';
import { nextStep, type Step } from '../../src/conversation/next-step.js';
import { slotsOf } from '../../src/conversation/slots.js';
import type { ConversationState } from '../../src/conversation/state.js';
import { endedTurn } from '../../src/conversation/view.js';
import { answer, asking, finished, open, putAway, recorded, SETTINGS } from './drive.js';

/** One choice of the world: something arrives, a step in flight ends somehow, time passes. */
type Choice =
  | { readonly kind: 'say'; readonly id: number; readonly delivery: 'queue' | 'steer' | 'interrupt' }
  | { readonly kind: 'reset' }
  | { readonly kind: 'interrupt' }
  | { readonly kind: 'close' }
  | { readonly kind: 'rewind' }
  | { readonly kind: 'due' }
  | { readonly kind: 'news' }
  | { readonly kind: 'time'; readonly ms: number }
  | { readonly kind: 'end'; readonly which: number; readonly how: number; readonly tools: number };

const choice: fc.Arbitrary<Choice> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('say' as const),
      id: fc.nat(30),
      delivery: fc.constantFrom('queue' as const, 'queue' as const, 'steer' as const, 'interrupt' as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('reset' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('interrupt' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('due' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('rewind' as const) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('news' as const) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('time' as const), ms: fc.integer({ min: 1, max: 5000 }) }) },
  {
    weight: 14,
    arbitrary: fc.record({ kind: fc.constant('end' as const), which: fc.nat(20), how: fc.nat(9), tools: fc.integer({ min: 1, max: 20 }) }),
  },
);

interface World {
  state: ConversationState;
  at: number;
  /** Steps that were started and have not ended, as the workflow would hold them. */
  flying: { readonly id: string; readonly end: (how: number, tools: number) => ConversationEvent }[];
  readonly said: Set<string>;
  readonly slotsWritten: Map<number, string>;
  /** Slots that the memory workflow was asked to consolidate, and requests that it has not answered yet. */
  readonly asked: Map<number, string>;
  readonly news: string[];
  readonly problems: string[];
  resets: number;
  rewinds: number;
}

/** A window that a few turns fill. */
const small = ({ configure }: RecordInput): Partial<Recorded> =>
  configure ? { configured: { kind: 'settings', settings: { ...SETTINGS, memory: { ...SETTINGS.memory!, window: 6, keep: 2 } } } } : {};

const failure = (how: number) => ({ type: how === 8 ? 'overloaded' : 'auth', message: 'no', transient: how === 8 });

function start(world: World, step: Step): boolean {
  const { at } = world;
  const tell = (event: ConversationEvent): void => {
    world.state = apply(world.state, event);
  };
  const write = (slot: number, what: string): void => {
    const before = world.slotsWritten.get(slot);
    if (before !== undefined && before !== what) world.problems.push(`slot ${slot} is both ${before} and ${what}`);
    world.slotsWritten.set(slot, what);
  };
  checkLocal(world, step);
  switch (step.kind) {
    case 'record':
      tell({ kind: 'record-started', at });
      for (const message of step.input.messages) write(message.slot, `message ${message.messageId}`);
      for (const { entry, effect } of step.input.settle) if (entry) write(entry.slot, effect);
      world.flying.push({
        id: 'record',
        end: (how) =>
          how === 9
            ? { kind: 'record-failed', failure: failure(8), at: world.at }
            : { kind: 'recorded', recorded: recorded(step.input, small(step.input)), at: world.at },
      });
      return true;
    case 'persist':
      tell({ kind: 'persist-started', at });
      world.flying.push({
        id: 'persist',
        end: (how) =>
          how === 9
            ? { kind: 'persist-failed', failure: failure(8), at: world.at }
            : { kind: 'persisted', slots: step.entries.map((entry) => entry.slot), at: world.at },
      });
      return true;
    case 'call-model': {
      const { input } = step;
      checkContext(world, slotsOf(input.context));
      write(input.slot, input.call);
      tell({ kind: 'model-call-started', call: input.call, at });
      world.flying.push({
        id: input.call,
        end: (how, tools) => {
          if (how >= 8) return { kind: 'model-call-failed', call: input.call, failure: failure(how), at: world.at };
          const made =
            how < 4
              ? answer(input)
              : how < 6
                ? asking(input, tools, { local: tools % 2 === 0, repeatable: true, timeoutMs: 1000 })
                : how === 6
                  ? answer(input, { persisted: false })
                  : answer(input, { blocks: [], stop: 'end' });
          return { kind: 'model-answered', answer: made, at: world.at };
        },
      });
      return true;
    }
    case 'run-tools':
      tell({ kind: 'tools-started', callIds: step.runs.map(({ input }) => input.callId), at });
      for (const { input: run } of step.runs) {
        write(run.slot, run.callId);
        world.flying.push({
          id: run.callId,
          end: (how) =>
            how === 9
              ? { kind: 'tool-run-failed', callId: run.callId, failure: failure(9), at: world.at }
              : { kind: 'tool-finished', result: finished(run, { persisted: how !== 8 }), at: world.at },
        });
      }
      return true;
    case 'stop':
      tell({ kind: 'stop-sent', at });
      return true;
    case 'consolidate':
      tell({ kind: 'consolidated', consolidation: 'nothing-to-do', at });
      return true;
    case 'ask-memory': {
      const { requestId, slots } = step.input.request;
      for (const slot of slotsOf(slots)) {
        const before = world.asked.get(slot);
        if (before !== undefined && before !== requestId) world.problems.push(`slot ${slot} is asked for in ${before} and ${requestId}`);
        world.asked.set(slot, requestId);
      }
      tell({ kind: 'memory-ask-started', requestId, at });
      world.flying.push({
        id: 'ask',
        end: (how) => {
          if (how >= 8) return { kind: 'memory-ask-failed', requestId, failure: failure(8), at: world.at };
          world.news.push(requestId);
          return { kind: 'memory-asked', requestId, at: world.at };
        },
      });
      return true;
    }
    case 'put-away': {
      const inContext = new Set(slotsOf(world.state.context));
      if (world.state.turn) world.problems.push('messages leave the context inside a turn');
      for (const slot of slotsOf(step.input.archive))
        if (!inContext.has(slot)) world.problems.push(`slot ${slot} leaves the context twice`);
      tell({ kind: 'put-away-started', at });
      world.flying.push({
        id: 'put-away',
        end: (how) =>
          how === 9
            ? { kind: 'put-away-failed', failure: failure(8), at: world.at }
            : { kind: 'put-away', result: putAway(step.input), at: world.at },
      });
      return true;
    }
    case 'rewind': {
      const { requestId, branch, session } = step.input;
      const others = world.flying.filter(({ id }) => isAwaited(world.state, id) && id !== 'ask');
      if (world.state.turn || others.length > 0) world.problems.push(`rewind beside ${others.map(({ id }) => id).join(', ')}`);
      const half = slotsOf(world.state.context).slice(0, Math.floor(slotsOf(world.state.context).length / 2));
      tell({ kind: 'rewind-started', requestId, at });
      world.flying.push({
        id: 'rewind',
        end: (how) =>
          how === 9
            ? { kind: 'rewind-failed', requestId, failure: failure(9), at: world.at }
            : { kind: 'rewound', requestId, result: rewound(half, { id: requestId, branch, session }), at: world.at },
      });
      return true;
    }
    case 'hand-over':
      if (world.flying.some((one) => isAwaited(world.state, one.id))) world.problems.push('hand-over with something in flight');
      world.state = JSON.parse(JSON.stringify(world.state)) as ConversationState;
      tell({ kind: 'run-continued', at });
      return true;
    default:
      return false;
  }
}

/** The first half of the context stays: whole turns or not is the activity's to see to. */
function rewound(kept: readonly number[], { id, branch, session }: { id: string; branch: number; session: number }): Rewound {
  const cut = { v: 1, id, branch, to: 1, begun: 1, since: 1, slot: 1, at: 1, session, slots: [] } as const;
  const context = kept.map((slot) => [slot, slot] as const);
  return { life: 'l1', cut, turns: 1, session, context, task: null, episodes: [], compactions: 0, tokens: 1 };
}

/** N5: nothing local beside something local, but for the tools of one round. */
function checkLocal({ flying, state, problems }: World, step: Step): void {
  const isLocal =
    step.kind === 'record' || step.kind === 'persist' || step.kind === 'put-away' || (step.kind === 'run-tools' && step.local);
  if (!isLocal) return;
  const inFlight = flying.filter(({ id }) => isAwaited(state, id) && isLocalStep(state, id));
  const others = inFlight.filter(({ id }) => !(step.kind === 'run-tools' && id.includes('/c')));
  if (others.length > 0) problems.push(`${step.kind} beside ${others.map(({ id }) => id).join(', ')}`);
}

function isLocalStep({ turn }: ConversationState, id: string): boolean {
  if (['record', 'persist', 'put-away'].includes(id)) return true;
  return turn?.doing.kind === 'tools' && turn.doing.calls.some((call) => call.id === id && call.plan.local);
}

/** T3, N2: what a model sees was all written, and nothing is owed. */
function checkContext(world: World, slots: number[]): void {
  for (const slot of slots) if (!world.slotsWritten.has(slot)) world.problems.push(`slot ${slot} is in the context and was never written`);
  if (new Set(slots).size !== slots.length) world.problems.push('a slot is in the context twice');
  if (world.state.unpersisted.length > 0 || world.state.outbox.settle.length > 0) world.problems.push('a model call with something owed');
}

function pump(world: World): void {
  for (let i = 0; i < 1000; i++) if (!start(world, nextStep(world.state))) return;
  world.problems.push('nextStep never comes to rest');
}

function choose(world: World, made: Choice): void {
  world.at += 1;
  const tell = (event: ConversationEvent): void => {
    const before = world.state;
    world.state = apply(world.state, event);
    checkMonotone(world, before, world.state);
  };
  const { at } = world;
  switch (made.kind) {
    case 'say':
      world.said.add(`m${made.id}`);
      tell({ kind: 'message-received', messageId: `m${made.id}`, text: 'x', delivery: made.delivery, at });
      break;
    case 'reset':
      tell({ kind: 'reset-requested', resetId: `r${++world.resets}`, at });
      break;
    case 'interrupt':
      tell({ kind: 'interrupt-requested', reason: null, at });
      break;
    case 'close':
      tell({ kind: 'close-requested', at });
      break;
    case 'rewind':
      tell({ kind: 'rewind-requested', requestId: `w${++world.rewinds}`, to: 'turn_0001', at });
      break;
    case 'due':
      tell({ kind: 'hand-over-due', reason: 'test', at });
      break;
    case 'news': {
      const requestId = world.news.shift();
      if (requestId !== undefined) tell({ kind: 'consolidation-ended', requestId, consolidation: 'model', usage: null, at });
      break;
    }
    case 'time':
      world.at += made.ms;
      tell({ kind: 'time-passed', at: world.at });
      break;
    case 'end': {
      const [one] = world.flying.splice(made.which % Math.max(1, world.flying.length), 1);
      if (one) tell(one.end(made.how, made.tools));
      break;
    }
  }
  // What the state no longer waits for may still end some day: late results are part of the world.
  pump(world);
  world.flying = world.flying.map((one) => (isAwaited(world.state, one.id) ? one : { ...one, id: `ghost ${one.id}` }));
}

function isAwaited(state: ConversationState, id: string): boolean {
  if (id === 'record') return state.recording;
  if (id === 'persist') return state.persisting;
  if (id === 'ask') return state.window.owed.some(({ asking }) => asking);
  if (id === 'rewind') return typeof state.rewinds?.doing === 'string';
  if (id === 'put-away') return state.window.puttingAway;
  const doing = state.turn?.doing;
  if (doing?.kind === 'model') return doing.call.id === id && doing.call.inFlight;
  return doing?.calls.some((call) => call.id === id && call.status === 'running') ?? false;
}

/** C1, T1. */
function checkMonotone(world: World, before: ConversationState, after: ConversationState): void {
  const counters = ['turn', 'slot', 'queued'] as const;
  for (const name of counters) if (after.counters[name] < before.counters[name]) world.problems.push(`${name} went back`);
  if (after.session < before.session || after.turnsEnded < before.turnsEnded) world.problems.push('session or turns went back');
  const numbers = after.ended.map((turn) => turn.number);
  if (new Set(numbers).size !== numbers.length) world.problems.push('a turn ended twice');
}

function finish(world: World): void {
  for (let i = 0; i < 2000; i++) {
    pump(world);
    const [one] = world.flying.splice(0, 1);
    world.at += 61_000;
    if (one) world.state = apply(world.state, one.end(0, 1));
    else if (
      world.state.turn ||
      world.state.queue.length > 0 ||
      world.state.storeRetry ||
      world.state.window.owed.length > 0 ||
      world.state.rewinds?.asked.length
    ) {
      world.state = apply(world.state, { kind: 'time-passed', at: world.at });
    } else break;
  }
}

test('whatever happens in whatever order, every message is answered exactly once and nothing owed is forgotten', () => {
  fc.assert(
    fc.property(fc.array(choice, { maxLength: 120 }), (choices) => {
      const world: World = {
        state: open(),
        at: 1000,
        flying: [],
        said: new Set(),
        slotsWritten: new Map(),
        asked: new Map(),
        news: [],
        problems: [],
        resets: 0,
        rewinds: 0,
      };
      for (const made of choices) choose(world, made);
      finish(world);
      expect(world.problems).toEqual([]);
      expect(world.state).toMatchObject({ turn: null, queue: [], unpersisted: [], outbox: { settle: [] } });
      expect(world.state.rewinds?.asked ?? []).toEqual([]);
      expect(world.state.window).toMatchObject({ ending: null, owed: [], puttingAway: false });
      expect(world.state.turnsEnded).toBeGreaterThanOrEqual(world.state.ended.length);
      for (const id of world.said) {
        const turn = turnOfMessage(world.state, id);
        expect(turn).toBeDefined();
        expect(endedTurn(world.state, turn!)).toBeDefined();
      }
      for (let r = 1; r <= world.resets; r++) {
        if (world.resets <= 20) expect(world.state.resets.map((reset) => reset.resetId)).toContain(`r${r}`);
      }
      expect(JSON.parse(JSON.stringify(world.state))).toEqual(world.state); // C2
    }),
    { numRuns: 400 },
  );
});

test('apply never throws, whatever event meets whatever state', () => {
  fc.assert(
    fc.property(fc.array(choice, { maxLength: 40 }), fc.array(fc.anything(), { maxLength: 5 }), (choices, junk) => {
      const world: World = {
        state: open(),
        at: 1000,
        flying: [],
        said: new Set(),
        slotsWritten: new Map(),
        asked: new Map(),
        news: [],
        problems: [],
        resets: 0,
        rewinds: 0,
      };
      for (const made of choices) choose(world, made);
      for (const kind of junk) {
        const event = { kind: typeof kind === 'string' ? kind : 'what-is-this', at: 5 } as unknown as ConversationEvent;
        expect(apply(world.state, event).v).toBe(1);
      }
    }),
    { numRuns: 100 },
  );
});
