/** What is remembered beyond the entries, in Redis: episodes of a conversation, facts of a scope. Keys: redis.ts. */
import { byAge, bySalience } from '../../records/memory/items.js';
import { decodeJson } from '../codecs/entry-codec.js';
import { decodeEpisode, encodeEpisode, encodeFact, factHash, toFact } from '../codecs/memory-codec.js';
import { keyOf, scopeKeyOf } from './keys.js';
import type { RedisLink } from './link.js';
import type { Episodes, FactRecord, Facts } from '../store.js';

export function createRedisEpisodes(link: RedisLink): Episodes {
  return {
    async add(key, episode) {
      await link.ask(`add episode ${episode.id} of ${key.conversation}`, (redis) =>
        redis.perduraAddEpisode(keyOf(key, 'episodes'), episode.id, encodeEpisode(episode)),
      );
    },

    async list(key, { session, limit = Infinity } = {}) {
      const texts = await link.askUnlessForeign(`read the episodes of ${key.conversation}`, (redis) => redis.hvals(keyOf(key, 'episodes')));
      if (texts === undefined) return { episodes: [], skipped: 1 };
      const episodes = texts.flatMap((text) => decodeEpisode(text) ?? []);
      const wanted = episodes.filter((episode) => session === undefined || episode.session === session);
      return { episodes: wanted.sort(byAge).slice(0, limit), skipped: texts.length - episodes.length };
    },

    async remove(key, id) {
      await link.ask(`remove episode ${id} of ${key.conversation}`, (redis) => redis.hdel(keyOf(key, 'episodes'), id));
    },
  };
}

const RANK = 'rank:';

export function createRedisFacts(link: RedisLink): Facts {
  return {
    async add(key, batch, facts, source) {
      if (facts.length === 0) return [];
      const told = facts.flatMap((fact) => [
        factHash(fact.fact),
        encodeFact({ ...fact, id: '', namespace: key.namespace, batches: [batch], source }),
        String(fact.salience),
        String(fact.confidence),
      ]);
      const answer = await link.ask(`add ${facts.length} facts to ${key.scope}`, (redis) =>
        redis.perduraAddFacts(scopeKeyOf(key, 'facts'), scopeKeyOf(key, 'fact-index'), batch, ...told),
      );
      const items: FactRecord[] = [];
      for (let i = 0; i < answer.length; i += 3) {
        const item = toRecord(answer[i] ?? '', answer[i + 1], answer[i + 2]);
        if (item) items.push(item);
      }
      return items;
    },

    async list(key, { limit = Infinity } = {}) {
      const fields = await link.askUnlessForeign(`read the facts of ${key.scope}`, (redis) => redis.hgetall(scopeKeyOf(key, 'facts')));
      if (fields === undefined) return { facts: [], skipped: 1 };
      const ids = Object.keys(fields).filter((field) => !field.startsWith(RANK));
      const facts = ids.flatMap((id) => toRecord(id, fields[id], fields[`${RANK}${id}`]) ?? []);
      return { facts: facts.sort(bySalience).slice(0, limit), skipped: ids.length - facts.length };
    },

    async remove(key, ids) {
      if (ids.length === 0) return;
      await link.ask(`remove ${ids.length} facts of ${key.scope}`, (redis) =>
        redis.perduraRemoveFacts(scopeKeyOf(key, 'facts'), scopeKeyOf(key, 'fact-index'), ...ids),
      );
    },
  };
}

/** A fact from where its parts lie; a rank that cannot be read leaves the one that the fact came with. */
function toRecord(id: string, json: string | undefined, rank = ''): FactRecord | undefined {
  const value = decodeJson(json);
  if (typeof value !== 'object' || value === null) return undefined;
  const [salience, confidence] = rank.split(' ').map(Number);
  const raised = rank === '' || !Number.isFinite(salience) || !Number.isFinite(confidence) ? {} : { salience, confidence };
  const kept = toFact({ ...value, id, ...raised });
  if (!kept) return undefined;
  const { ts, fact, tags, source, batches } = kept;
  return { id, ts, fact, tags, confidence: kept.confidence, salience: kept.salience, batch: batches[0] ?? null, source };
}
