/** What a copy needs of Redis (backup/contents.ts). Keys: keys.ts. */
import type { Entry, JsonValue } from '../../records/message.js';
import { isSpending } from '../../records/spending.js';
import type { Contents, LedgerRecord, NamedPlace } from '../backup/contents.js';
import { decodeEntry, decodeJson, toBodyRef } from '../codecs.js';
import type { ConversationKey, Effects } from '../store.js';
import { lifeKey, namedPattern, placeNamed, type NamedKind } from './keys.js';
import { scanKeys, type RedisLink } from './link.js';

const AT_ONCE = 100;
const KINDS: readonly NamedKind[] = ['deleted', 'pins', 'sign-ins'];

interface RedisContents extends Pick<Contents, 'entries' | 'bodies' | 'open'> {
  readonly link: RedisLink;
  readonly effects: Effects;
}

export function createRedisContents({ link, effects, ...ports }: RedisContents): Contents {
  return {
    ...ports,

    async *named(namespace) {
      for (const kind of KINDS) {
        // SCAN may name a key twice.
        const seen = new Set<string>();
        for await (const name of scanKeys(link, 'look what else is stored', namedPattern(namespace, kind))) {
          const place = seen.has(name) ? undefined : placeNamed(namespace, kind, name);
          seen.add(name);
          if (place) yield place satisfies NamedPlace;
        }
      }
    },

    async bodyRefs(key) {
      const names = await link.askUnlessForeign(`look which bodies ${key.conversation} has`, (redis) =>
        redis.hkeys(lifeKey(key, 'bodies')),
      );
      return (names ?? []).map((name) => `sha256:${name}`);
    },

    async drop(key, { entries, bodies, results }, standIn) {
      for (let at = 0; at < entries.length; at += AT_ONCE) await dropEntries(link, key, entries.slice(at, at + AT_ONCE));
      const where = lifeKey(key, 'effects');
      const attempt = `take out what ${key.conversation} has archived`;
      for (const [id, result] of Object.entries(results)) {
        const stored = await link.askUnlessForeign(attempt, (redis) => redis.hget(where, `result:${id}`));
        if (typeof stored !== 'string' || JSON.stringify(decodeJson(link.atRest.openRecord(stored))) !== JSON.stringify(result)) continue;
        await link.ask(attempt, (redis) =>
          redis.perduraChange(where, '', `result:${id}`, stored, link.atRest.seal(JSON.stringify(standIn))),
        );
      }
      const hashes = bodies.map((text) => toBodyRef(text).sha256);
      if (hashes.length > 0) await link.askUnlessForeign(attempt, (redis) => redis.hdel(lifeKey(key, 'bodies'), ...hashes));
      return true;
    },

    async lastMove(key) {
      const move = await link.askUnlessForeign(`read what is archived of ${key.conversation}`, (redis) =>
        redis.hget(lifeKey(key, 'entries'), 'move'),
      );
      return Number(move ?? -1);
    },

    async *ledger(key) {
      yield* readEffects(link, key);
      const attempt = `read what ${key.conversation} has spent`;
      const spendings = (await link.askUnlessForeign(attempt, (redis) => redis.hgetall(lifeKey(key, 'spendings')))) ?? {};
      for (const [id, text] of Object.entries(spendings)) {
        const spending: unknown = decodeJson(text);
        if (isSpending(spending)) yield { kind: 'spent', id, spending };
      }
    },

    async restoreLedger(key, records) {
      for (let at = 0; at < records.length; at += AT_ONCE)
        await Promise.all(records.slice(at, at + AT_ONCE).map((record) => restoreOne(effects, key, record)));
    },
  };
}

/** Where another writer comes between, it is looked at again. */
const MAX_ATTEMPTS = 10;

/** With them goes up how many are away, in one step: what a search counts stays the same. */
async function dropEntries(link: RedisLink, key: ConversationKey, entries: readonly Entry[]): Promise<void> {
  const where = lifeKey(key, 'entries');
  const attempt = `take out what ${key.conversation} has archived`;
  for (let attempts = 0; attempts < MAX_ATTEMPTS; attempts += 1) {
    const fields = ['away', ...entries.map(({ slot }) => String(slot))];
    const [away, ...stored] = (await link.askUnlessForeign(attempt, (redis) => redis.hmget(where, ...fields))) ?? [];
    const gone = entries.flatMap((entry, i) => {
      const text = stored[i];
      const isSame = typeof text === 'string' && JSON.stringify(decodeEntry(link.atRest.openRecord(text))) === JSON.stringify(entry);
      return isSame ? [[String(entry.slot), text, '']] : [];
    });
    if (gone.length === 0) return;
    const count = ['away', away ?? '', String(Number(away ?? 0) + gone.length)];
    if ((await link.ask(attempt, (redis) => redis.perduraChange(where, '', ...gone.flat(), ...count))) === 1) return;
  }
  throw link.unavailable(attempt, new Error('others write there all the time'));
}

async function* readEffects(link: RedisLink, key: ConversationKey): AsyncIterable<LedgerRecord> {
  const where = lifeKey(key, 'effects');
  const attempt = `read the effects of ${key.conversation}`;
  const fields = (await link.askUnlessForeign(attempt, (redis) => redis.hkeys(where))) ?? [];
  const ids = [...new Set(fields.flatMap((field) => /^(?:hash|fenced):(.*)$/s.exec(field)?.[1] ?? []))];
  for (let at = 0; at < ids.length; at += AT_ONCE) {
    const some = ids.slice(at, at + AT_ONCE);
    const wanted = some.flatMap((id) => [`hash:${id}`, `result:${id}`, `fenced:${id}`, `attempts:${id}`]);
    const values = (await link.askUnlessForeign(attempt, (redis) => redis.hmget(where, ...wanted))) ?? [];
    for (const [i, id] of some.entries()) {
      const [hash, result, fenced, attempts] = values.slice(4 * i, 4 * i + 4);
      if (typeof fenced === 'string') yield { kind: 'fenced', id };
      else if (typeof hash !== 'string') continue;
      else if (typeof result === 'string') {
        const value = decodeJson(link.atRest.openRecord(result)) as JsonValue | undefined;
        // A result that is there and cannot be read must not pass for "never done".
        if (value === undefined)
          throw link.unavailable(attempt, new Error(`the field result:${id} of ${where} is no JSON, look at it with HGET`));
        yield { kind: 'committed', id, hash, result: value };
      } else
        yield {
          kind: 'reserved',
          id,
          hash,
          attempts: (attempts ?? '')
            .split('\n')
            .filter((one) => one !== '')
            .map(decodeURIComponent),
        };
    }
  }
}

async function restoreOne(effects: Effects, key: ConversationKey, record: LedgerRecord): Promise<void> {
  const { id } = record;
  switch (record.kind) {
    case 'committed':
      await effects.commit(key, { id, hash: record.hash }, record.result, []);
      return;
    case 'fenced':
      await effects.fence(key, [id]);
      return;
    case 'reserved':
      for (const attempt of record.attempts) await effects.reserve(key, { id, hash: record.hash }, attempt);
      return;
    case 'spent':
      return effects.spend(key, id, record.spending);
    default:
      return record satisfies never;
  }
}
