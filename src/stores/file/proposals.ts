/** Lines that wait for a person, and what is to stay forgotten: small files beside MEMORY.md, written whole. */
import { join } from 'node:path';
import { z } from 'zod';
import type { Proposal, Tombstone } from '../../records/memory/documents.js';
import { byTime, decodeRecord, encodeRecord, proposalId, proposalNumber, proposalSchema, toTombstone } from '../codecs/document-codec.js';
import { describeErrors } from './errors.js';
import { changeList, readList, type ListFile } from './lists.js';
import { scopeDir } from './paths.js';
import type { Documents, ScopeKey } from '../store.js';

interface KeptProposal extends Proposal {
  readonly batch: string;
}

const keptSchema = proposalSchema.extend({ batch: z.string() });

export function createFileProposals(dir: string): Pick<Documents, 'propose' | 'proposals' | 'settleProposal' | 'forget' | 'forgotten'> {
  return {
    async propose(key, batch, lines) {
      if (lines.length === 0) return [];
      const file = proposalsFile(dir, key);
      let added: readonly KeptProposal[] = [];
      await describeErrors(file.path, `add ${lines.length} proposals to ${key.scope}`, () =>
        changeList(file, (before) => {
          added = before.filter((proposal) => proposal.batch === batch);
          if (added.length > 0) return undefined;
          const last = Math.max(0, ...before.map(proposalNumber));
          added = lines.map(({ ts, line, source }, i) => ({ id: proposalId(last + i + 1), ts, line, source, state: 'open', batch }));
          return [...before, ...added];
        }),
      );
      return added.map(withoutBatch);
    },

    async proposals(key) {
      const file = proposalsFile(dir, key);
      const { items, skipped } = await describeErrors(file.path, `read the proposals of ${key.scope}`, () => readList(file));
      return { proposals: items.map(withoutBatch).sort((a, b) => proposalNumber(a) - proposalNumber(b)), skipped };
    },

    async settleProposal(key, id, state) {
      const file = proposalsFile(dir, key);
      let settled: KeptProposal | undefined;
      await describeErrors(file.path, `settle proposal ${id} of ${key.scope}`, () =>
        changeList(file, (before) => {
          const found = before.find((proposal) => proposal.id === id);
          settled = found?.state === 'open' ? { ...found, state } : found;
          if (!found || !settled || settled === found) return undefined;
          return before.map((proposal) => (proposal === found && settled ? settled : proposal));
        }),
      );
      return settled && withoutBatch(settled);
    },

    async forget(key, tombstone) {
      const file = forgottenFile(dir, key);
      await describeErrors(file.path, `keep ${tombstone.id} of ${key.scope} forgotten`, () =>
        changeList(file, (before) => (before.some(({ id }) => id === tombstone.id) ? undefined : [...before, tombstone])),
      );
    },

    async forgotten(key) {
      const file = forgottenFile(dir, key);
      const { items } = await describeErrors(file.path, `read what ${key.scope} has forgotten`, () => readList(file));
      return [...items].sort(byTime);
    },
  };
}

export async function redactProposals(dir: string, key: ScopeKey, redact: (line: string) => string): Promise<void> {
  const file = proposalsFile(dir, key);
  if ((await readList(file)).items.length === 0) return;
  await changeList(file, (before) => {
    const after = before.map((proposal) => {
      const line = redact(proposal.line);
      return line === proposal.line ? proposal : { ...proposal, line };
    });
    return after.every((proposal, i) => proposal === before[i]) ? undefined : after;
  });
}

function withoutBatch({ batch: _, ...proposal }: KeptProposal): Proposal {
  return proposal;
}

function proposalsFile(dir: string, key: ScopeKey): ListFile<KeptProposal> {
  const folder = scopeDir(dir, key);
  return {
    path: join(folder, 'proposals.jsonl'),
    lock: join(folder, 'proposals.lock'),
    encode: encodeRecord,
    decode: (line) => decodeRecord(keptSchema, line),
  };
}

function forgottenFile(dir: string, key: ScopeKey): ListFile<Tombstone> {
  const folder = scopeDir(dir, key);
  return { path: join(folder, 'forgotten.jsonl'), lock: join(folder, 'forgotten.lock'), encode: encodeRecord, decode: toTombstone };
}
