/** Public ids of conversations, as their memos have them. */
import type { PerduraClient } from '../../client.js';
import type { ClientError } from '../../client/errors.js';

export interface PublicIds {
  note(workflowId: string, publicId: string): void;
  /** Undefined where there is no such conversation any more. */
  of(workflowId: string): Promise<string | undefined>;
}

const MAX_KNOWN = 10_000;

export function createPublicIds(client: Pick<PerduraClient, 'describe'>): PublicIds {
  const known = new Map<string, string>();
  const note = (workflowId: string, publicId: string): void => {
    // A sub-agent's begins with its parent's.
    const [own = '', shown = ''] = [workflowId, publicId].map((id) => id.split(':')[0] ?? id);
    known.delete(own);
    known.set(own, shown);
    if (known.size > MAX_KNOWN) known.delete(known.keys().next().value ?? '');
  };
  return {
    note,
    async of(workflowId) {
      const before = known.get(workflowId);
      if (before !== undefined) return before;
      const found = await client.describe(workflowId).catch((error: unknown) => {
        if ((error as Partial<ClientError>).kind === 'not-found') return undefined;
        throw error;
      });
      if (found === undefined || found.publicId === null) return undefined;
      note(workflowId, found.publicId);
      return found.publicId;
    },
  };
}
