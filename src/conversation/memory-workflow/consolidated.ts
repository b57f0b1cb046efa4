/** The outcome of a consolidation: for the conversation that requested it, and for the memory. */
import type { Consolidated, RememberInput } from '../context/memory-effects.js';
import type { Consolidation } from '../protocol/contract.js';
import type { Usage } from '../../records/message.js';

/** For the conversation. */
export function outcomeOf(result: Consolidated): { consolidation: Consolidation; usage: Usage | null } {
  switch (result.kind) {
    case 'done':
      return { consolidation: 'model', usage: result.usage };
    case 'unusable':
      return { consolidation: 'raw-fallback', usage: result.usage };
    case 'nothing-to-do':
      return { consolidation: 'nothing-to-do', usage: null };
  }
}

/** What is to be written; undefined where that is nothing. */
export function toRemember(scope: string, id: string, result: Consolidated): RememberInput | undefined {
  if (result.kind === 'nothing-to-do') return undefined;
  const common = { scope, id, cause: 'consolidation' } as const;
  if (result.kind === 'unusable') {
    return { ...common, history: { kind: 'raw-fallback', text: result.fallback }, update: null, proposed: [] };
  }
  const { history, update, proposed } = result;
  return { ...common, history: history === null ? null : { kind: 'summary', text: history }, update, proposed };
}
