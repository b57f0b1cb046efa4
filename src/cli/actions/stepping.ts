/** `perdura mode`, `step`, `break` and `queue`: a conversation that is stepped through, from the command line. */
import type { QueueEdit } from '../../conversation/protocol/contract.js';
import type { CliContext } from '../session/context.js';
import { canAsk, confirm } from '../terminal/ask.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { findRunning } from '../args/find-conversation.js';
import { toTerminalJson } from '../terminal/terminal-text.js';
import { queuedInWords, renderControl, renderQueue, renderStep } from '../views/control.js';
import { withClient, type CommandSession, temporalCommand } from '../session/with-client.js';
import type { Breakpoints, ControlMode, ControlStatus, ControlView, StepResult } from '../../conversation/protocol/stepping.js';

export function mode(context: CliContext, given: string, wanted: ControlMode | undefined): Promise<number> {
  return withClient(context, { needsWorker: true }, async (desk) => {
    const id = await findRunning(desk, given);
    if (wanted === undefined) return showControl(desk, id, await desk.withSlowNotice(`asking ${id} for its mode`, desk.client.control(id)));
    const control = await desk.withSlowNotice(`setting ${id} to ${wanted}`, desk.client.setMode(id, wanted));
    return showControl(desk, id, control, [
      'workflow',
      'update',
      'execute',
      '--name',
      'setMode',
      '-w',
      id,
      '--input',
      JSON.stringify({ mode: wanted }),
    ]);
  });
}

export interface StepOptions {
  readonly count: number;
  readonly into?: boolean;
  readonly over?: boolean;
}

export function step(context: CliContext, given: string, { count, into, over }: StepOptions): Promise<number> {
  const scope = into === true ? 'into' : over === true ? 'over' : undefined;
  const whenInterrupted = 'stopped waiting; a step that has begun is done all the same';
  return withClient(context, { needsWorker: true, whenInterrupted }, async (desk) => {
    const { client, output, globals, temporal, withSlowNotice, signal } = desk;
    const id = await findRunning(desk, given);
    const words = ['workflow', 'update', 'execute', '--name', 'step', '-w', id];
    const steps: StepResult[] = [];
    for (let n = 0; n < count; n++) {
      const result = await withSlowNotice(`stepping ${id}`, client.step(id, { scope, signal }));
      steps.push(result);
      if (globals.output === 'jsonl') output.line(toTerminalJson({ id, ...result }));
      if (globals.output === 'text') for (const line of renderStep(result)) output.draw(line);
      if (result.did === 'nothing') break;
    }
    if (globals.output === 'json') output.line(toTerminalJson({ id, steps }, 2));
    if (globals.output === 'text')
      output.explain(temporalCommand(temporal, [...words, ...(scope === undefined ? [] : ['--input', JSON.stringify({ scope })])]));
    return EXIT.ok;
  });
}

export interface BreakOptions {
  readonly tool?: readonly string[];
  readonly event?: readonly string[];
  readonly onError?: boolean;
  readonly cost?: number;
  readonly none?: boolean;
}

/** What is named is added to what there is; `--none` takes away what there was. */
export function breakAt(context: CliContext, given: string, options: BreakOptions): Promise<number> {
  return withClient(context, { needsWorker: true }, async (desk) => {
    const id = await findRunning(desk, given);
    const before = await desk.withSlowNotice(`asking ${id} for its breakpoints`, desk.client.control(id));
    if (Object.keys(options).length === 0) return showControl(desk, id, before);
    const breakpoints = withMore(options.none === true ? {} : before.breakpoints, options);
    const control = await desk.withSlowNotice(`setting the breakpoints of ${id}`, desk.client.setBreakpoints(id, breakpoints));
    const words = ['workflow', 'update', 'execute', '--name', 'setBreakpoints', '-w', id, '--input', JSON.stringify(breakpoints)];
    return showControl(desk, id, control, words);
  });
}

export function withMore(before: Breakpoints, { tool = [], event = [], onError, cost }: BreakOptions): Breakpoints {
  const tools = [...new Set([...(before.tools ?? []), ...tool])];
  const events = [...new Set([...(before.events ?? []), ...event])];
  const costUsd = cost ?? before.costUsd;
  return {
    ...(tools.length > 0 && { tools }),
    ...(events.length > 0 && { events }),
    ...((onError ?? before.onError) === true && { onError: true }),
    ...(costUsd !== undefined && { costUsd }),
  };
}

export interface QueueOptions {
  readonly drop?: string;
  readonly move?: string;
  readonly before?: string;
  readonly clear?: boolean;
  readonly yes?: boolean;
}

export function queue(context: CliContext, given: string, options: QueueOptions): Promise<number> {
  const edit = toEdit(options);
  return withClient(context, { needsWorker: true }, async (desk) => {
    const { client, output, globals, temporal, withSlowNotice } = desk;
    const id = await findRunning(desk, given);
    if (edit && edit.op !== 'move' && options.yes !== true) await confirmEdit(desk, id, edit);
    const waiting = edit
      ? await withSlowNotice(`changing the queue of ${id}`, client.editQueue(id, edit))
      : await withSlowNotice(`reading the queue of ${id}`, client.queue(id));
    if (globals.output !== 'text') {
      if (globals.output === 'json') output.line(toTerminalJson({ id, queue: waiting }, 2));
      else for (const queued of waiting) output.line(toTerminalJson({ conversation: id, ...queued }));
      return EXIT.ok;
    }
    for (const line of renderQueue(waiting, globals.timeFormat, Date.now())) output.draw(line);
    const words = edit ? ['update', 'execute', '--name', 'editQueue', '--input', JSON.stringify(edit)] : ['query', '--name', 'queue'];
    output.explain(temporalCommand(temporal, ['workflow', ...words, '-w', id]));
    return EXIT.ok;
  });
}

function toEdit({ drop, move, before, clear }: QueueOptions): QueueEdit | undefined {
  if (before !== undefined && move === undefined)
    throw new CliError('--before is for --move: it says before which event it goes', EXIT.usage);
  if (drop !== undefined) return { op: 'drop', id: drop };
  if (move !== undefined) return { op: 'move', id: move, before: before ?? null };
  return clear === true ? { op: 'clear' } : undefined;
}

async function confirmEdit({ client, surroundings }: CommandSession, id: string, edit: QueueEdit): Promise<void> {
  const what = edit.op === 'clear' ? 'clear the queue' : `drop ${edit.op === 'drop' ? edit.id : ''}`;
  if (!canAsk(surroundings)) throw new CliError(`will not ${what} of ${id} unasked: add --yes`, EXIT.usage);
  const waiting = await client.queue(id);
  const named = edit.op === 'drop' ? waiting.find((queued) => queued.id === edit.id) : undefined;
  const message =
    edit.op === 'clear'
      ? `Clear the queue of ${id}? ${waiting.length} ${waiting.length === 1 ? 'event goes' : 'events go'}, and who waits for an answer is told.`
      : `Drop ${edit.op === 'drop' ? edit.id : ''}${named === undefined ? '' : ` (${queuedInWords(named)})`} of ${id}? Who waits for it is told.`;
  if (!(await confirm(surroundings, message))) throw new CliError(`the queue of ${id} was left as it is`, EXIT.interrupted);
}

function showControl(
  { output, globals, temporal }: CommandSession,
  id: string,
  control: ControlStatus | ControlView,
  words?: readonly string[],
): number {
  if (globals.output !== 'text') {
    output.line(toTerminalJson({ id, ...control }, globals.output === 'json' ? 2 : undefined));
    return EXIT.ok;
  }
  for (const line of renderControl(control)) output.draw(line);
  output.explain(temporalCommand(temporal, words ?? ['workflow', 'query', '--name', 'control', '-w', id]));
  return EXIT.ok;
}
