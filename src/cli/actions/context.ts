/** `perdura context`: the meter of what a model call sees; `--compact` and `--undo` change it. */
import type { CliContext } from '../session/context.js';
import { EXIT } from '../terminal/exit.js';
import { findConversation, findRunning } from '../args/find-conversation.js';
import { temporalCommand } from '../session/temporal-command.js';
import { toTerminalJson } from '../terminal/terminal-text.js';
import { outcomeInWords, renderMeter } from '../views/context-meter.js';
import { withClient, type Desk } from '../session/with-client.js';

export interface ContextOptions {
  readonly compact?: boolean;
  readonly undo?: boolean;
  readonly truncate?: boolean;
  /** A turn. */
  readonly why?: string;
}

export async function context(cli: CliContext, given: string, { compact, undo, truncate, why }: ContextOptions): Promise<number> {
  if (why !== undefined) {
    // Replays history, and so loads what a worker does.
    const { whyForgotten } = await import('./why.js');
    return whyForgotten(cli, given, why);
  }
  return withClient(cli, { needsWorker: true }, async (desk) => {
    if (compact === true) return change(desk, given, 'compact');
    if (undo === true) return change(desk, given, 'undoCompaction');
    if (truncate === true) return change(desk, given, 'truncate');
    const id = await findConversation(desk, given);
    const index = await desk.slowly(`asking ${id} for its context`, desk.client.context(id));
    if (desk.globals.output !== 'text') desk.output.line(toTerminalJson(index, indentOf(desk)));
    else {
      for (const line of renderMeter(index, desk.output.width())) desk.output.draw(line);
      desk.output.note(temporalCommand(desk.temporal, ['workflow', 'query', '--name', 'context', '-w', id]));
    }
    return EXIT.ok;
  });
}

const DOING = { compact: 'compacting', undoCompaction: 'taking back the compaction of', truncate: 'truncating' } as const;

async function change(desk: Desk, given: string, name: 'compact' | 'undoCompaction' | 'truncate'): Promise<number> {
  const { client, output, globals, temporal, slowly } = desk;
  const id = await findRunning(desk, given);
  const outcome = await slowly(`${DOING[name]} ${id}`, client[name](id));
  const exitCode = outcome.kind === 'failed' ? EXIT.failed : EXIT.ok;
  if (globals.output !== 'text') {
    output.line(toTerminalJson({ id, outcome }, indentOf(desk)));
    return exitCode;
  }
  if (outcome.kind === 'failed') output.problem(outcomeInWords(outcome));
  else output.say(outcomeInWords(outcome));
  for (const line of renderMeter(await client.context(id), output.width())) output.draw(line);
  output.note(temporalCommand(temporal, ['workflow', 'update', 'execute', '--name', name, '-w', id]));
  return exitCode;
}

function indentOf({ globals }: Desk): number | undefined {
  return globals.output === 'json' ? 2 : undefined;
}
