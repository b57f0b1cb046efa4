/** `perdura context`: the meter of what a model call sees; `--compact` and `--undo` change it. */
import type { CliContext } from '../session/context.js';
import { EXIT, CliError } from '../terminal/exit.js';
import { findConversation, findRunning } from '../args/find-conversation.js';
import { toTerminalJson } from '../terminal/terminal-text.js';
import { outcomeInWords, renderChunks, renderMeter } from '../views/context-meter.js';
import { withClient, type CommandSession, temporalCommand } from '../session/with-client.js';
import { listSlots } from '../../records/slots.js';
import { tokenCounterBy } from '../../models/token-counter.js';
import { chunksOf } from '../../insight/scene.js';
import { knownTurns } from '../../insight/known-turns.js';
import { toTurn } from '../args/values.js';
import { renderKnown } from '../views/known-turns.js';
import { loadMeasure } from '../views/table.js';
import { renderWhy } from '../views/why.js';

export interface ContextOptions {
  readonly compact?: boolean;
  readonly undo?: boolean;
  readonly truncate?: boolean;
  /** Of --compact or --truncate: these alone. `true`: list them. */
  readonly chunks?: true | readonly string[];
  /** A turn. */
  readonly why?: string;
}

export function context(cli: CliContext, given: string, { compact, undo, truncate, chunks, why }: ContextOptions): Promise<number> {
  const chosen = chunksAsked(chunks, compact === true || truncate === true);
  if (why !== undefined) return whyForgotten(cli, given, why);
  return withClient(cli, { needsWorker: true }, async (desk) => {
    if (compact === true) return change(desk, given, chosen ? 'triggerCompaction' : 'compact', chosen);
    if (undo === true) return change(desk, given, 'undoCompaction');
    if (truncate === true) return change(desk, given, chosen ? 'executeTruncation' : 'truncate', chosen);
    const id = await findConversation(desk, given);
    if (chunks !== undefined) return listChunks(desk, id);
    const index = await desk.withSlowNotice(`asking ${id} for its context`, desk.client.context(id));
    if (desk.globals.output !== 'text') desk.output.line(toTerminalJson(index, indentOf(desk)));
    else {
      const [entries, { episodes }] = await desk.withSlowNotice(
        `reading ${id}`,
        Promise.all([desk.client.history(id), desk.client.memory(id)]),
      );
      for (const line of renderMeter(index, desk.output.width())) desk.output.draw(line);
      for (const line of renderKnown(id, knownTurns(index, entries, episodes))) desk.output.draw(line);
      desk.output.explain(temporalCommand(desk.temporal, ['workflow', 'query', '--name', 'context', '-w', id]));
    }
    return EXIT.ok;
  });
}

/** Undefined where none are named. */
function chunksAsked(chunks: ContextOptions['chunks'], changes: boolean): readonly string[] | undefined {
  if (chunks === true && changes)
    throw new CliError('name the chunks behind --chunks, such as chunk_3,chunk_4; `perdura context ID --chunks` lists them', EXIT.usage);
  if (chunks === undefined || chunks === true) return undefined;
  if (!changes) throw new CliError('say what becomes of these chunks: --compact or --truncate', EXIT.usage);
  return chunks;
}

/** What a step's result, --compact and --truncate call by these ids. */
async function listChunks({ client, output, globals, withSlowNotice }: CommandSession, id: string): Promise<number> {
  const read = Promise.all([client.context(id), client.control(id)]);
  const [index, control] = await withSlowNotice(`asking ${id} for its context`, read);
  const slots = index.chunks.flatMap(({ slots: ranges = [] }) => listSlots(ranges));
  const entries = await withSlowNotice(`reading ${id}`, client.entries(id, slots));
  const { count } = await tokenCounterBy(index.tokenizer);
  const all = chunksOf(index, new Map(entries.map((entry) => [entry.slot, entry])), control, count);
  const flow = all
    .filter(({ kind }) => kind === 'WORKING_FLOW')
    .map(({ id: chunk, turn, role, tokens, words }) => ({ chunk, turn, role, tokens, words }));
  if (globals.output !== 'text') output.line(toTerminalJson({ id, chunks: flow }, globals.output === 'json' ? 2 : undefined));
  else if (flow.length === 0) output.say('the context has no messages');
  else for (const line of renderChunks(flow, { width: output.width(), measure: await loadMeasure() })) output.draw(line);
  return EXIT.ok;
}

const DOING = {
  compact: 'compacting',
  triggerCompaction: 'compacting chunks of',
  undoCompaction: 'taking back the compaction of',
  truncate: 'truncating',
  executeTruncation: 'leaving chunks out of',
} as const;

async function change(desk: CommandSession, given: string, name: keyof typeof DOING, chunks: readonly string[] = []): Promise<number> {
  const { client, output, globals, temporal, withSlowNotice } = desk;
  const id = await findRunning(desk, given);
  const outcome = await withSlowNotice(`${DOING[name]} ${id}`, client[name](id, chunks));
  const exitCode = outcome.kind === 'failed' ? EXIT.failed : EXIT.ok;
  if (globals.output !== 'text') {
    output.line(toTerminalJson({ id, outcome }, indentOf(desk)));
    return exitCode;
  }
  if (outcome.kind === 'failed') output.problem(outcomeInWords(outcome));
  else output.say(outcomeInWords(outcome));
  for (const line of renderMeter(await client.context(id), output.width())) output.draw(line);
  const input = chunks.length === 0 ? [] : ['--input', JSON.stringify({ chunks })];
  output.explain(temporalCommand(temporal, ['workflow', 'update', 'execute', '--name', name, '-w', id, ...input]));
  return exitCode;
}

function indentOf({ globals }: CommandSession): number | undefined {
  return globals.output === 'json' ? 2 : undefined;
}

/** `perdura context --why`: which compaction, truncation or trim took a turn out of the prompt. */
function whyForgotten(context: CliContext, given: string, which: string): Promise<number> {
  const turn = toTurn(which);
  return withClient(context, {}, async (desk) => {
    const { output, globals, temporal, withSlowNotice } = desk;
    const id = await findConversation(desk, given);
    const answer = await withSlowNotice(`replaying the history of ${id}`, desk.client.why(id, turn));
    if (globals.output !== 'text') output.line(toTerminalJson(answer, globals.output === 'json' ? 2 : undefined));
    else {
      for (const line of renderWhy(answer, globals.timeFormat, Date.now())) output.draw(line);
      output.explain(temporalCommand(temporal, ['workflow', 'show', '-w', id]));
    }
    return EXIT.ok;
  });
}
