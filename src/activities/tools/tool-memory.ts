/** The memory channel as a running tool has it: of its own conversation and session. */
import { contextWindowOf } from '../model-step/budget.js';
import type { Context } from '@temporalio/activity';
import type { AgentConfig } from '../../agents/agent-config.js';
import type { RunToolInput } from '../../conversation/activity-io/tool-effects.js';
import { NO_USAGE } from '../../records/usage.js';
import type { Usage } from '../../records/message.js';
import type { AgentMemory } from '../../records/memory/agent-memory.js';
import { itemId } from '../../memory/channel/items-of-entries.js';
import type { ConversationKey, Store } from '../../stores/store.js';
import { openMemory, snapshotMemory, sharedMemory } from '../../memory/channel/open-memory.js';
import { createAsker } from '../ask-model.js';
import type { ActivityDependencies } from '../dependencies.js';
import { keyOf } from '../key.js';

const SUMMARY_TOKENS = 1_024;

export interface ToolMemory {
  readonly memory: AgentMemory;
  /** What summaries have taken; undefined when none was made. */
  readonly spent: () => Usage | undefined;
}

/** `model`: `provider/model` that asked for the tool; it summarizes where the agent names no other. */
export function toolMemory(
  { store, models }: Pick<ActivityDependencies, 'store' | 'models'>,
  input: RunToolInput,
  { config, model, activity }: { readonly config: AgentConfig; readonly model: string; readonly activity: Context },
): ToolMemory {
  const key = keyOf(input.identity);
  const name = config.context.summaryModel ?? model;
  const maxTokens = Math.min(SUMMARY_TOKENS, config.maxTokens);
  const contextWindow = async (): Promise<number | undefined> =>
    (await contextWindowOf(models, config, { model: name, own: model }))?.tokens;
  const { ask, spent } = createAsker({ model: () => models(name), name, activity, maxTokens, contextWindow });
  // 0 is the tool's own result.
  let stored = 0;
  const memory = openMemory({
    store,
    place: { ...key, session: input.session },
    nextId: () => itemId(key, input.callId, (stored += 1)),
    now: () => new Date(),
    ask,
  });
  const whole = withParents(store, key, input, memory);
  return { memory: whole, spent: () => (spent() === NO_USAGE ? undefined : spent()) };
}

/** Of a sub-agent: what its parent has stored is its own too, as far as the parent's settings say. */
function withParents(store: Store, key: ConversationKey, { parent, callId }: RunToolInput, own: AgentMemory): AgentMemory {
  if (!parent?.memory) return own;
  const { session, until } = parent.memory;
  const place = { ...key, conversation: parent.conversation, life: parent.life, session };
  let stored = 0;
  const nextId = (): string => itemId(key, callId, (stored += 1));
  const theirs = openMemory({ store, place, nextId, now: () => new Date() });
  return until === null ? sharedMemory(own, theirs) : snapshotMemory(own, theirs, until);
}
