/** `perdura context --why`: which compaction, truncation or trim took a turn out of the prompt. */
import { slotsOf } from '../../records/slots.js';
import { leavingsOf } from '../../conversation/replay/leaving.js';
import type { CliContext } from '../session/context.js';
import { replayedRuns } from '../debug/replayed-runs.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { findConversation } from '../args/find-conversation.js';
import { temporalCommand } from '../session/temporal-command.js';
import { toTerminalJson } from '../terminal/terminal-text.js';
import { toTurn } from '../args/turn-argument.js';
import { renderWhy, whyOf, type WhyAnswer } from '../views/why.js';
import { withClient, type Desk } from '../session/with-client.js';

export function whyForgotten(context: CliContext, given: string, which: string): Promise<number> {
  const turn = toTurn(which);
  return withClient(context, {}, async (desk) => {
    const { output, globals, temporal, slowly } = desk;
    const id = await findConversation(desk, given);
    const answer = await slowly(`replaying the history of ${id}`, answerOf(desk, id, turn));
    if (globals.output !== 'text') output.line(toTerminalJson(answer, globals.output === 'json' ? 2 : undefined));
    else {
      for (const line of renderWhy(answer, globals.timeFormat, Date.now())) output.draw(line);
      output.note(temporalCommand(temporal, ['workflow', 'show', '-w', id]));
    }
    return EXIT.ok;
  });
}

async function answerOf({ client, config }: Desk, id: string, turn: string): Promise<WhyAnswer> {
  const [all, { episodes }] = await Promise.all([client.history(id), client.memory(id)]);
  const entries = all.filter((entry) => entry.turn === turn);
  if (entries.length === 0)
    throw new CliError(`conversation ${id} has no ${turn}; \`perdura inspect ${id}\` shows the latest`, EXIT.notFound);
  const { runs, complete, problems } = await replayedRuns(client, id, config.cwd);
  const turns = new Map(all.map((entry) => [entry.slot, entry.turn]));
  const slots = new Set(entries.map(({ slot }) => slot));
  const causes = whyOf(turn, leavingsOf(runs, slots), episodes, (slot) => turns.get(slot));
  return { id, turn, entries: entries.length, inPrompt: await inPrompt(client, id, slots, causes), causes, complete, problems };
}

/** As the conversation says; where nobody answers for it, as what happened to it leaves it. */
async function inPrompt(
  { describe, context }: Desk['client'],
  id: string,
  slots: ReadonlySet<number>,
  causes: WhyAnswer['causes'],
): Promise<number> {
  const { state } = await describe(id);
  const index = state === 'running' ? await context(id).catch(() => undefined) : undefined;
  if (index) return index.chunks.flatMap(({ slots: ranges = [] }) => slotsOf(ranges)).filter((slot) => slots.has(slot)).length;
  const left = new Set(slots);
  for (const why of causes) for (const slot of why.slots) why.kind === 'returned' ? left.add(slot) : left.delete(slot);
  return left.size;
}
