/**
 * Search attributes: what conversations are found by. Each upsert is an event in history, so they are upserted at the start, when
 * the kind of state changes (a failed turn, the end), and every tenth turn. An unregistered one would stall the workflow for
 * ever (measured): nothing is upserted before the worker has reported that they are there.
 */
import { planned } from './stepping/control.js';
import type { EventOf } from './event.js';
import { parentOf } from './lineage/lineage.js';
import type { ConversationState } from './state.js';
import { ownModel } from './state/turn-access.js';
import { approvalsOf } from './turn/approvals.js';
import { readTenant } from '../records/identity.js';
import type { AgentStatus } from './protocol/contract.js';

export interface SearchAttributes {
  readonly AgentName: string;
  readonly AgentStatus: AgentStatus;
  /** Absent while it is not known: before the first turn of a fork. */
  readonly AgentModel?: string;
  /** The conversation that it was forked from. */
  readonly AgentParent?: string;
  /** Whose it is, where it is a tenant's. */
  readonly AgentTenant?: string;
  readonly AgentTurns: number;
  readonly AgentCostUsd: number;
}

const EVERY_TURNS = 10;

/** What to upsert now; undefined when nothing is due. */
export function attributesDue(state: ConversationState): SearchAttributes | undefined {
  const { known, upserted } = state.attributes;
  const parent = parentOf(state);
  const tenant = readTenant(state.identity.scope);
  const status = agentStatus(state);
  // A fork says at once whose it is, and so does a tenant's, a turn that failed before its agent could be read that it did; the rest comes
  // with the settings.
  if (known !== 'registered' || (!state.settings && parent === undefined && tenant === undefined && status !== 'failed')) return undefined;
  // Not the one that answers in its place for a while: each change would be an event.
  const model = ownModel(state.settings) ?? undefined;
  const now: SearchAttributes = {
    AgentName: state.identity.agent,
    AgentStatus: status,
    ...(model === undefined ? {} : { AgentModel: model }),
    ...(parent === undefined ? {} : { AgentParent: parent }),
    ...(tenant === undefined ? {} : { AgentTenant: tenant }),
    AgentTurns: state.turnsEnded,
    AgentCostUsd: state.usage.costUsd ?? 0,
  };
  const isOtherModel = upserted?.model !== undefined && model !== undefined && upserted.model !== model;
  // Without settings `turns` is set back so that they come with the first turn that has them (noteUpserted).
  const isLate = upserted !== null && state.settings !== null && now.AgentTurns >= upserted.turns + EVERY_TURNS;
  const due = !upserted || upserted.status !== now.AgentStatus || isOtherModel || isLate;
  return due ? now : undefined;
}

export function noteUpserted(state: ConversationState, event: EventOf<'attributes-upserted'>): ConversationState {
  const turns = state.settings ? event.turns : event.turns + 1 - EVERY_TURNS;
  const upserted = { status: event.status, turns, ...(event.model !== undefined && { model: event.model }) };
  return { ...state, attributes: { ...state.attributes, upserted } };
}

function agentStatus(state: ConversationState): AgentStatus {
  if (state.closing === 'consolidated') return 'done';
  const isHeldBack = state.control?.mode === 'stepping' && state.control.lock === null && planned(state) !== undefined;
  if (isHeldBack || approvalsOf(state).length > 0) return 'waiting';
  const last = state.ended[state.ended.length - 1];
  return !state.turn && last?.stopReason === 'failed' ? 'failed' : 'running';
}
