/** Entries, effects, long texts and lives of conversations in Redis. Which keys there are, and what each holds, is in keys.ts. */
import type { Entry, JsonValue } from '../../records/message.js';
import { countSlots, listSlots, withSlot, type SlotRange } from '../../records/slots.js';
import { isSealed } from '../../platform/at-rest.js';
import { isSpending } from '../../records/spending.js';
import { decodeEntry, decodeJson, encodeEntry, hashInRef, toBodyRef, verified } from '../codecs.js';
import type { LifeStorage } from '../collections/lives.js';
import type { EntryCache } from './entry-cache.js';
import { feedKeys, toEventArguments, type RedisFeed } from './feed.js';
import { deletedKey, KEY_NAMES, lifeKey, placeInKey, scanPattern, spendingsPattern } from './keys.js';
import { scanKeys, type RedisLink } from './link.js';
import { isReply, replyCode } from './replies.js';
import { noteLife } from './scopes.js';
import { claimsBy, describeBatch, recordsBy, toRanges } from '../shared-entries.js';
import type { Bodies, Commitment, ConversationKey, Effects, Entries, Recording, Reservation, Spendings, Writes } from '../store.js';

const PAGE_STEP = 500;
/** Keys that one step of a scan looks at. */
/** Most slots of one range: a damaged one must not be walked for ever. */
const MAX_SLOTS = 1_000_000;

export function createWrites(link: RedisLink, feed: RedisFeed, cache: EntryCache): Writes {
  return {
    async apply(key, batch) {
      const { record = [], fence = [], append = [], publish = [], reserve } = batch;
      const attempt = `${describeBatch(batch)} of ${key.conversation}`;
      const messages = toStored(link, record);
      const others = toStored(link, append);
      const written = link.ask(attempt, (redis) =>
        redis.perduraWrite(
          lifeKey(key, 'entries'),
          lifeKey(key, 'messages'),
          lifeKey(key, 'effects'),
          ...feedKeys(key),
          deletedKey(key),
          ...[record, fence, append, publish].map(({ length }) => String(length)),
          ...(reserve ? [reserve.claim.id, reserve.claim.hash, encodeURIComponent(reserve.attempt)] : ['', '', '']),
          ...feed.settings(publish),
          ...toArguments(messages),
          ...fence,
          ...toArguments(others),
          ...toEventArguments(link, publish),
        ),
      );
      const hasEntries = messages.length + others.length > 0;
      const [recorded, fenced, [status, detail], added, all] = await (hasEntries ? withNote(link, key, written) : written);
      remember(cache, lifeKey(key, 'entries'), [...messages, ...others], { added, all });
      return {
        recorded: recorded.map(toRecording),
        fenced: fence.map((id, i) =>
          fenced[i] === '' ? { id, status: 'fenced' } : { id, status: 'committed', result: decodeResult(link, attempt, id, fenced[i]) },
        ),
        ...(reserve && { reservation: toReservation(status, detail, (text) => decodeResult(link, attempt, reserve.claim.id, text)) }),
      };
    },
  };
}

/**
 * Redis does one after the other what comes on one connection (redis/cached-if-the-store-has-it). In a cluster the note may be with another node,
 * and would overtake its write.
 */
async function withNote<T>(link: RedisLink, key: ConversationKey, write: Promise<T>): Promise<T> {
  if (link.cluster === undefined) return (await Promise.all([write, noteLife(link, key)]))[0];
  const answer = await write;
  await noteLife(link, key);
  return answer;
}

function toRecording(first: string): Recording {
  if (first === '') return {};
  const [slot = '', turn = ''] = first.split(' ');
  return { duplicate: { slot: Number(slot), turn } };
}

function toReservation(
  status: Reservation['status'] = 'conflict',
  detail: string | undefined,
  decode: (text: string | undefined) => JsonValue,
): Reservation {
  switch (status) {
    case 'reserved':
      return { status, earlier: Number(detail) };
    case 'committed':
      return { status, result: decode(detail) };
    default:
      return { status };
  }
}

export function createEntries(link: RedisLink, writes: Writes, cache: EntryCache): Entries {
  const mark = async (archived: '1' | '0', key: ConversationKey, slots: readonly SlotRange[], move: number): Promise<void> => {
    const [entries, archive, gone] = [lifeKey(key, 'entries'), lifeKey(key, 'archived'), deletedKey(key)];
    await link.ask(`${archived === '1' ? 'archive' : 'restore'} ${countSlots(slots)} entries of ${key.conversation}`, (redis) =>
      redis.perduraMove(archive, entries, gone, archived, String(move), ...listSlots(slots).map(String)),
    );
  };
  return {
    ...recordsBy(writes),

    async read(key, slots) {
      const where = lifeKey(key, 'entries');
      const known = cache.of(where);
      const isVouchedFor = cache.isVouchedFor(where);
      const unknown = slots.filter((slot) => !known.has(slot));
      const attempt = `read ${slots.length} entries of ${key.conversation}`;
      const [records, gone] = await Promise.all([
        readFields(link, attempt, where, unknown),
        !isVouchedFor && isAnyGone(link, attempt, where, slots, known),
      ]);
      if (gone) {
        cache.forget(where);
        return this.read(key, slots);
      }
      const fresh = new Map(unknown.map((slot, i) => [slot, decodeStored(link, records?.[i])]));
      await removeBroken(link, attempt, where, unknown, { records, fresh });
      for (const [i, slot] of unknown.entries()) {
        const entry = fresh.get(slot);
        if (entry) cache.add(where, slot, entry, records?.[i]?.length ?? 0);
      }
      return slots.map((slot) => fresh.get(slot) ?? known.get(slot));
    },

    async page(key, after, limit) {
      const attempt = `read entries after slot ${after} of ${key.conversation}`;
      const entries: Entry[] = [];
      let skipped = 0;
      let last = 0;
      for (let from = after; from < after + limit; from += PAGE_STEP) {
        const slots = Array.from({ length: Math.min(PAGE_STEP, after + limit - from) }, (_, i) => from + 1 + i);
        const records = await readFields(link, attempt, lifeKey(key, 'entries'), ['last', ...slots]);
        if (records === undefined) return { entries: [], last: 0, skipped: 1 };
        const [highest, ...texts] = records;
        last = Number(highest ?? 0) || 0;
        for (const text of texts) {
          const entry = decodeStored(link, text);
          if (entry !== undefined) entries.push(entry);
          else if (text !== null) skipped += 1;
        }
        if (from + PAGE_STEP >= last) break;
      }
      const highest = Math.max(last, entries.at(-1)?.slot ?? 0);
      // The store ends before what this process has seen there: it has lost that, and the next read must find out what else.
      const where = lifeKey(key, 'entries');
      if ([...cache.of(where).keys()].some((slot) => slot > highest)) cache.forget(where);
      return { entries, last: highest, skipped };
    },

    archive: (key, slots, move) => mark('1', key, slots, move),

    restore: (key, slots, move) => mark('0', key, slots, move),

    async archived(key) {
      const members = await link.askUnlessForeign(`read what is archived of ${key.conversation}`, (redis) =>
        redis.smembers(lifeKey(key, 'archived')),
      );
      return toRanges((members ?? []).flatMap(slotsIn));
    },
  };
}

export function createBodies(link: RedisLink): Bodies {
  return {
    async put(key, text) {
      const ref = toBodyRef(text);
      await link.ask(`store a body of ${ref.bytes} bytes of ${key.conversation}`, (redis) =>
        redis.perduraPutBody(lifeKey(key, 'bodies'), deletedKey(key), ref.sha256, link.atRest.seal(text)),
      );
      return ref;
    },
    async get(key, ref) {
      const sha256 = hashInRef(ref);
      if (sha256 === undefined) return undefined;
      const [stored] = (await readFields(link, `read body ${ref} of ${key.conversation}`, lifeKey(key, 'bodies'), [sha256])) ?? [];
      return typeof stored === 'string' ? verified(link.atRest.openRecord(stored), sha256) : undefined;
    },
  };
}

export function createEffects(link: RedisLink, writes: Writes, feed: RedisFeed, cache: EntryCache): Effects {
  return {
    ...claimsBy(writes),

    async commit(key, claim, result, entries, { spent, items = [], publish = [] } = {}): Promise<Commitment> {
      const attempted = `commit effect ${claim.id} of ${key.conversation}`;
      const values = toStored(link, entries);
      const committed = link.ask(attempted, (redis) =>
        redis.perduraCommit(
          lifeKey(key, 'entries'),
          lifeKey(key, 'messages'),
          lifeKey(key, 'effects'),
          lifeKey(key, 'items'),
          ...feedKeys(key),
          lifeKey(key, 'spendings'),
          deletedKey(key),
          claim.id,
          claim.hash,
          link.atRest.seal(JSON.stringify(result)),
          spent === undefined ? '' : JSON.stringify(spent),
          String(items.length),
          String(entries.length),
          ...feed.settings(publish),
          ...items.flatMap((item) => [item.id, link.atRest.seal(JSON.stringify(item))]),
          ...toArguments(values),
          ...toEventArguments(link, publish),
        ),
      );
      const hasContent = values.length + items.length > 0;
      const [status, first, added, all] = await (hasContent ? withNote(link, key, committed) : committed);
      if (status !== 'committed') return { status };
      remember(cache, lifeKey(key, 'entries'), values, { added, all });
      return { status, result: first === '' ? result : decodeResult(link, attempted, claim.id, first) };
    },

    async spend(key, id, spending) {
      await link.ask(`write what ${id} of ${key.conversation} has cost`, (redis) =>
        redis.hsetnx(lifeKey(key, 'spendings'), id, JSON.stringify(spending)),
      );
    },
  };
}

/** The slots of a member of `archived`, which is a slot or a range. */
function slotsIn(member: string): number[] {
  const [, first, last] = /^(\d{1,15})(?:-(\d{1,15}))?$/.exec(member) ?? [];
  if (first === undefined) return [];
  const [from, to] = [Number(first), Number(last ?? first)];
  return to - from < MAX_SLOTS ? listSlots([[from, to]]) : [];
}

/** Whether one of the entries that we know is no longer there. */
async function isAnyGone(
  link: RedisLink,
  attempt: string,
  key: string,
  slots: readonly number[],
  known: ReadonlyMap<number, Entry>,
): Promise<boolean> {
  if (known.size === 0) return false;
  const ranges = slots.filter((slot) => known.has(slot)).reduce<readonly SlotRange[]>(withSlot, []);
  if (ranges.length === 0) return false;
  try {
    return (await link.redis.perduraAbsent(key, ...ranges.flat().map(String))) > 0;
  } catch (error) {
    if (isReply(error) && replyCode(error) === 'WRONGTYPE') return true;
    throw link.unavailable(attempt, error);
  }
}

/** One HMGET; undefined when the key holds another type (stores/foreign-is-skipped). */
async function readFields(
  link: RedisLink,
  attempt: string,
  key: string,
  fields: readonly (string | number)[],
): Promise<(string | null)[] | undefined> {
  if (fields.length === 0) return [];
  return link.askUnlessForeign(attempt, (redis) => redis.hmget(key, ...fields.map(String)));
}

/** An entry as it is written: `text` is its JSON, `stored` what Redis gets. */
interface StoredEntry {
  readonly entry: Entry;
  readonly text: string;
  readonly stored: string;
}

/** The message's id stays readable: the script must know whose slot it is. */
function toStored({ atRest }: RedisLink, entries: readonly Entry[]): StoredEntry[] {
  return entries.map((entry) => {
    const text = encodeEntry(entry);
    return { entry, text, stored: atRest.seal(text, entry.messageId ?? '') };
  });
}

/** As the scripts take them: slot, what is stored, message id, turn. */
function toArguments(entries: readonly StoredEntry[]): string[] {
  return entries.flatMap(({ entry, stored }) => [String(entry.slot), stored, entry.messageId ?? '', entry.turn]);
}

function decodeStored({ atRest }: RedisLink, stored: string | null | undefined): Entry | undefined {
  return typeof stored === 'string' ? decodeEntry(atRest.openRecord(stored)) : undefined;
}

/** Encrypted entries that were damaged: the script, which cannot look into them, would leave them where they are, and nothing heal them. */
async function removeBroken(
  link: RedisLink,
  attempt: string,
  where: string,
  slots: readonly number[],
  { records, fresh }: { readonly records: readonly (string | null)[] | undefined; readonly fresh: ReadonlyMap<number, Entry | undefined> },
): Promise<void> {
  const broken = slots.flatMap((slot, i) => {
    const stored = records?.[i];
    return typeof stored === 'string' && isSealed(stored) && fresh.get(slot) === undefined ? [String(slot), stored, ''] : [];
  });
  if (broken.length > 0) await link.ask(attempt, (redis) => redis.perduraChange(where, '', ...broken));
}

/**
 * Entries that were written; only where all of them found their slots empty is it certain that they are what is
 * there.
 */
function remember(
  cache: EntryCache,
  where: string,
  written: readonly StoredEntry[],
  count: { readonly added: number; readonly all: number },
): void {
  if (count.all < 0) return;
  cache.counted(where, count);
  if (count.added !== written.length) return;
  for (const { text } of written) {
    const entry = decodeEntry(text);
    if (entry) cache.add(where, entry.slot, entry, text.length);
  }
}

/** A result that is there and cannot be read must not pass for "never done". */
function decodeResult(link: RedisLink, attempt: string, id: string, text: string | undefined): JsonValue {
  const result = decodeJson(text === undefined ? text : link.atRest.openRecord(text));
  if (result !== undefined) return result as JsonValue;
  throw link.unavailable(attempt, new Error(`the field result:${id} of its effects is no JSON, look at it with HGET`));
}

/** The costs of all conversations. */
export function createRedisSpendings(link: RedisLink): Spendings {
  return {
    async *all({ namespace }) {
      const attempt = 'read what was spent';
      // SCAN may name a key twice.
      const seen = new Set<string>();
      for await (const name of scanKeys(link, attempt, spendingsPattern(namespace))) {
        if (seen.has(name)) continue;
        seen.add(name);
        const records = Object.entries((await link.askUnlessForeign(attempt, (redis) => redis.hgetall(name))) ?? {});
        if (records.length === 0) continue;
        const effects = name.replace(/spendings$/, 'effects');
        const marks = await link.askUnlessForeign(attempt, (redis) => redis.hmget(effects, ...records.map(([id]) => `fenced:${id}`)));
        for (const [i, [id, text]] of records.entries()) {
          const spending: unknown = decodeJson(text);
          if (isSpending(spending)) yield { ...spending, id, fenced: typeof marks?.[i] === 'string' };
        }
      }
    },
  };
}

export function createRedisLifeStorage(link: RedisLink): LifeStorage {
  return {
    async archiveShared(key, archived) {
      // As ranges: thousands of slots of another life take no more room than one.
      const ranges = archived.map(([first, last]) => `${first}-${last}`);
      await link.ask(`write where ${key.conversation} begins`, (redis) => redis.sadd(lifeKey(key, 'archived'), ...ranges));
    },

    async list({ namespace, conversation, scope = 'default', tree = false }) {
      const found = new Map<string, ConversationKey>();
      const attempt = `look for the lives of ${conversation}`;
      for (const which of tree ? (['itself', 'sub-agents'] as const) : (['itself'] as const)) {
        for await (const name of scanKeys(link, attempt, scanPattern({ namespace, conversation }, which))) {
          const place = placeInKey(name);
          if (place) found.set(JSON.stringify([place.conversation, place.life]), { namespace, scope, ...place });
        }
      }
      return [...found.keys()].sort().flatMap((name) => found.get(name) ?? []);
    },

    async remove(key, attempt) {
      await link.ask(attempt, (redis) => redis.unlink(...KEY_NAMES.map((name) => lifeKey(key, name))));
    },
  };
}
