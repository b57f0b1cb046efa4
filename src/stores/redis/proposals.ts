/** Lines that wait for a person, and what is to stay forgotten, in Redis. */
import type { Proposal } from '../../records/memory/documents.js';
import { byTime, encodeRecord, proposalNumber, proposalSchema, toRecord, toTombstone } from '../codecs/document-codec.js';
import { decodeJson } from '../codecs/entry-codec.js';
import { scopeKeyOf } from './keys.js';
import type { RedisLink } from './link.js';
import type { Documents } from '../store.js';

const ID = /^prop_\d{4,}$/;

export function createRedisProposals(
  link: RedisLink,
): Pick<Documents, 'propose' | 'proposals' | 'settleProposal' | 'forget' | 'forgotten'> {
  return {
    async propose(key, batch, lines) {
      if (lines.length === 0) return [];
      const answer = await link.ask(`add ${lines.length} proposals to ${key.scope}`, (redis) =>
        redis.perduraPropose(
          scopeKeyOf(key, 'proposals'),
          batch,
          ...lines.map(({ ts, line, source }) => encodeRecord({ ts, line, source })),
        ),
      );
      const proposals: Proposal[] = [];
      for (let i = 0; i < answer.length; i += 3) {
        const proposal = toProposal(answer[i] ?? '', answer[i + 1], answer[i + 2]);
        if (proposal) proposals.push(proposal);
      }
      return proposals;
    },

    async proposals(key) {
      const fields = await link.askUnlessForeign(`read the proposals of ${key.scope}`, (redis) =>
        redis.hgetall(scopeKeyOf(key, 'proposals')),
      );
      if (fields === undefined) return { proposals: [], skipped: 1 };
      const ids = Object.keys(fields).filter((field) => ID.test(field));
      const proposals = ids.flatMap((id) => toProposal(id, fields[id], fields[`state:${id}`]) ?? []);
      return { proposals: proposals.sort((a, b) => proposalNumber(a) - proposalNumber(b)), skipped: ids.length - proposals.length };
    },

    async settleProposal(key, id, state) {
      if (!ID.test(id)) return undefined;
      const [json, settled] = await link.ask(`settle proposal ${id} of ${key.scope}`, (redis) =>
        redis.perduraSettleProposal(scopeKeyOf(key, 'proposals'), id, state),
      );
      return toProposal(id, json, settled);
    },

    async forget(key, tombstone) {
      await link.ask(`keep ${tombstone.id} of ${key.scope} forgotten`, (redis) =>
        redis.hsetnx(scopeKeyOf(key, 'forgotten'), tombstone.id, encodeRecord(tombstone)),
      );
    },

    async forgotten(key) {
      const texts = await link.ask(`read what ${key.scope} has forgotten`, (redis) => redis.hvals(scopeKeyOf(key, 'forgotten')));
      return texts.flatMap((text) => toTombstone(text) ?? []).sort(byTime);
    },
  };
}

function toProposal(id: string, json: string | undefined, state = 'open'): Proposal | undefined {
  const value = decodeJson(json);
  return typeof value === 'object' ? toRecord(proposalSchema, { ...value, id, state }) : undefined;
}
