/** The `truncate` step: says what leaves the prompt, and writes the notice that stands in its place. Done again it says the same. */
import type { TruncateInput, Truncated } from '../../conversation/activity-io/compaction-effects.js';
import type { Entry } from '../../records/message.js';
import { slotsOf, toRanges } from '../../records/slots.js';
import { selectTruncation } from '../../memory/compaction/truncation.js';
import { tokenCounterBy } from '../../models/token-counter.js';
import { readHealed } from './context.js';
import type { ActivityDependencies } from '../dependencies.js';
import { keyOf } from '../key.js';

export async function truncate(dependencies: ActivityDependencies, input: TruncateInput): Promise<Truncated> {
  const { identity, epoch, context, excess, currentTurn, notice, tokenizer } = input;
  const key = keyOf(identity);
  const entries = (await readHealed(dependencies, key, slotsOf(context))).filter((entry) => entry !== undefined);
  const { count } = await tokenCounterBy(tokenizer);
  const { dropped, tokens } = selectTruncation(entries, excess, currentTurn, count);
  const result = { life: identity.life, epoch, dropped: toRanges(dropped.map(({ slot }) => slot)), tokens, entries: dropped.length };
  if (dropped.length === 0) return result;
  const text =
    `[${dropped.length} earlier messages (about ${tokens} tokens) were left out of this prompt, because the context was full. ` +
    'They are kept in the traces, and become part of the next summary.]';
  // The time of what it stands for: another attempt writes the same.
  const said: Entry = { v: 1, ...notice, ts: dropped[0]?.ts ?? 0, message: { role: 'user', text } };
  await dependencies.store.entries.append(key, [said]);
  return { ...result, notice: said };
}
