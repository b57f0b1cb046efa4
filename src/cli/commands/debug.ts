/** `perdura debug`: a conversation on a whole screen, live where it runs, from its history where it has ended or a turn is named. */
import type { ReadStream, WriteStream } from 'node:tty';
import type { Past } from '../../conversation/replay/past.js';
import { errorMessage } from '../../platform/errors.js';
import { turnId } from '../../records/identity.js';
import type { Entry } from '../../records/message.js';
import { findConversation } from '../args/find-conversation.js';
import { toTurn } from '../args/values.js';
import { CONVERSATION, type Answer, type CommandRow, type CommandSession } from '../session/command.js';
import { replayedRuns } from '../session/connect.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { onTermination } from '../terminal/input.js';

interface ReadPast {
  readonly past: Past;
  readonly complete: boolean;
  readonly problems: readonly string[];
}

export const DEBUG: readonly CommandRow[] = [
  {
    name: 'debug',
    description: 'step through a conversation on a whole screen; after its end, event by event. See also: debug --help',
    args: [CONVERSATION],
    options: [['--at <turn>', 'its past, from where this turn began']],
    async run(frame, given: string, { at }: { readonly at?: string }): Promise<Answer | number> {
      const turn = at === undefined ? undefined : toTurn(at);
      const isText = frame.globals().output === 'text';
      const { input, stdout } = frame.surroundings;
      if (isText && !(input.isTTY === true && stdout.isTTY === true)) {
        throw new CliError(
          `debug needs a terminal; \`perdura debug ${given} -o json\` prints the events and the states after them`,
          EXIT.usage,
        );
      }
      const session = await frame.open();
      const id = await findConversation(session, given);
      const { state } = await session.client.describe(id);
      if (isText && turn === undefined && state === 'running') return showLive(session, id);
      const { past, complete, problems } = await session.withSlowNotice(`replaying the history of ${id}`, readPast(session, id));
      const from = turn === undefined ? undefined : past.positionOf(turn);
      if (turn !== undefined && from === undefined) throw new CliError(unknownTurn(id, turn, past), EXIT.notFound);
      const unreplayed = problems.map((problem) => `a run cannot be replayed with this version: ${problem}`);
      if (!isText) {
        const events = await listEvents(past, from ?? 0);
        return { data: { id, complete, problems, last: past.last, turns: past.turns, events }, problems: unreplayed };
      }
      const entries = await readEntries(session, id, past);
      const notice = [
        state === 'running' ? 'it runs on: this is its past, as of now' : `it has ended (${state})`,
        ...(complete ? [] : ['earlier runs have passed their retention']),
        ...unreplayed,
      ].join(' · ');
      const { debugPast } = await import('../debug/debugger.js');
      return untilTermination(session, async (stopped) => {
        await debugPast(stopped, id, past, entries, { ...toTerminal(session), from: from ?? past.last, notice });
        return EXIT.ok;
      });
    },
  },
];

async function showLive(session: CommandSession, id: string): Promise<number> {
  const { debugLive } = await import('../debug/debugger.js');
  return untilTermination(session, async (stopped) => {
    const { mode, ended } = await debugLive(stopped, id, toTerminal(session));
    if (ended) session.output.note(`${id} has ended; \`perdura debug ${id}\` shows every state that it was in`);
    else if (mode === 'stepping')
      session.output.say(`${id} stays in stepping: it waits for \`perdura debug step ${id}\`, or \`perdura debug mode ${id} auto\``);
    else session.output.note(`${id} stays in auto: it goes on by itself`);
    return EXIT.ok;
  });
}

/** Known to be a terminal: nothing else is let in. */
function toTerminal({ surroundings: { input, stdout } }: CommandSession): { readonly input: ReadStream; readonly screen: WriteStream } {
  return { input: input as ReadStream, screen: stdout as WriteStream };
}

/** The terminal is given back, however the process ends. */
async function untilTermination(session: CommandSession, work: (session: CommandSession) => Promise<number>): Promise<number> {
  const ended = new AbortController();
  const stopListening = onTermination(session.surroundings.signals, (exitCode) =>
    ended.abort(new CliError('ended from outside', exitCode)),
  );
  try {
    return await work({ ...session, signal: AbortSignal.any([session.signal, ended.signal]) });
  } finally {
    stopListening();
  }
}

async function readPast({ client, config }: CommandSession, id: string): Promise<ReadPast> {
  const { createPast } = await import('../../conversation/replay/past.js');
  const { runs, complete, problems } = await replayedRuns(client, id, config);
  if (runs.length > 0) return { past: createPast(runs), complete, problems };
  const why = problems[0] ?? 'no worker has begun it yet (`perdura worker` starts one)';
  throw new CliError(`cannot replay the history of ${id}: ${why}`, EXIT.failed);
}

/** Also those that a rewind has cut out. */
async function readEntries({ client, output }: CommandSession, id: string, past: Past): Promise<Map<number, Entry>> {
  const slots = Array.from({ length: past.at(past.last).state.counters.slot }, (_, n) => n + 1);
  const entries = await client.entries(id, slots, { whole: true }).catch((error: unknown): Entry[] => {
    output.problem(`the messages cannot be read: ${errorMessage(error)}`);
    return [];
  });
  return new Map(entries.map((entry) => [entry.slot, entry]));
}

async function listEvents(past: Past, from: number): Promise<readonly object[]> {
  const [{ describeEvent }, { summarizeState }] = await Promise.all([
    import('../../insight/event-words.js'),
    import('../../insight/moments.js'),
  ]);
  return Array.from({ length: past.last - from + 1 }, (_, at) => {
    const position = from + at;
    const { event, run, state } = past.at(position);
    return {
      position,
      run,
      at: event?.at ?? state.now,
      kind: event?.kind ?? 'run-opened',
      ...(event && 'effect' in event && { effect: event.effect, id: event.id }),
      words: describeEvent(event),
      state: summarizeState(state),
    };
  });
}

function unknownTurn(id: string, turn: string, { turns }: Past): string {
  const last = turns.at(-1);
  return `conversation ${id} has no ${turn}${last === undefined ? ': no turn has begun' : `; its last is ${turnId(last.turn)}`}`;
}
