/**
 * The state that a run begins with: of a start that was checked, or of what the run before has handed over. A sub-agent begins with its
 * task, which is its one turn.
 */
import { apply } from './apply.js';
import { withOrigin } from './lineage/lineage.js';
import { nextStep } from './next-step.js';
import type { ReadStart } from './protocol/input.js';
import { refuse, type Checked } from './protocol/schema.js';
import { openConversation, type ConversationState } from './state.js';
import { readCarriedState } from './state/carried-state.js';
import { detailsOf } from './views/view.js';

/** What Temporal and the run know of it. */
interface Run {
  readonly conversation: string;
  readonly life: string;
  readonly rules: number;
  readonly at: number;
}

export function openStarted(
  { agent, scope, delegation, origin, tenant: _tenant, publicId: _publicId, ...rest }: ReadStart,
  { conversation, life, rules, at }: Run,
): ConversationState {
  const opened = openConversation({ ...rest, identity: { life, agent, scope }, conversation, delegation, rules, at });
  if (!delegation) return origin === null ? opened : withOrigin(opened, origin);
  const withTask = apply(opened, { kind: 'message-received', messageId: 'task', text: delegation.task, delivery: 'queue', at });
  return apply(withTask, { kind: 'close-requested', at });
}

/** What passes for a state and throws all the same is refused too: it would fail each workflow task of its run, for ever. */
export function openCarried(carried: unknown, { conversation, life, rules, at }: Run): Checked<ConversationState> {
  const read = readCarriedState(carried, life);
  if (!read.ok) return refuse(`what no conversation has (${read.reason})`);
  try {
    const state = apply({ ...read.value, conversation, rules }, { kind: 'run-continued', at });
    nextStep(state);
    detailsOf(state);
    return { ok: true, value: state };
  } catch (error) {
    return refuse(`what cannot be gone on with (${String(error)})`);
  }
}
