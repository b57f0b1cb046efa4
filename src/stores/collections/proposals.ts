/** What people decide on lines that wait and on what stays forgotten, beside MEMORY.md. */
import { z } from 'zod';
import type { Proposal, Tombstone } from '../../records/memory/documents.js';
import { lineSchema } from '../codecs.js';
import { addOnce, recordCodec, type OpenCollection } from './collection.js';
import type { Documents } from '../memory-ports.js';
import type { ScopeKey } from '../store.js';

interface StoredProposal extends Proposal {
  readonly batch: string;
}

const storedSchema = lineSchema.extend({
  id: z.string().regex(/^prop_\d{4,}$/),
  ts: z.number(),
  batch: z.string(),
  state: z.enum(['open', 'accepted', 'rejected']),
}) satisfies z.ZodType<StoredProposal>;
const tombstoneSchema = z.object({ id: z.string(), ts: z.number(), words: z.array(z.string()) }) satisfies z.ZodType<Tombstone>;
const identify = ({ id }: { readonly id: string }): string => id;
export const PROPOSALS = recordCodec<StoredProposal>(storedSchema, identify);
export const FORGOTTEN = recordCodec<Tombstone>(tombstoneSchema, identify);

export type Proposals = Pick<Documents, 'propose' | 'proposals' | 'settleProposal' | 'forget' | 'forgotten'>;

export function createProposals(open: OpenCollection): Proposals {
  const openProposals = (key: ScopeKey) => open({ name: 'proposals', key }, PROPOSALS);
  const openForgotten = (key: ScopeKey) => open({ name: 'forgotten', key }, FORGOTTEN);
  return {
    async propose(key, batch, lines) {
      if (lines.length === 0) return [];
      let added: readonly StoredProposal[] = [];
      await openProposals(key).change(`add ${lines.length} proposals to ${key.scope}`, (before, taken) => {
        added = before.filter((proposal) => proposal.batch === batch);
        if (added.length > 0) return undefined;
        const numbers = [...before.map(identify), ...taken].map((id) => proposalNumber({ id })).filter(Number.isFinite);
        const last = Math.max(0, ...numbers);
        added = lines.map(({ ts, line, source }, i) => ({ id: proposalId(last + i + 1), ts, line, source, state: 'open', batch }));
        return [...before, ...added];
      });
      return added.map(withoutBatch).sort(byNumber);
    },

    async proposals(key) {
      const { items, skipped } = await openProposals(key).read(`read the proposals of ${key.scope}`);
      return { proposals: items.map(withoutBatch).sort(byNumber), skipped };
    },

    async settleProposal(key, id, state) {
      let settled: StoredProposal | undefined;
      await openProposals(key).change(`settle proposal ${id} of ${key.scope}`, (before) => {
        const found = before.find((proposal) => proposal.id === id);
        settled = found?.state === 'open' ? { ...found, state } : found;
        if (!found || !settled || settled === found) return undefined;
        return before.map((proposal) => (proposal === found && settled ? settled : proposal));
      });
      return settled && withoutBatch(settled);
    },

    forget: (key, tombstone) => addOnce(openForgotten(key), identify, `keep ${tombstone.id} of ${key.scope} forgotten`, tombstone),

    async forgotten(key) {
      const { items } = await openForgotten(key).read(`read what ${key.scope} has forgotten`, 'refuse');
      return [...items].sort(byTime);
    },
  };
}

export async function redactProposals(open: OpenCollection, key: ScopeKey, redact: (line: string) => string): Promise<void> {
  const proposals = open({ name: 'proposals', key }, PROPOSALS);
  const attempt = `redact the proposals of ${key.scope}`;
  if ((await proposals.read(attempt)).items.length === 0) return;
  await proposals.change(attempt, (before) => {
    const after = before.map((proposal) => {
      const line = redact(proposal.line);
      return line === proposal.line ? proposal : { ...proposal, line };
    });
    return after.every((proposal, i) => proposal === before[i]) ? undefined : after;
  });
}

function byNumber(a: Proposal, b: Proposal): number {
  return proposalNumber(a) - proposalNumber(b);
}

function withoutBatch({ batch: _, ...proposal }: StoredProposal): Proposal {
  return proposal;
}

/** `prop_0001` for 1. */
function proposalId(number: number): string {
  return `prop_${String(number).padStart(4, '0')}`;
}

function proposalNumber({ id }: Pick<Proposal, 'id'>): number {
  return Number(id.slice('prop_'.length));
}

function byTime(a: Tombstone, b: Tombstone): number {
  return a.ts - b.ts || (a.id < b.id ? -1 : 1);
}
