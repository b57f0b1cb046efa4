/** Lines that wait for a person, and what is to stay forgotten: beside MEMORY.md. */
import { z } from 'zod';
import type { Proposal, Tombstone } from '../../records/memory/documents.js';
import { byTime, decodeRecord, encodeRecord, proposalId, proposalNumber, proposalSchema, toTombstone } from '../codecs/document-codec.js';
import { addOnce, type OpenCollection, type RecordCodec } from './collection.js';
import type { Documents, ScopeKey } from '../store.js';

interface KeptProposal extends Proposal {
  readonly batch: string;
}

const keptSchema = proposalSchema.extend({ batch: z.string() });
const idOf = ({ id }: { readonly id: string }): string => id;
const PROPOSALS: RecordCodec<KeptProposal> = { idOf, encode: encodeRecord, decode: (text) => decodeRecord(keptSchema, text) };
const FORGOTTEN: RecordCodec<Tombstone> = { idOf, encode: encodeRecord, decode: toTombstone };

export type Proposals = Pick<Documents, 'propose' | 'proposals' | 'settleProposal' | 'forget' | 'forgotten'>;

export function createProposals(open: OpenCollection): Proposals {
  const of = (key: ScopeKey) => open({ name: 'proposals', key }, PROPOSALS);
  const forgottenOf = (key: ScopeKey) => open({ name: 'forgotten', key }, FORGOTTEN);
  return {
    async propose(key, batch, lines) {
      if (lines.length === 0) return [];
      let added: readonly KeptProposal[] = [];
      await of(key).change(`add ${lines.length} proposals to ${key.scope}`, (before, taken) => {
        added = before.filter((proposal) => proposal.batch === batch);
        if (added.length > 0) return undefined;
        const numbers = [...before.map(idOf), ...taken].map((id) => proposalNumber({ id })).filter(Number.isFinite);
        const last = Math.max(0, ...numbers);
        added = lines.map(({ ts, line, source }, i) => ({ id: proposalId(last + i + 1), ts, line, source, state: 'open', batch }));
        return [...before, ...added];
      });
      return added.map(withoutBatch).sort(byNumber);
    },

    async proposals(key) {
      const { items, skipped } = await of(key).read(`read the proposals of ${key.scope}`);
      return { proposals: items.map(withoutBatch).sort(byNumber), skipped };
    },

    async settleProposal(key, id, state) {
      let settled: KeptProposal | undefined;
      await of(key).change(`settle proposal ${id} of ${key.scope}`, (before) => {
        const found = before.find((proposal) => proposal.id === id);
        settled = found?.state === 'open' ? { ...found, state } : found;
        if (!found || !settled || settled === found) return undefined;
        return before.map((proposal) => (proposal === found && settled ? settled : proposal));
      });
      return settled && withoutBatch(settled);
    },

    forget: (key, tombstone) => addOnce(forgottenOf(key), idOf, `keep ${tombstone.id} of ${key.scope} forgotten`, tombstone),

    async forgotten(key) {
      const { items } = await forgottenOf(key).read(`read what ${key.scope} has forgotten`, 'refuse');
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

function withoutBatch({ batch: _, ...proposal }: KeptProposal): Proposal {
  return proposal;
}
