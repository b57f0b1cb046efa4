/** How lives share entries: where each begins, what rewinds have cut of it, and who shares its entries; and how its turns ended. */
import { z } from 'zod';
import type { Beginning, Claim, Cut, SlotRange } from '../../records/slots.js';
import { decodeJson } from '../codecs.js';
import { addOnce, recordCodec, type OpenCollection, type RecordCodec } from './collection.js';
import { LifeDeleted, type ConversationKey, type ConversationName, type Lives, type TurnEnds } from '../store.js';
import { byTurn, MAX_ERROR, UNFINISHED, type TurnEnd } from '../../records/turn-end.js';

const slot = z.number().int().nonnegative();
const MAX_RANGES = 100_000;
const ranges = z.array(z.tuple([slot, slot]).refine(([from, to]) => from <= to && to - from < 10_000_000)).max(MAX_RANGES);
const name = z.string().min(1).max(300);

const beginningSchema = z.object({
  v: z.literal(1),
  kind: z.enum(['fork', 'resume']),
  of: z.object({ conversation: name, life: name }),
  turn: z.number().int(),
  shared: z.array(z.object({ conversation: name, life: name, scope: name, run: name.optional(), slots: ranges })).max(1_000),
  archived: ranges,
  joined: z
    .array(z.object({ session: z.number().int(), of: z.array(z.number().int()).max(MAX_RANGES) }))
    .max(MAX_RANGES)
    .optional(),
});

const cutSchema = z.object({
  v: z.literal(1),
  id: name,
  branch: z.number().int(),
  to: z.number().int(),
  begun: slot,
  since: z.number(),
  slot,
  at: z.number(),
  session: z.number().int(),
  slots: ranges,
});

const claimSchema = z.object({ v: z.literal(1), id: z.string().min(1).max(1_000), slots: ranges });

/** A life that shares entries of the one that this is stored with. */
const forkSchema = z.object({ conversation: name, life: name, scope: name });
type Fork = z.output<typeof forkSchema>;

const deletedSchema = z.object({ v: z.literal(1), life: name, at: z.number() });
type DeletedRecord = z.output<typeof deletedSchema>;

const nameCut = ({ id }: Cut): string => id;
const nameClaim = ({ id }: Claim): string => id;
const nameFork = ({ conversation, life }: Pick<Fork, 'conversation' | 'life'>): string => `${conversation}/${life}`;
const nameBeginning = (): string => 'beginning';

export const BEGINNINGS = recordCodec<Beginning>(beginningSchema, nameBeginning);
export const CUTS = recordCodec<Cut>(cutSchema, nameCut);
export const CLAIMS = recordCodec<Claim>(claimSchema, nameClaim);
export const FORKS: RecordCodec<Fork> = {
  identify: nameFork,
  encode: (fork) => JSON.stringify(fork),
  decode: (text) => forkSchema.safeParse(decodeJson(text)).data,
};
export const DELETED = recordCodec<DeletedRecord>(deletedSchema, ({ life }) => life);

/** The parts that differ from store to store. */
export interface LifeStorage {
  readonly list: Lives['list'];
  /** Marks what a life shares of others as archived there already. */
  archiveShared(key: ConversationKey, archived: readonly SlotRange[]): Promise<void>;
  /** Everything of one life. */
  remove(key: ConversationKey, attempt: string): Promise<void>;
}

export function createLives(open: OpenCollection, { list, archiveShared, remove }: LifeStorage): Lives {
  const openBeginning = (key: ConversationKey) => open({ name: 'lineage', key }, BEGINNINGS);
  const openCuts = (key: ConversationKey) => open({ name: 'cuts', key }, CUTS);
  const openClaims = (key: ConversationKey) => open({ name: 'claims', key }, CLAIMS);
  const openForks = (key: ConversationKey) => open({ name: 'forks', key }, FORKS);
  const tombstones = createTombstones(open);

  const lives: Lives = {
    async begin(key, beginning) {
      const { conversation, life, scope, namespace } = key;
      const attempt = `write where ${conversation} begins`;
      // First the other lives get to know: one that is shared must not be deleted.
      for (const source of beginning.shared) {
        await addOnce(openForks({ ...source, namespace }), nameFork, attempt, { conversation, life, scope });
      }
      await addOnce(openBeginning(key), nameBeginning, attempt, beginning);
      // Last: who deletes one of them has marked it before the look for forks, so one of the two is refused.
      for (const source of beginning.shared) {
        const at = await deletedAt(lives, { ...source, namespace });
        if (at === undefined) continue;
        await lives.delete(key);
        throw new LifeDeleted(attempt, { conversation: source.conversation, at });
      }
      if (beginning.archived.length > 0) await archiveShared(key, beginning.archived);
    },

    async beginning(key) {
      return (await openBeginning(key).read(`read where ${key.conversation} begins`)).items[0];
    },

    async forks(key) {
      const { items } = await openForks(key).read(`read the forks of ${key.conversation}`);
      const there = await Promise.all(items.map((fork) => lives.beginning({ ...fork, namespace: key.namespace })));
      return items.filter((_, i) => there[i] !== undefined).map(({ conversation, life }) => ({ conversation, life }));
    },

    cut: (key, cut) => addOnce(openCuts(key), nameCut, `cut turns out of ${key.conversation}`, cut),

    async cuts(key) {
      const { items } = await openCuts(key).read(`read the branches of ${key.conversation}`);
      return [...items].sort((a, b) => a.branch - b.branch);
    },

    claim: (key, claim) => addOnce(openClaims(key), nameClaim, `note what of ${key.conversation} is consolidated`, claim),

    // A record that cannot be read must not count as "not consolidated".
    claims: async (key) => (await openClaims(key).read(`read what of ${key.conversation} is consolidated`, 'refuse')).items,

    list,

    async delete(key) {
      const attempt = `delete ${key.conversation}`;
      const beginning = await lives.beginning(key);
      for (const source of beginning?.shared ?? []) {
        const forks = openForks({ ...source, namespace: key.namespace });
        // Nothing is made again for a life that is gone.
        if ((await forks.read(attempt)).items.length === 0) continue;
        await forks.change(attempt, (known) => known.filter((fork) => nameFork(fork) !== nameFork(key)));
      }
      await remove(key, attempt);
    },

    ...tombstones,
  };
  return lives;
}

export function createTombstones(open: OpenCollection): Pick<Lives, 'markDeleted' | 'unmarkDeleted' | 'deleted'> {
  const openTombstones = ({ namespace, conversation }: ConversationName) =>
    open({ name: 'deleted', key: { namespace, conversation } }, DELETED);
  return {
    async markDeleted(of, marked) {
      await openTombstones(of).change(`delete ${of.conversation}`, (known) => {
        const fresh = marked.filter(({ life }) => !known.some((one) => one.life === life));
        return fresh.length === 0 ? undefined : [...known, ...fresh.map(({ life, at }) => ({ v: 1 as const, life, at }))];
      });
    },

    async unmarkDeleted(of, marked) {
      await openTombstones(of).change(`keep ${of.conversation}`, (known) => {
        const left = known.filter(({ life }) => !marked.includes(life));
        return left.length === known.length ? undefined : left;
      });
    },

    async deleted(of) {
      // A record that cannot be read must not count as "not deleted".
      const { items } = await openTombstones(of).read(`look whether ${of.conversation} was deleted`, 'refuse');
      return items.map(({ life, at }) => ({ life, at }));
    },
  };
}

/** Epoch seconds; undefined for a life that was not deleted. */
export async function deletedAt({ deleted }: Pick<Lives, 'deleted'>, key: ConversationKey): Promise<number | undefined> {
  return (await deleted(key)).find(({ life }) => life === key.life)?.at;
}

// How turns ended that have no whole answer, of one life. A turn ends once: the first word on it counts.

/** A conversation that fails for ever keeps only the newest. */
const MAX_STORED = 500;

const turnEndSchema = z.object({
  v: z.literal(1),
  turn: z.string().regex(/^turn_\d{4,15}$/),
  stopReason: z.enum(UNFINISHED),
  error: z.object({ type: z.string().max(200), message: z.string().max(MAX_ERROR) }).optional(),
});

export const ENDS = recordCodec<TurnEnd>(turnEndSchema, ({ turn }) => turn);

export function createTurnEnds(open: OpenCollection): TurnEnds {
  return {
    async add(key, ends) {
      if (ends.length === 0) return;
      await open({ name: 'turn-ends', key }, ENDS).change(`write how ${ends.length} turns of ${key.conversation} ended`, (known) => {
        const turns = new Set(known.map(({ turn }) => turn));
        const all = [...known, ...ends.filter(({ turn }) => !turns.has(turn))].sort(byTurn).slice(-MAX_STORED);
        return all.every((end) => known.includes(end)) ? undefined : all;
      });
    },

    async list(key) {
      return [...(await open({ name: 'turn-ends', key }, ENDS).read(`read how turns of ${key.conversation} ended`)).items].sort(byTurn);
    },
  };
}
