/** Public ids of conversations, as their memos have them. */
import type { PerduraClient } from '../../client.js';
import type { ClientError } from '../../client/errors.js';

export interface PublicIds {
  /** What a list or a description has just said. */
  note(workflowId: string, publicId: string): void;
  /** It was deleted. */
  drop(workflowId: string): void;
  /** Undefined where there is no such conversation any more. */
  of(workflowId: string): Promise<string | undefined>;
}

const MAX_KNOWN = 10_000;
/** Another gateway may delete a conversation: soon after that this one, too, no longer says what it was called. */
const KNOWN_FOR_MS = 30_000;

export function createPublicIds(client: Pick<PerduraClient, 'describe'>, now: () => number = Date.now): PublicIds {
  const known = new Map<string, { readonly publicId: string; readonly at: number }>();
  const note = (workflowId: string, publicId: string): void => {
    // A sub-agent's begins with its parent's.
    const [own = '', shown = ''] = [workflowId, publicId].map((id) => id.split(':')[0] ?? id);
    known.delete(own);
    known.set(own, { publicId: shown, at: now() });
    if (known.size > MAX_KNOWN) known.delete(known.keys().next().value ?? '');
  };
  return {
    note,
    drop: (workflowId) => void known.delete(workflowId.split(':')[0] ?? ''),
    async of(workflowId) {
      const before = known.get(workflowId);
      if (before !== undefined && now() - before.at < KNOWN_FOR_MS) return before.publicId;
      const found = await client.describe(workflowId).catch((error: unknown) => {
        if ((error as Partial<ClientError>).kind === 'not-found') return undefined;
        throw error;
      });
      known.delete(workflowId);
      if (found === undefined || found.publicId === null) return undefined;
      note(workflowId, found.publicId);
      return found.publicId;
    },
  };
}
