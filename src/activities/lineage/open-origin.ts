/**
 * The `open-origin` step: a life begins with turns of another one. No effect of theirs is run again and nothing of them is copied: they
 * are read where they lie. Every write counts once, so a second attempt changes nothing.
 */
import { log } from '@temporalio/activity';
import type { OpenedOrigin, OpenOriginInput, CarriedEpisode } from '../../conversation/lineage/lineage-effects.js';
import { type Beginning, type SharedSlots, listSlots } from '../../records/slots.js';
import { turnId } from '../../records/identity.js';
import { listBodyRefs } from '../../memory/bodies.js';
import { itemNumber } from '../../records/memory/items.js';
import { joinedSessions, slotsIn, sortedRanges, type Prefix } from '../../memory/prefix.js';
import type { ConversationKey, Store } from '../../stores/store.js';
import type { ConversationDependencies } from '../dependencies.js';
import { copyClaims, listUnclaimed } from '../memory/claims.js';
import { MAX_CARRIED, readPrefix, resume } from './past.js';

/** Lives that one life reads from: of a longer line the oldest are copied after all. */
const MAX_SHARED = 16;

export async function openOrigin(dependencies: ConversationDependencies, { origin }: OpenOriginInput): Promise<OpenedOrigin> {
  const { store, key } = dependencies;
  const { kind, conversation, life, run, turn } = origin;
  const parent = await findParent(store, { ...key, conversation, life });
  const { past, prefix, shows } = await readPrefix(dependencies, { life: parent, run, turn });

  const shared = slotsIn(prefix.line);
  const inContext = new Set(slotsIn(prefix.context));
  const before = await store.lives.beginning(parent);
  const sources = listSources(parent, before, run, shared);
  for (const surplus of sources.slice(MAX_SHARED)) await copy(store, parent, key, surplus);
  const resumed = await resume(dependencies, prefix, shows);
  const episodes = toCarried(prefix);
  for (const { episode, ...place } of episodes) await store.episodes.add(key, { ...episode, ...place, epoch: 0 });
  const joined = joinedSessions(past, prefix.line, before?.joined);
  // Last: with it the life has a past, and that is whole.
  const beginning = {
    v: 1,
    kind,
    of: { conversation, life },
    turn: prefix.turn.number,
    shared: sources.slice(0, MAX_SHARED),
    archived: sortedRanges(shared.filter((slot) => !inContext.has(slot))),
    ...(joined.length > 0 && { joined }),
  } as const;
  await store.lives.begin(key, beginning);
  log.info('began with turns of another life', { of: conversation, turn: turnId(prefix.turn.number), turns: prefix.line.length });
  return {
    ...resumed,
    // Also past those that it does not begin with: what is summarized here has a new number.
    compactions: past.episodes.reduce((most, { id }) => Math.max(most, itemNumber(id)), 0),
    life: key.life,
    beginning,
    slot: shared.reduce((most, slot) => Math.max(most, slot), 0),
    session: prefix.turn.session,
    turns: prefix.line.length,
    inContext: prefix.context.length,
    episodes,
    window: await listUnclaimed(store, key, prefix.session),
    attributes: (await dependencies.hasSearchAttributes?.()) ? 'registered' : 'missing',
  };
}

/** A fork may be of another scope than its parent, and files are found by it. */
async function findParent({ kind, lives }: Pick<Store, 'kind' | 'lives'>, guess: ConversationKey): Promise<ConversationKey> {
  const { namespace, conversation, life } = guess;
  const known = kind === 'file' ? (await lives.list({ namespace, conversation })).filter((one) => one.life === life) : [];
  return known.find(({ scope }) => scope === guess.scope) ?? known[0] ?? guess;
}

/** Where the shared entries are: in the parent, and where the parent shares from. The parent comes first. */
function listSources(
  parent: ConversationKey,
  beginning: Beginning | undefined,
  run: string | undefined,
  shared: readonly number[],
): readonly SharedSlots[] {
  const left = new Set(shared);
  const inherited = (beginning?.shared ?? []).flatMap((source): SharedSlots[] => {
    const slots = listSlots(source.slots).filter((slot) => left.delete(slot));
    return slots.length === 0 ? [] : [{ ...source, slots: sortedRanges(slots) }];
  });
  const { conversation, life, scope } = parent;
  const fromParent = { conversation, life, scope, ...(run === undefined ? {} : { run }), slots: sortedRanges(left) };
  return left.size === 0 ? inherited : [fromParent, ...inherited];
}

/** Entries of a source that are shared, with their long texts, and the items that the parent reads there. */
async function copy(store: Store, from: ConversationKey, to: ConversationKey, { slots: ranges, ...source }: SharedSlots): Promise<void> {
  const slots = listSlots(ranges);
  const entries = (await store.entries.read(from, slots)).flatMap((entry) => entry ?? []);
  const [{ items }, atSource] = await Promise.all([store.items.list(from), store.items.list({ ...from, ...source })]);
  const there = new Set(atSource.items.map(({ id }) => id));
  const isHere = new Set(slots);
  const copied = items.filter(({ id, slot }) => there.has(id) && (slot === undefined || isHere.has(slot)));
  const refs = new Set([...entries.flatMap(listBodyRefs), ...copied.map(({ content }) => content.ref)]);
  for (const ref of refs) {
    const text = await store.bodies.get(from, ref);
    if (text !== undefined) await store.bodies.put(to, text);
  }
  await copyClaims(store, { ...from, ...source }, { to, slots: isHere });
  await store.entries.append(to, entries);
  await store.items.put(to, copied);
  const ids = copied.map(({ id }) => id);
  for (const [i, citation] of (await store.items.citations(from, ids)).entries()) {
    const id = ids[i];
    if (id !== undefined && citation !== undefined) await store.items.cite(to, id, citation);
  }
}

function toCarried({ episodes, turn }: Prefix): CarriedEpisode[] {
  return episodes.slice(0, MAX_CARRIED).map(({ session: _session, epoch: _epoch, supersedes: _supersedes, slots, ...episode }) => ({
    episode,
    session: turn.session,
    slots,
  }));
}
