/** Small collections as Redis hashes: id -> record. Keys: keys.ts. */
import { setTimeout as delay } from 'node:timers/promises';
import { deletedKey, lifeKey, pinsKey, scopeKey, signInsKey, uploadKey } from './keys.js';
import type { RedisLink, ScriptedRedis } from './link.js';
import {
  decideTexts,
  isOfScope,
  parseTexts,
  sealedCodec,
  type Collection,
  type OpenCollection,
  type Place,
  type RecordCodec,
} from '../collections/collection.js';
import { unlessErased, writerArguments } from './scopes.js';

/** Each time another writer was quicker. */
const MAX_ATTEMPTS = 50;
/** Collections on the way of each model call: what this process saw there last is decided by first, which saves a look. */
const REMEMBERED: readonly Place['name'][] = ['budget'];
const MAX_REMEMBERED = 256;

/** As bytes: a text that another program wrote there is compared, and may be no UTF-8. */
type Texts = ReadonlyMap<string, Buffer>;

export function createRedisCollections(link: RedisLink): OpenCollection {
  const remembered = new Map<string, Texts>();
  const remember = (where: string, texts: Texts): void => {
    remembered.delete(where);
    remembered.set(where, texts);
    for (const oldest of remembered.keys()) if (remembered.size > MAX_REMEMBERED) remembered.delete(oldest);
  };
  /** Changes of one process take turns: otherwise each of many at once would see the others come first, again and again. */
  const turns = new Map<string, Promise<void>>();
  const inTurn = (where: string, work: () => Promise<void>): Promise<void> => {
    const turn = (turns.get(where) ?? Promise.resolve()).then(work, work);
    turns.set(where, turn);
    const leave = (): void => void (turns.get(where) === turn && turns.delete(where));
    turn.then(leave, leave);
    return turn;
  };
  return <Item extends object>(place: Place, plain: RecordCodec<Item>): Collection<Item> => {
    const codec = sealedCodec(plain, link.atRest);
    const where = toKey(place);
    const isRemembered = REMEMBERED.includes(place.name);
    const replace = (attempt: string, changes: readonly (string | Buffer)[]): Promise<number> => {
      if (isOfScope(place)) {
        const [erased, writer] = writerArguments(place.key);
        return unlessErased(link, place.key, attempt, (redis) => redis.perduraChangeScope(where, erased, ...changes, writer));
      }
      return link.ask(attempt, (redis) =>
        place.name === 'items' || place.name === 'budget'
          ? redis.perduraChangeLife(where, deletedKey(place.key), ...changes)
          : redis.perduraChange(where, ...changes),
      );
    };

    return {
      async read(attempt, foreign = 'skip', ids) {
        const ask = foreign === 'skip' ? link.askUnlessForeign : link.ask;
        const texts = await ask(attempt, (redis) => look(redis, where, ids));
        if (texts === undefined) return { items: [], skipped: 1 };
        const { items, taken } = parseTexts(codec, texts);
        return { items, skipped: taken.length };
      },

      change: (attempt, decide, ids) =>
        inTurn(where, async () => {
          let seen = remembered.get(where);
          for (let attempts = 0; attempts < MAX_ATTEMPTS; attempts += 1) {
            const isFresh = seen === undefined;
            const before: Texts = seen ?? (await link.ask(attempt, (redis) => look(redis, where, ids)));
            if (isFresh && isRemembered) remember(where, before);
            seen = undefined;
            const changes = await decideTexts(codec, before, decide);
            if (changes.length === 0 && isFresh) return;
            // The content seen last needs no change, but only the store itself can confirm that.
            if (changes.length === 0) continue;
            const after = withChanges(before, changes);
            if ((await replace(attempt, [lastExpiry(codec, after), ...changes.flat()])) === 1) {
              if (isRemembered) remember(where, after);
              return;
            }
            await delay(Math.random() * 5 * attempts);
          }
          throw link.unavailable(attempt, new Error('others write there all the time'));
        }),
    };
  };
}

/** All, or those of `ids`. */
async function look(redis: ScriptedRedis, where: string, ids: readonly string[] | undefined): Promise<Texts> {
  if (ids === undefined) return new Map(Object.entries(await redis.hgetallBuffer(where)));
  const texts = ids.length === 0 ? [] : await redis.hmgetBuffer(where, ...ids);
  return new Map(ids.flatMap((id, i) => (texts[i] ? [[id, texts[i]] as const] : [])));
}

function withChanges(texts: Texts, changes: readonly (readonly [id: string, before: Buffer | '', after: string])[]): Texts {
  const after = new Map(texts);
  for (const [id, , text] of changes) {
    if (text === '') after.delete(id);
    else after.set(id, Buffer.from(text));
  }
  return after;
}

/** Epoch milliseconds at which the last record expires; '' where none does. */
function lastExpiry<Item>({ expiresAt, ...codec }: RecordCodec<Item>, texts: Texts): string {
  const times = expiresAt ? parseTexts(codec, texts).items.map(expiresAt) : [];
  return times.length === 0 ? '' : String(Math.max(...times));
}

function toKey(place: Place): string {
  switch (place.name) {
    case 'episodes':
    case 'lineage':
    case 'cuts':
    case 'claims':
    case 'forks':
    case 'turn-ends':
    case 'budget':
    case 'items':
    case 'vectors':
    case 'counted-by':
    case 'archives':
      return lifeKey(place.key, place.name);
    case 'deleted':
      return deletedKey(place.key);
    case 'upload':
      return uploadKey(place.key, 'known', place.key.id);
    case 'waiting-uploads':
      return uploadKey(place.key, 'sizes');
    case 'kept-files':
      return uploadKey(place.key, 'kept');
    case 'tenant-spendings':
      return uploadKey(place.key, 'spent');
    case 'sign-ins':
      return signInsKey(place.key);
    case 'pins':
      return pinsKey(place.key);
    default:
      return scopeKey(place.key, place.name);
  }
}
