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
import { listSlots, toRanges, withSlot, type SlotRange } from '../../records/slots.js';
import type { MemoryNews } from '../turn/model-step-effects.js';
import { addNotice } from '../outbox/settlement.js';
import type { ConversationState } from '../state.js';
import type { Turn } from '../state/turn-state.js';

/** Of the epoch that there is now; absent before its first prompt. */
export function pinnedMemory({ compaction: { pinned }, epoch }: ConversationState): PinnedMemory | undefined {
  return pinned?.epoch === epoch ? pinned : undefined;
}

/** Once the settings of the epoch's first prompt are known. Notices of earlier epochs say what the head has now. */
export function pinMemory(state: ConversationState, why: Pick<PinnedMemory, 'byMemory'> = {}): ConversationState {
  const { settings, epoch, compaction } = state;
  if (!settings || pinnedMemory(state)) return state;
  const { version, forgotten } = settings.memory;
  const stale = staleNotices(state);
  const { staleNotices: _, ...rest } = compaction;
  const pinned: PinnedMemory = { epoch, version, told: version, forgotten, notices: [], ...why };
  return { ...state, compaction: { ...rest, pinned, ...(stale.length > 0 && { staleNotices: stale }) } };
}

/** What a prompt shows of the context. */
export function contextInPrompt(state: ConversationState): readonly SlotRange[] {
  const stale = new Set(listSlots(staleNotices(state)));
  return stale.size === 0 ? state.context : toRanges(listSlots(state.context).filter((slot) => !stale.has(slot)));
}

export function acceptNews(state: ConversationState, turn: Turn, news: MemoryNews): ConversationState {
  const { settings } = state;
  const pinned = pinnedMemory(state);
  if (news.kind === 'epoch' || !pinned || !settings) return pinMemory({ ...state, epoch: state.epoch + 1 }, { byMemory: true });
  const noticed = addNotice(state, turn, 'memory', news.text);
  const notices = withSlot(pinned.notices, noticed.counters.slot);
  return {
    ...noticed,
    contextTokens: noticed.contextTokens + inTokens(noticed, estimateTokens(news.text)),
    compaction: { ...noticed.compaction, pinned: { ...pinned, told: settings.memory.version, notices } },
  };
}

/** Of earlier epochs, as far as they are in the context still. */
function staleNotices(state: ConversationState): readonly SlotRange[] {
  const { pinned, staleNotices: known = [] } = state.compaction;
  const ended = pinned && !pinnedMemory(state) ? pinned.notices : [];
  if (known.length === 0 && ended.length === 0) return [];
  const there = new Set(listSlots(state.context));
  return toRanges([...listSlots(known), ...listSlots(ended)].filter((slot) => there.has(slot)));
}
