/** `perdura debug mode`, `step`, `break`, `queue` and `dispatch`: a conversation that is stepped through from the command line. */
import { Argument, Option } from 'commander';
import type { QueueEdit } from '../../conversation/protocol/contract.js';
import {
  readAppEvent,
  type AppEventOutcome,
  type Breakpoints,
  type ControlMode,
  type ControlStatus,
  type ControlView,
  type StepResult,
} from '../../conversation/protocol/stepping.js';
import { errorMessage } from '../../platform/errors.js';
import type { JsonValue } from '../../records/message.js';
import { findRunning } from '../args/find-conversation.js';
import { parseAmount, parseCount, readText, type Sources } from '../args/values.js';
import { CONVERSATION, type Answer, type CommandRow, type CommandSession } from '../session/command.js';
import { queryWords, updateWords } from '../session/connect.js';
import { canAsk, confirm } from '../terminal/input.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { toTerminalLine } from '../terminal/terminal-text.js';
import { describeQueued, renderControl, renderQueue, renderStep } from '../views/state.js';
import { formatQuantity } from '../views/quantities.js';

interface StepOptions {
  readonly count: number;
  readonly into?: boolean;
  readonly over?: boolean;
}

interface BreakOptions {
  readonly tool?: readonly string[];
  readonly event?: readonly string[];
  readonly onError?: boolean;
  readonly cost?: number;
  readonly none?: boolean;
}

interface QueueOptions {
  readonly drop?: string;
  readonly move?: string;
  readonly before?: string;
  readonly clear?: boolean;
  readonly yes?: boolean;
}

interface DispatchOptions {
  readonly eventId?: string;
  readonly wait?: boolean;
}

export const STEPPING: readonly CommandRow[] = [
  {
    name: 'debug mode',
    description: 'show or set the mode: auto runs by itself, stepping waits for each step',
    args: [
      CONVERSATION,
      new Argument('[mode]', 'auto drains the queue; stepping lets what is under way end').choices(['auto', 'stepping']),
    ],
    async run(frame, given: string, mode: ControlMode | undefined): Promise<Answer> {
      const session = await frame.open({ needsWorker: true });
      const { client, withSlowNotice } = session;
      const id = await findRunning(session, given);
      if (mode === undefined) return answerControl(id, await withSlowNotice(`asking ${id} for its mode`, client.control(id)));
      const control = await withSlowNotice(`setting ${id} to ${mode}`, client.setMode(id, mode));
      return answerControl(id, control, updateWords('setMode', id, { mode }));
    },
  },
  {
    name: 'debug step',
    description: 'do one step in stepping mode, and print what it was',
    args: [CONVERSATION],
    options: [
      ['--count <count>', 'so many steps, or until there is nothing to do', parseCount, 1],
      new Option('--into', 'the next step of a sub-agent that holds, before that of the conversation').conflicts('over'),
      ['--over', 'sub-agents go on until they have reported, wait for a person or stop at a breakpoint; then all hold again'],
    ],
    help: `Sub-agents have the mode and the breakpoints of the conversation that started them, and one that stops at a breakpoint stops all of them.
Without --into or --over a step is the next thing of the conversation, and where it has none, that of the first sub-agent that holds;
\`perdura debug step CHILD\` steps a certain one. \`perdura debug mode\`, \`debug inspect\` and \`debug\` show which of them hold.`,
    async run(frame, given: string, { count, into, over }: StepOptions): Promise<Answer> {
      const scope = into === true ? 'into' : over === true ? 'over' : undefined;
      const session = await frame.open({
        needsWorker: true,
        whenInterrupted: 'stopped waiting; a step that has begun is done all the same',
      });
      const { client, output, globals, withSlowNotice, signal } = session;
      const id = await findRunning(session, given);
      const steps: StepResult[] = [];
      while (steps.length < count && steps.at(-1)?.did !== 'nothing') {
        const step = await withSlowNotice(`stepping ${id}`, client.step(id, { scope, signal }));
        steps.push(step);
        if (globals.output === 'text') for (const line of renderStep(step)) output.draw(line);
      }
      return { data: { id, steps }, temporal: updateWords('step', id, scope === undefined ? undefined : { scope }) };
    },
  },
  {
    name: 'debug break',
    description: 'add a breakpoint; without options, show them',
    args: [CONVERSATION],
    options: [
      ['--tool <name>', 'before a tool of this name runs; several times for several', addName],
      ['--event <type>', 'before an event of this type is taken: message, reset, or one of your application; several times', addName],
      ['--on-error', 'when a model call, a tool or a turn fails'],
      ['--cost <usd>', 'once, when it has cost so much, in US dollars', parseAmount],
      ['--none', 'take away those that there are'],
    ],
    async run(frame, given: string, options: BreakOptions): Promise<Answer> {
      const session = await frame.open({ needsWorker: true });
      const { client, withSlowNotice } = session;
      const id = await findRunning(session, given);
      const before = await withSlowNotice(`asking ${id} for its breakpoints`, client.control(id));
      if (Object.keys(options).length === 0) return answerControl(id, before);
      const breakpoints = addBreakpoints(options.none === true ? {} : before.breakpoints, options);
      const control = await withSlowNotice(`setting the breakpoints of ${id}`, client.setBreakpoints(id, breakpoints));
      return answerControl(id, control, updateWords('setBreakpoints', id, breakpoints));
    },
  },
  {
    name: 'debug queue',
    description: 'show the queue of a conversation, and change it',
    args: [CONVERSATION],
    options: [
      new Option('--drop <event>', 'take this one out, such as qevt_000003').conflicts(['move', 'clear']),
      new Option('--move <event>', 'move this one, to the end or where --before names').conflicts('clear'),
      ['--before <event>', 'of --move: the event that it goes before'],
      ['--clear', 'take all of them out'],
      ['-y, --yes', 'do not ask'],
    ],
    async run(frame, given: string, options: QueueOptions): Promise<Answer> {
      const edit = toEdit(options);
      const session = await frame.open({ needsWorker: true });
      const { client, withSlowNotice } = session;
      const id = await findRunning(session, given);
      if (edit && edit.op !== 'move' && options.yes !== true) await confirmEdit(session, id, edit);
      const queue = edit
        ? await withSlowNotice(`changing the queue of ${id}`, client.editQueue(id, edit))
        : await withSlowNotice(`reading the queue of ${id}`, client.queue(id));
      return {
        data: { id, queue },
        draw: ({ timeFormat, now }) => renderQueue(queue, timeFormat, now),
        temporal: edit ? updateWords('editQueue', id, edit) : queryWords('queue', id),
      };
    },
  },
  {
    name: 'debug dispatch',
    description: 'hand a conversation an event of your application, for its reducer',
    args: [
      CONVERSATION,
      ['<type>', 'the event\'s type: letters, digits, "_", "." and "-"'],
      ['[json]', 'its payload; "-" reads it from standard input'],
    ],
    options: [
      ['--event-id <id>', 'its id: the same twice is one event'],
      ['--wait', 'for what its reducer makes of it'],
    ],
    help: `The event waits in the conversation's queue and is reduced between turns and between the steps of one, by the reducer of that type in the
workflows of the worker. One without a reducer is counted; \`perdura debug inspect ID\` names it.

  perdura debug dispatch my-chat ticket.updated '{"id": 7, "state": "open"}'
  echo '{"id": 7}' | perdura debug dispatch my-chat ticket.closed -`,
    async run(frame, given: string, type: string, json: string | undefined, { eventId, wait = false }: DispatchOptions): Promise<Answer> {
      const payload = await readPayload(frame.surroundings, json);
      const event = { ...(eventId === undefined ? {} : { id: eventId }), type, ...(payload === undefined ? {} : { payload }) };
      const read = readAppEvent(event);
      if (!read.ok) throw new CliError(`cannot dispatch ${type} to ${given}: ${read.reason}`, EXIT.usage);
      const session = await frame.open({ needsWorker: true, whenInterrupted: 'stopped waiting; the event is reduced all the same' });
      const id = await findRunning(session, given);
      const handing = session.client.dispatch(id, event, { wait, signal: session.signal });
      const { id: handed, position, result } = await session.withSlowNotice(`handing ${type} to ${id}`, handing);
      const behind = position === 0 ? '' : `, behind ${position} others`;
      return {
        data: { conversation: id, id: handed, type, position, ...(result && { result }) },
        text: handed,
        say: result
          ? toTerminalLine(describeReduction(type, result), 600)
          : `${type} waits in the queue of ${id}${behind}; \`perdura debug inspect ${id}\` shows one that no reducer takes`,
        ...(!result && { temporal: updateWords('dispatch', id, { ...event, id: handed }) }),
      };
    },
  },
];

function answerControl(id: string, control: ControlStatus | ControlView, temporal = queryWords('control', id)): Answer {
  return { data: { id, ...control }, draw: () => renderControl(control), temporal };
}

function addName(name: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), name];
}

/** Adds the named ones to the present ones. */
function addBreakpoints(before: Breakpoints, { tool = [], event = [], onError, cost }: BreakOptions): Breakpoints {
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

function toEdit({ drop, move, before, clear }: QueueOptions): QueueEdit | undefined {
  if (before !== undefined && move === undefined)
    throw new CliError('--before is for --move: it names the event that the moved one goes before', EXIT.usage);
  if (drop !== undefined) return { op: 'drop', id: drop };
  if (move !== undefined) return { op: 'move', id: move, before: before ?? null };
  return clear === true ? { op: 'clear' } : undefined;
}

async function confirmEdit({ client, surroundings }: CommandSession, id: string, edit: QueueEdit): Promise<void> {
  const dropped = edit.op === 'drop' ? edit.id : undefined;
  const what = dropped === undefined ? 'clear the queue' : `drop ${dropped}`;
  if (!canAsk(surroundings)) throw new CliError(`will not ${what} of ${id} unasked: add --yes`, EXIT.usage);
  const waiting = await client.queue(id);
  const named = waiting.find((queued) => queued.id === dropped);
  const detail =
    dropped === undefined ? ` (${formatQuantity(waiting.length, 'event')})` : named === undefined ? '' : ` (${describeQueued(named)})`;
  const message = `${what.replace(/^./, (letter) => letter.toUpperCase())}${detail} of ${id}? Clients that wait for an answer get a refusal.`;
  if (!(await confirm(surroundings, message))) throw new CliError(`the queue of ${id} was left as it is`, EXIT.interrupted);
}

function describeReduction(type: string, result: AppEventOutcome): string {
  switch (result.kind) {
    case 'reduced': {
      const { addedChunks, removedChunkIds, contextTokens } = result;
      return `reduced: ${addedChunks.length} chunks added, ${removedChunkIds.length} removed, ${contextTokens.after} tokens`;
    }
    case 'unreduced':
      return `nothing reduces ${type} here: the workflows of the worker have no reducer of that type`;
    case 'parked':
      return `parked: ${result.error}`;
    case 'not-known':
      return 'what became of it is not known any more: it was taken out of the queue, or reduced long ago';
  }
}

async function readPayload(sources: Sources, json: string | undefined): Promise<JsonValue | undefined> {
  if (json === undefined) return undefined;
  const text = await readText(sources, json);
  try {
    return JSON.parse(text) as JsonValue;
  } catch (cause) {
    throw new CliError(`the payload is not JSON: ${errorMessage(cause)}. A text stands in its quotes: '"like this"'`, EXIT.usage);
  }
}
