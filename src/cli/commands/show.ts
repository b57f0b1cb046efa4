/** `perdura show`: what the messages of a conversation are, and what waits to be taken. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Option } from 'commander';
import type { Branch, TurnEnd } from '../../client.js';
import type { QueuedEvent, Status } from '../../conversation/protocol/contract.js';
import type { SubAgent } from '../../conversation/protocol/stepping.js';
import { toToolInteractions, toTraces } from '../../memory/traces.js';
import { turnNumber } from '../../records/identity.js';
import type { Entry } from '../../records/message.js';
import { listSlots } from '../../records/slots.js';
import { findConversation } from '../args/find-conversation.js';
import { parseCount, toTurn } from '../args/values.js';
import { CONVERSATION, type Answer, type CommandRow, type CommandSession } from '../session/command.js';
import { withTimeoutFallback } from '../session/with-progress.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { toTerminalJson, type StyledLine } from '../terminal/terminal-text.js';
import { describeQueued, renderTree } from '../views/control.js';
import { formatTime } from '../views/quantities.js';
import { renderInteractions, renderTraces, renderTranscript, withTurnEnds } from '../views/transcript.js';

interface ShowOptions {
  readonly follow?: boolean;
  readonly raw?: boolean;
  readonly archived?: boolean;
  readonly tools?: boolean;
  readonly turn?: string;
  readonly branch?: number;
}

/** The messages, and how turns ended that have no whole answer. */
interface Shown {
  readonly entries: readonly Entry[];
  readonly ends: readonly TurnEnd[];
}

export const SHOW: readonly CommandRow[] = [
  {
    name: 'show',
    description: 'print the messages of a conversation',
    args: [CONVERSATION],
    options: [
      ['-f, --follow', 'go on with what comes from now on, until the conversation ends; -o json: an entry a line'],
      ['--turn <number>', 'only this turn'],
      ['--branch <number>', 'what a rewind has cut: 1 is the first', parseCount],
      ['--raw', 'raw traces, one JSON a line: the active ones, which no compaction has archived'],
      new Option('--tools', 'the calls of tools, each beside its result').conflicts(['raw', 'follow']),
      ['--archived', 'with --raw: also those that compactions have archived'],
    ],
    async run(frame, given: string, options: ShowOptions): Promise<Answer | number> {
      const { branch, follow = false, raw = false } = options;
      const turn = options.turn === undefined ? undefined : toTurn(options.turn);
      if (branch !== undefined && follow) throw new CliError('a branch has ended: nothing of it can be followed', EXIT.usage);
      if (options.archived === true && !raw) throw new CliError('--archived is for --raw: without it all messages are shown', EXIT.usage);
      const session = await frame.open({ whenInterrupted: 'stopped following' });
      const { client, output, globals, withSlowNotice } = session;
      const isText = globals.output === 'text';
      const id = await findConversation(session, given);
      const showsWaiting = isText && !raw && branch === undefined && turn === undefined;
      const read = Promise.all([
        client.history(id, { branch }),
        client.branches(id),
        showsWaiting ? readWaiting(session, id) : NOTHING,
        client.turnEnds(id),
      ]);
      const [all, branches, waiting, ends] = await withSlowNotice(`reading ${id}`, read);
      const isWanted = (entry: Entry): boolean => turn === undefined || entry.turn === turn;
      const wanted = all.filter(isWanted);
      if (turn !== undefined && wanted.length === 0 && !follow) {
        throw new CliError(`conversation ${id} has no ${turn}; \`perdura debug inspect ${id}\` shows the latest`, EXIT.notFound);
      }
      const hidden = raw && options.archived !== true ? new Set(listSlots(await client.archived(id))) : new Set();
      const entries = wanted.filter(({ slot }) => !hidden.has(slot));
      const cut =
        entries.length < wanted.length ? [`${wanted.length - entries.length} archived entries are not shown; --archived adds them`] : [];
      const isEmpty = all.length === 0 && waiting.queue.length === 0 && !raw;
      const notes = [...cut, ...(branch === undefined ? branches.map(describeCut) : []), ...(isEmpty ? ['there are no messages yet'] : [])];
      const below = [...waiting.queue.map((queued) => drawWaiting(queued, globals.timeFormat)), ...renderTree(waiting.subAgents)];
      if (!raw && !follow) {
        const calls = options.tools === true ? toToolInteractions(entries.flatMap((entry) => toTraces(entry, id))) : undefined;
        const messages = withTurnEnds(entries, ends);
        return {
          data: calls ?? messages,
          draw: (look) => [...(calls ? renderInteractions(calls) : renderTranscript(messages, look)), ...below],
          notes,
          temporal: ['workflow', 'show', '-w', id],
        };
      }
      print(session, id, { entries, ends }, raw, undefined);
      for (const line of below) output.draw(line);
      for (const note of isText ? notes : cut) output.note(note);
      if (follow) await followOn(session, id, { entries: all, ends }, isWanted, raw);
      return EXIT.ok;
    },
  },
];

/** As they come: data a line each. `before` is the turn of what was drawn last. */
function print(
  { output, globals }: CommandSession,
  id: string,
  { entries, ends }: Shown,
  isRaw: boolean,
  before: string | undefined,
): void {
  const messages = withTurnEnds(entries, ends);
  if (isRaw) for (const line of renderTraces(entries, id)) output.line(line);
  else if (globals.output === 'json') for (const one of messages) output.line(toTerminalJson(one));
  else for (const line of renderTranscript(messages, { timeFormat: globals.timeFormat, now: Date.now(), before })) output.draw(line);
}

/** Milliseconds: messages are shown without a worker too. */
const QUEUE_MS = 2_000;

interface UnderWay {
  readonly queue: readonly QueuedEvent[];
  readonly subAgents: readonly SubAgent[];
}

const NOTHING: UnderWay = { queue: [], subAgents: [] };

/** What was sent and no turn has begun yet, which the store gets when its turn begins; and sub-agents that hold. */
async function readWaiting({ client }: CommandSession, id: string): Promise<UnderWay> {
  const { state } = await client.describe(id);
  if (state !== 'running') return NOTHING;
  const [queue, { subAgents = [] }] = await Promise.all([
    withTimeoutFallback<readonly QueuedEvent[]>(client.queue(id), [], QUEUE_MS).catch(() => []),
    withTimeoutFallback<Pick<Status, 'subAgents'>>(client.status(id), {}, QUEUE_MS).catch((): Pick<Status, 'subAgents'> => ({})),
  ]);
  return { queue, subAgents: subAgents.some(({ next }) => next !== null) ? subAgents : [] };
}

function drawWaiting(queued: QueuedEvent, timeFormat: Parameters<typeof formatTime>[1]): StyledLine {
  const since = formatTime(queued.queuedAt, timeFormat, Date.now());
  return [{ text: 'waits  ', style: 'yellow' }, { text: describeQueued(queued) }, { text: `  ${since}`, style: 'dim' }];
}

const LOOK_AGAIN_MS = 1000;

/** The store is the truth and the feed only hurries: what was recorded is looked for until the conversation has ended. */
async function followOn(
  session: CommandSession,
  id: string,
  known: Shown,
  isWanted: (entry: Entry) => boolean,
  isRaw: boolean,
): Promise<void> {
  const { client, signal } = session;
  const seen = new Set(known.entries.map(({ slot }) => slot));
  const ended = new Set(known.ends.map(({ turn }) => turn));
  let before = known.entries.at(-1)?.turn;
  for (let running = true; running;) {
    await sleep(LOOK_AGAIN_MS, undefined, { signal });
    running = (await client.describe(id)).state === 'running';
    // A slot that is still empty may yet be filled.
    let dense = 0;
    while (seen.has(dense + 1)) dense++;
    // The end of a turn is written after its messages: read first, it is never shown before them.
    const ends = (await client.turnEnds(id)).filter(({ turn }) => !ended.has(turn));
    for (const { turn } of ends) ended.add(turn);
    const fresh = (await client.history(id, { after: dense })).filter(({ slot }) => !seen.has(slot));
    for (const { slot } of fresh) seen.add(slot);
    const wanted = fresh.filter(isWanted);
    print(session, id, { entries: wanted, ends }, isRaw, before);
    before = wanted.at(-1)?.turn ?? before;
  }
}

function describeCut({ branch, after, turns }: Branch): string {
  const [first, last] = [turns[0], turns.at(-1)];
  const cut = first === undefined ? 'nothing' : first === last ? first : `${first} to ${last}`;
  const where = turnNumber(after) === 0 ? 'cut, with which it began' : `cut after ${after}`;
  return `${cut} was ${where}: --branch ${branch} shows it`;
}
