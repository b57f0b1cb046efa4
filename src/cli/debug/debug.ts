/** `perdura debug`: a conversation on a whole screen, live where it runs, from its history where it has ended or a moment is named. */
import type { ReadStream, WriteStream } from 'node:tty';
import { createPast, type Past } from '../../conversation/replay/past.js';
import type { Entry } from '../../records/message.js';
import { turnId } from '../../records/identity.js';
import type { CliContext } from '../session/context.js';
import { summaryOf } from '../../insight/scene.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { findConversation } from '../args/find-conversation.js';
import { onTermination } from '../terminal/interrupts.js';
import { replayedRuns } from './replayed-runs.js';
import { toTerminalJson } from '../terminal/terminal-text.js';
import { toTurn } from '../args/values.js';
import { eventInWords } from '../../insight/event-words.js';
import { withClient, type CommandSession } from '../session/with-client.js';
import { errorMessage } from '../../platform/errors.js';

export interface DebugOptions {
  /** A turn. */
  readonly at?: string;
}

export function debug(context: CliContext, given: string, { at }: DebugOptions): Promise<number> {
  const turn = at === undefined ? undefined : toTurn(at);
  const isText = context.globals().output === 'text';
  const { input, stdout } = context.surroundings;
  if (isText && !(input.isTTY === true && stdout.isTTY === true)) {
    throw new CliError(
      `debug needs a terminal; \`perdura debug ${given} -o json\` prints the events and the states after them`,
      EXIT.usage,
    );
  }
  return withClient(context, {}, async (desk) => {
    const id = await findConversation(desk, given);
    const { state } = await desk.client.describe(id);
    if (isText && turn === undefined && state === 'running') return live(desk, id);
    const { past, complete, problems } = await desk.withSlowNotice(`replaying the history of ${id}`, pastOf(desk, id));
    const from = turn === undefined ? undefined : past.positionOf(turn);
    if (turn !== undefined && from === undefined) throw new CliError(noSuchTurn(id, turn, past), EXIT.notFound);
    if (!isText) return print(desk, id, past, from ?? 0, { complete, problems });
    const entries = await readEntries(desk, id, past);
    const notice = [
      state === 'running' ? 'it runs on: this is its past, as of now' : `it has ended (${state})`,
      ...(complete ? [] : ['earlier runs have passed their retention']),
      ...problems.map((problem) => `a run cannot be replayed with this version: ${problem}`),
    ].join(' · ');
    const { debugPast } = await import('./debug-past.js');
    return untilTermination(desk, async (own) => {
      await debugPast(own, id, past, entries, { ...screenOf(desk), from: from ?? past.last, notice });
      return EXIT.ok;
    });
  });
}

async function live(desk: CommandSession, id: string): Promise<number> {
  const { debugLive } = await import('./debug-live.js');
  return untilTermination(desk, async (own) => {
    const { mode, ended } = await debugLive(own, id, screenOf(desk));
    if (ended) own.output.note(`${id} has ended; \`perdura debug ${id}\` shows every state that it was in`);
    else if (mode === 'stepping')
      own.output.say(`${id} stays in stepping: it waits for \`perdura step ${id}\`, or \`perdura mode ${id} auto\``);
    else own.output.note(`${id} stays in auto: it goes on by itself`);
    return EXIT.ok;
  });
}

/** Known to be a terminal: nothing else is let in. */
function screenOf({ surroundings: { input, stdout } }: CommandSession): { readonly input: ReadStream; readonly screen: WriteStream } {
  return { input: input as ReadStream, screen: stdout as WriteStream };
}

/** The terminal is given back, however the process ends. */
async function untilTermination(desk: CommandSession, work: (desk: CommandSession) => Promise<number>): Promise<number> {
  const ended = new AbortController();
  const stopListening = onTermination(desk.surroundings.signals, (exitCode) => ended.abort(new CliError('ended from outside', exitCode)));
  try {
    return await work({ ...desk, signal: AbortSignal.any([desk.signal, ended.signal]) });
  } finally {
    stopListening();
  }
}

async function pastOf(
  { client, config }: Pick<CommandSession, 'client' | 'config'>,
  id: string,
): Promise<{ readonly past: Past; readonly complete: boolean; readonly problems: readonly string[] }> {
  const { runs: known, complete, problems } = await replayedRuns(client, id, config);
  if (known.length === 0)
    throw new CliError(
      `cannot replay the history of ${id}: ${problems[0] ?? 'no worker has begun it yet (`perdura worker` starts one)'}`,
      EXIT.failed,
    );
  return { past: createPast(known), complete, problems };
}

/** Also those that a rewind has cut out of what was said. */
async function readEntries({ client, output }: CommandSession, id: string, past: Past): Promise<Map<number, Entry>> {
  const slots = Array.from({ length: past.at(past.last).state.counters.slot }, (_, n) => n + 1);
  const entries = await client.entries(id, slots, { whole: true }).catch((error: unknown): Entry[] => {
    output.problem(`what was said cannot be read: ${errorMessage(error)}`);
    return [];
  });
  return new Map(entries.map((entry) => [entry.slot, entry]));
}

function print(
  { output, globals }: CommandSession,
  id: string,
  past: Past,
  from: number,
  found: { readonly complete: boolean; readonly problems: readonly string[] },
): number {
  const lines = function* () {
    for (let position = from; position <= past.last; position++) {
      const { event, run, state } = past.at(position);
      yield {
        position,
        run,
        at: event?.at ?? state.now,
        kind: event?.kind ?? 'run-opened',
        ...(event && 'effect' in event && { effect: event.effect, id: event.id }),
        words: eventInWords(event),
        state: summaryOf(state),
      };
    }
  };
  if (globals.output === 'jsonl') for (const line of lines()) output.line(toTerminalJson({ conversation: id, ...line }));
  else output.line(toTerminalJson({ id, ...found, last: past.last, turns: past.turns, events: [...lines()] }, 2));
  for (const problem of found.problems) output.problem(`a run cannot be replayed with this version: ${problem}`);
  return EXIT.ok;
}

function noSuchTurn(id: string, turn: string, { turns }: Past): string {
  const last = turns.at(-1);
  return `conversation ${id} has no ${turn}${last === undefined ? ': no turn has begun' : `; its last is ${turnId(last.turn)}`}`;
}
