/** The world of one life: what was said to it, what flies, and what a store and a ledger have of it. */
import type { Effect } from '../../../src/conversation/effect.js';
import type { ToolPlan } from '../../../src/conversation/turn/model-step-effects.js';
import { withOrigin } from '../../../src/conversation/lineage/lineage.js';
import { LATEST_RULES } from '../../../src/conversation/opening.js';
import { openConversation, type ConversationState } from '../../../src/conversation/state.js';
import type { JsonValue } from '../../../src/records/message.js';
import { open } from '../drive.js';

export type Kind = 'own' | 'fork' | 'resume' | 'sub-agent';

/** Lists are the world's own: state is never asked what it should say itself. */
export interface World {
  state: ConversationState;
  at: number;
  /** What was started and has not ended: what the state has given up is among it, as a ghost. */
  flying: Effect[];
  /** Messages that were accepted, in their order, and those whose place a person has changed. */
  readonly said: Map<string, 'queue' | 'steer' | 'interrupt'>;
  readonly moved: Set<string>;
  readonly withdrawn: Set<string>;
  /** Those that may have been withdrawn: an edit, or a rewind that fails, takes what is there by then. */
  readonly droppable: Set<string>;
  /** Messages that were stopped before their turn began. */
  readonly stopped: Set<string>;
  /** When each steering message came. */
  readonly steering: Map<string, number>;
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
  readonly plans: Map<string, ToolPlan>;
  /** What a person has said to each call; calls that are allowed for good. */
  readonly decided: Map<string, 'approve' | 'deny'>;
  readonly always: Set<string>;
  /** What was started, by effect and id, how often. */
  readonly started: Map<string, number>;
  /** Turns that were told to stop. */
  readonly stoppedTurns: Set<number>;
  /** When the latest model call of a turn began, and which that was. */
  lastCall: { readonly id: string; readonly at: number } | undefined;
  /** What effects have cost, as the conversation was told. */
  readonly told: Map<string, number>;
  /** The turns that each message was in. */
  readonly taken: Map<string, Set<number>>;
  readonly deferrals: Map<string, number>;
  /** Slots that the memory workflow was asked to consolidate, and requests that it has not answered yet. */
  readonly asked: Map<number, string>;
  readonly news: string[];
  /** Calls whose sub-agents work, and those that have reported. */
  readonly children: string[];
  readonly reported: string[];
  /** Turns that ended where it is known which events webhooks want, and those whose end went out; the numbers of all that went out. */
  readonly ends: number[];
  readonly endsDelivered: number[];
  readonly delivered: number[];
  readonly problems: string[];
  readonly requests: string[];
  /** What was started and what the conversation did by itself, in its order: what a hand-over must not change. */
  readonly story: string[];
  /** By model call: how many tokens were allowed as it began. */
  readonly limits: Map<string, number>;
  model: string | null;
  maxTokens: number | undefined;
  reports: number;
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

export function createWorld(kind: Kind = 'own'): World {
  return {
    state: stateOf(kind),
    ...{
      at: 1000,
      flying: [],
      said: new Map(),
      moved: new Set(),
      withdrawn: new Set(),
      droppable: new Set(),
      stopped: new Set(),
      steering: new Map(),
    },
    ...{ entries: new Map(), outcomes: new Map(), fenced: new Set(), committed: new Map() },
    messages: new Map(LONG_AGO.ids.map((id) => [id, { slot: 0, turn: LONG_AGO.turn }])),
    ...{ asks: new Map(), answers: new Map(), plans: new Map(), decided: new Map(), always: new Set(), started: new Map() },
    ...{ stoppedTurns: new Set(), lastCall: undefined, told: new Map(), taken: new Map(), deferrals: new Map(), asked: new Map() },
    ...{
      ends: [],
      endsDelivered: [],
      delivered: [],
      news: [],
      children: [],
      reported: [],
      problems: [],
      requests: [],
      story: [],
      limits: new Map(),
    },
    ...{ model: null, maxTokens: undefined, reports: 0, resets: 0, rewinds: 0, steps: 0, isOver: false },
  };
}

function stateOf(kind: Kind): ConversationState {
  switch (kind) {
    case 'own':
      return open();
    case 'sub-agent':
      return openConversation({
        ...{ identity: { life: 'l1', agent: 'default', scope: 'default' }, conversation: 'chat:turn_0001:1', title: 'task', model: null },
        ...{ rules: LATEST_RULES, at: 1000 },
        delegation: {
          task: 'task',
          parent: { conversation: 'chat', life: 'l0', callId: 'turn_0001/c1', depth: 1 },
          capability: 'c'.repeat(32),
        },
      });
    case 'fork':
    case 'resume':
      return withOrigin(open(), { kind, conversation: 'c1', life: 'l0', turn: 'turn_0007' });
  }
}
