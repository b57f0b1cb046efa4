/**
 * Search attributes: what conversations are found by. Each upsert is an event in history, so they are told at the start, when
 * the kind of state changes (a failed turn, the end), and every tenth turn. An unregistered one would stall the workflow for
 * ever (measured): nothing is told before the worker has said that they are there.
 */
import { planned } from './control.js';
import type { ConversationState } from './state.js';
import { approvalsOf } from './waiting.js';

export type AgentStatus = 'running' | 'waiting' | 'failed' | 'done';

export interface SearchAttributes {
  readonly AgentName: string;
  readonly AgentStatus: AgentStatus;
  readonly AgentModel: string;
  readonly AgentTurns: number;
  readonly AgentCostUsd: number;
}

const EVERY_TURNS = 10;

/** What to tell now; undefined when nothing is due. */
export function attributesDue(state: ConversationState): SearchAttributes | undefined {
  const { known, told } = state.attributes;
  if (known !== 'registered' || !state.settings) return undefined;
  const now: SearchAttributes = {
    AgentName: state.identity.agent,
    AgentStatus: agentStatus(state),
    AgentModel: state.settings.model,
    AgentTurns: state.turnsEnded,
    AgentCostUsd: state.usage.costUsd ?? 0,
  };
  const due = !told || told.status !== now.AgentStatus || now.AgentTurns >= told.turns + EVERY_TURNS;
  return due ? now : undefined;
}

function agentStatus(state: ConversationState): AgentStatus {
  if (state.closing === 'consolidated') return 'done';
  const isHeldBack = state.control?.mode === 'stepping' && state.control.lock === null && planned(state) !== undefined;
  if (isHeldBack || approvalsOf(state).length > 0) return 'waiting';
  const last = state.ended[state.ended.length - 1];
  return !state.turn && last?.stopReason === 'failed' ? 'failed' : 'running';
}
