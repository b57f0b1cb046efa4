/**
 * The `truncate` step: says what leaves the prompt, and writes the notice that replaces it. Long messages that can be read again
 * are cited first: these stay. Done again it says the same.
 */
import type { TruncateInput, Truncated } from '../../conversation/context/compaction-effects.js';
import { citedMessageTokens } from '../../conversation/context/citing.js';
import type { Entry } from '../../records/message.js';
import { listSlots, toRanges } from '../../records/slots.js';
import { withBodies } from '../../memory/bodies.js';
import { selectCites } from '../../memory/compaction/window.js';
import { namesGoal, describePins } from '../../memory/compaction/snapshot.js';
import { chosenTruncation, selectTruncation } from '../../memory/compaction/truncation.js';
import { entryTokens } from '../../memory/tokens.js';
import { tokenCounterBy } from '../../models/token-counter.js';
import type { ConversationDependencies } from '../dependencies.js';
import { hasMemoryChannel } from '../tools/tools-of.js';
import { readHealed } from './context.js';

/** Of what is too much: less is not worth its loss, and would cost another summary. */
const WORTH_LOSING = 0.1;
const NOTHING_CITED = { cites: [], saved: 0 } as const;

export async function truncate(dependencies: ConversationDependencies, input: TruncateInput): Promise<Truncated> {
  const { agentHash, epoch, context, cited, base, excess, currentTurn, chosen, notice, tokenizer } = input;
  const { store, key, identity } = dependencies;
  const [read, before = '', { count }, { config }] = await Promise.all([
    readHealed(dependencies, listSlots(context)),
    base === undefined ? undefined : store.bodies.get(key, base),
    tokenCounterBy(tokenizer),
    dependencies.agents(identity.agent, identity.scope, agentHash),
  ]);
  const entries = read.filter((entry) => entry !== undefined);
  const citing = { cited: new Set(listSlots(cited)), currentTurn: currentTurn ?? undefined };
  const countEntry = entryTokens(entries, { count, cited: citing.cited });
  const isReadable = !chosen && hasMemoryChannel(config, dependencies.tools);
  const { cites, saved } = isReadable ? selectCites(entries, excess, { ...citing, countEntry }) : NOTHING_CITED;
  const shown = (entry: Entry): number => (cites.includes(entry) ? citedMessageTokens() : countEntry(entry));
  const found = chosen
    ? chosenTruncation(entries, new Set(listSlots(chosen.slots)), currentTurn, shown)
    : selectTruncation(entries, excess - saved, currentTurn, shown);
  const { dropped, tokens } = found.tokens + saved < excess * WORTH_LOSING ? { dropped: [], tokens: 0 } : found;
  const result = {
    ...{ life: key.life, epoch, dropped: toRanges(dropped.map(({ slot }) => slot)), tokens: tokens + saved, entries: dropped.length },
    ...(cites.length > 0 && { cited: toRanges(cites.map(({ slot }) => slot)) }),
  };
  if (dropped.length === 0) return result;
  const leaving = await Promise.all(dropped.map((entry) => withBodies(store, key, entry)));
  const pins = describePins(leaving, !namesGoal(before));
  const text =
    `[${dropped.length} earlier messages (about ${tokens} tokens) were left out of this prompt, ${chosen ? 'as the application asked' : 'because the context was full'}. ` +
    `They are kept in the traces, and become part of the next summary.]${pins}`;
  // The time of what it stands for: another attempt writes the same.
  const standIn: Entry = { v: 1, ...notice, ts: dropped[0]?.ts ?? 0, message: { role: 'user', text, from: 'notice' } };
  await store.entries.append(key, [standIn]);
  return { ...result, notice: standIn };
}
