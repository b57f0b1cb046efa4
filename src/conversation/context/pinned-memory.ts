/**
 * MEMORY.md as the prompts of an epoch have it (design section 4): the version that stood there when the epoch's first prompt was made. What
 * changes in it later is told once, as a notice at the end, so that no cached prompt is lost; the next epoch begins with the newest version.
 * Where words must leave the prompt an epoch begins at once.
 *
 * @rule context/memory-pinned: Within an epoch the system prompt has one version of MEMORY.md, and a notice is only appended; a new epoch has the
 *   newest version and shows no notice of the old one. (test: test/conversation/context/pinned-memory.test.ts)
 */
import type { PinnedMemory } from '../state/compaction-state.js';
import { inTokens } from '../state/compaction-state.js';
import { estimateTokens } from '../../records/token-estimate.js';
import type { MemoryNews } from '../turn/model-step-effects.js';
import { addNotice } from '../outbox/settlement.js';
import { withPassing } from './truncation.js';
import type { ConversationState } from '../state.js';
import type { Turn } from '../state/turn-state.js';

/** Of the epoch that there is now; absent before its first prompt. */
export function pinnedMemory({ compaction: { pinned }, epoch }: ConversationState): PinnedMemory | undefined {
  return pinned?.epoch === epoch ? pinned : undefined;
}

/** Once the settings of the epoch's first prompt are known. Notices of earlier epochs, which say what the head has now, are shown no more. */
export function pinMemory(state: ConversationState, why: Pick<PinnedMemory, 'byMemory'> = {}): ConversationState {
  const { settings, epoch, compaction } = state;
  if (!settings || pinnedMemory(state)) return state;
  const { version, forgotten } = settings.memory;
  return { ...state, compaction: { ...compaction, pinned: { epoch, version, told: version, forgotten, ...why } } };
}

export function acceptNews(state: ConversationState, turn: Turn, news: MemoryNews): ConversationState {
  const { settings } = state;
  const pinned = pinnedMemory(state);
  if (news.kind === 'epoch' || !pinned || !settings) return pinMemory({ ...state, epoch: state.epoch + 1 }, { byMemory: true });
  const noticed = addNotice(state, turn, 'memory', news.text);
  const passing = withPassing(noticed, { slot: noticed.counters.slot, epoch: state.epoch });
  return {
    ...noticed,
    contextTokens: noticed.contextTokens + inTokens(noticed, estimateTokens(news.text)),
    compaction: { ...noticed.compaction, pinned: { ...pinned, told: settings.memory.version }, passing },
  };
}
