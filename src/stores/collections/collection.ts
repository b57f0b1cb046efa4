/**
 * Small collections: records that are read whole, and changed by compare-and-set. A file and a Redis hash are two of these, so that what
 * a collection means is written once.
 *
 * - `decide` sees the records and answers with their replacements. The change is made only if none of the records it touches has changed
 *   meanwhile; otherwise `decide` runs again. Where a decision depends on more than it touches, each change gives one common record another
 * text.
 * - A `decide` that finds its work done answers undefined: then the same call again changes nothing (stores/idempotent-writes).
 * - A foreign record is counted, and stays where it is; in Redis until a record of its id is written, a newer one also then.
 */
import type { z } from 'zod';
import type { AtRest } from '../../platform/at-rest.js';
import { decodeJson, decodeRecord, encodeRecord } from '../codecs.js';
import type { Decide, Collection, Place, RecordCodec } from './ports.js';

export type * from './ports.js';

type OfScope = Extract<Place, { readonly name: 'facts' | 'removed-facts' | 'proposals' | 'forgotten' }>;

/** What the conversations of a scope share (stores/erased-stays-empty). */
export function isOfScope(place: Place): place is OfScope {
  return ['facts', 'removed-facts', 'proposals', 'forgotten'].includes(place.name);
}

/** Records of a schema, as JSON with a version. */
export function recordCodec<Item extends object>(schema: z.ZodType<Item>, identify: (item: Item) => string): RecordCodec<Item> {
  return { identify, encode: encodeRecord, decode: (text) => decodeRecord(schema, text) };
}

/** The same records, as they are stored where content is encrypted. */
export function sealedCodec<Item>(codec: RecordCodec<Item>, { seal, openRecord }: Pick<AtRest, 'seal' | 'openRecord'>): RecordCodec<Item> {
  return {
    ...codec,
    encode: (item) => seal(codec.encode(item)),
    decode: (stored) => codec.decode(openRecord(stored)),
    open: openRecord,
  };
}

/** Adds records whose id is not there yet: the first one counts. */
export function addOnce<Item extends object>(
  collection: Collection<Item>,
  identify: (item: Item) => string,
  attempt: string,
  ...items: readonly Item[]
): Promise<void> {
  const given = new Map(items.toReversed().map((item) => [identify(item), item]));
  return collection.change(
    attempt,
    (known) => {
      const there = new Set(known.map(identify));
      const fresh = [...given].flatMap(([id, item]) => (there.has(id) ? [] : [item]));
      return fresh.length === 0 ? undefined : [...known, ...fresh];
    },
    [...given.keys()],
  );
}

/** A collection as the text of each record by id: the records, and the ids of texts that Perdura did not write. */
export function parseTexts<Item>(
  { identify, decode }: Pick<RecordCodec<Item>, 'identify' | 'decode'>,
  texts: Iterable<readonly [id: string, text: string | Buffer]>,
): { readonly items: Item[]; readonly taken: string[] } {
  const items: Item[] = [];
  const taken: string[] = [];
  for (const [id, text] of texts) {
    const item = decode(text.toString());
    if (item !== undefined && identify(item) === id) items.push(item);
    else taken.push(id);
  }
  return { items, taken };
}

/** The changes that `decide` makes to a collection of texts: the text before and after of each changed record, '' for none. */
export async function decideTexts<Item, Text extends string | Buffer>(
  codec: RecordCodec<Item>,
  texts: ReadonlyMap<string, Text>,
  decide: Decide<Item>,
): Promise<readonly (readonly [id: string, before: Text | '', after: string])[]> {
  const { items, taken } = parseTexts(codec, texts);
  const after = await decide(items, taken);
  if (after === undefined) return [];
  const known = new Set(items);
  const stay = new Set(after.map(codec.identify));
  const before = (id: string): Text | '' => texts.get(id) ?? '';
  return [
    ...after
      .filter((item) => !known.has(item) && !isNewer(codec, texts.get(codec.identify(item))))
      .map((item) => [codec.identify(item), before(codec.identify(item)), codec.encode(item)] as const),
    ...items.map(codec.identify).flatMap((id) => (stay.has(id) ? [] : [[id, before(id), ''] as const])),
  ];
}

/** A value that a newer program wrote stays. */
function isNewer<Item>({ open = (stored) => stored }: Pick<RecordCodec<Item>, 'open'>, text: string | Buffer | undefined): boolean {
  const value = text === undefined ? undefined : decodeJson(open(text.toString()));
  return typeof value === 'object' && value !== null && 'v' in value && typeof value.v === 'number' && value.v > 1;
}
