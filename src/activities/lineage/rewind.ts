/**
 * The `rewind` step: which turns go, what the context becomes, and a branch that keeps what was cut. Every write counts once. What the
 * conversation sees changes only with the result.
 */
import { log } from '@temporalio/activity';
import type { CarriedEpisode, RewindInput, Rewound } from '../../conversation/lineage/lineage-effects.js';
import type { Cut } from '../../records/lives.js';
import { turnNumber } from '../../records/identity.js';
import { listSlots } from '../../records/slots.js';
import { episodicId } from '../../records/memory/items.js';
import { currentLine, slotsIn, sortedRanges, groupTurns, type Beforehand } from '../../memory/prefix.js';
import { refolded } from '../../memory/compaction/snapshot.js';
import type { ConversationDependencies } from '../dependencies.js';
import { MAX_CARRIED, readBefore, readPrefix, resume } from './past.js';

export async function rewind(dependencies: ConversationDependencies, input: RewindInput): Promise<Rewound> {
  const { store, key } = dependencies;
  const { requestId, move, to, slot, at } = input;
  const read = input.before ? readBefore : readPrefix;
  const { past, prefix, shows } = await read(dependencies, { life: key, run: 'latest', turn: to });

  const resumed = await resume(dependencies, prefix, { ...shows, ...(input.line !== undefined && { line: input.line }) });
  const kept = new Set(slotsIn(prefix.line));
  const waiting = new Set(listSlots(input.waiting));
  // As it was before this rewind: an attempt before this one may have written its cut.
  const others = past.cuts.filter(({ id }) => id !== requestId);
  const now = currentLine(past.entries, others);
  const gone = now.filter(({ entries }) => !entries.every((entry) => kept.has(entry.slot) || waiting.has(entry.slot)));
  const slots = slotsIn(gone).filter((each) => !waiting.has(each) && !kept.has(each));
  const { turn } = prefix;
  const named = groupTurns(past.entries).find(({ number }) => number === turnNumber(to));
  const isSessionKept = prefix.session.length > 0;
  const goesOn = isSessionKept ? turn?.session : named?.session;
  // A session that has ended is not gone on with under its number.
  const session = (goesOn ?? 0) < input.session ? input.session + 1 : input.session;
  // Back into a branch nothing may be cut, and it is another line all the same.
  const leaves = slots.length > 0 || session !== input.session || !now.some(({ number }) => number === turn?.number);
  const cut: Cut | null = leaves
    ? {
        v: 1,
        id: requestId,
        branch: input.branch,
        to: turn?.number ?? 0,
        begun: turn?.begun ?? 0,
        since: turn?.ended ?? 0,
        slot,
        at,
        // None: what comes after is of a session that begins anew.
        session: isSessionKept ? session : 0,
        slots: sortedRanges(slots),
      }
    : null;
  if (cut) {
    await store.lives.cut(key, cut);
    await store.entries.archive(key, cut.slots, move);
  }
  await store.entries.restore(key, resumed.context, move);
  const episodes = session === input.session ? [] : toCarried(prefix, input.compactions, session);
  for (const { episode, ...place } of episodes) await store.episodes.add(key, { ...episode, ...place, epoch: 0 });
  log.info('rewound', { to, ...(input.before && { before: true }), turns: gone.length });
  return {
    ...resumed,
    life: key.life,
    cut,
    turns: gone.length,
    session,
    episodes,
    compactions: input.compactions + episodes.length,
  };
}

/** For the session that begins, under new numbers. */
function toCarried({ episodes }: Beforehand, compactions: number, session: number): CarriedEpisode[] {
  const shown = episodes.slice(0, MAX_CARRIED).reverse();
  const newIds = new Map(shown.map(({ id }, i) => [id, episodicId(compactions + 1 + i)]));
  return shown.map(({ session: _session, epoch: _epoch, supersedes: _supersedes, slots, ...episode }, i) => ({
    episode: { ...episode, id: episodicId(compactions + 1 + i), ...(episode.fold && { fold: refolded(episode.fold, newIds) }) },
    session,
    slots,
  }));
}
