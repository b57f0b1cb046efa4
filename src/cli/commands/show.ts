/** `perdura show`: the messages of a conversation, and what waits in its queue; `perdura debug watch`: its live events. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Option } from 'commander';
import type { Branch, TurnEnd, PendingActivity, Whereabouts } from '../../client.js';
import type { QueuedEvent, Status, FeedEvent } from '../../conversation/protocol/contract.js';
import type { SubAgent } from '../../conversation/protocol/stepping.js';
import { toToolInteractions, toTraces } from '../../memory/traces.js';
import { turnNumber } from '../../records/identity.js';
import type { Entry } from '../../records/message.js';
import { listSlots } from '../../records/slots.js';
import { findConversation } from '../args/find-conversation.js';
import { parseCount, toTurn } from '../args/values.js';
import { CONVERSATION, type Answer, type CommandRow, type CommandSession } from '../session/command.js';
import { withTimeoutFallback } from '../session/with-progress.js';
import { CliError, EXIT, toExitCode } from '../terminal/exit.js';
import { toTerminalJson, type StyledLine, toTerminalLine, type StyledSpan } from '../terminal/terminal-text.js';
import { describeQueued, renderTree } from '../views/state.js';
import { formatBytes, formatQuantity, formatTime, formatDuration, formatUsage } from '../views/quantities.js';
import { renderInteractions, renderTraces, renderTranscript, withTurnEnds } from '../views/transcript.js';
import { errorMessage } from '../../platform/errors.js';
import { temporalCommand } from '../session/connect.js';

// `perdura debug watch`: one line for each live event, over lost connections, until the conversation ends or Ctrl+C. The page draws them.

const LOOK_MS = 1000;

export const WATCH: readonly CommandRow[] = [
  {
    name: 'debug watch',
    description: 'print what happens in a conversation as it happens; -o json: an event a line',
    args: [CONVERSATION],
    options: [['--from-start', 'begin with the oldest event that is kept']],
    async run(frame, given: string, { fromStart }: { readonly fromStart?: boolean }): Promise<number> {
      const session = await frame.open({ needsWorker: true, whenInterrupted: 'stopped watching; the conversation goes on' });
      const { output, globals, temporal, client } = session;
      const id = await findConversation(session, given);
      const isText = globals.output === 'text';
      const ended = new AbortController();
      const stop = AbortSignal.any([session.signal, ended.signal]);
      if (isText) output.note(`watching ${id}; Ctrl+C ends that`);
      const looking = look(session, id, isText, stop);
      // Nothing more comes once it has ended: what is on its way is let in, then the feed is left.
      void looking.then(() => setTimeout(() => ended.abort(), 500));
      const describe = createEventLines();
      await read(session, id, fromStart === true ? '0' : '$', stop, (cursor, event) => {
        const at = Date.now();
        if (!isText) return output.line(toTerminalJson({ cursor, at, event }));
        const line = describe(event);
        if (line) output.draw([{ text: `${formatTime(at, 'iso', at)}  `, style: 'dim' }, ...line]);
      });
      await looking;
      session.signal.throwIfAborted();
      const { state } = await client.describe(id);
      output.note(`${id} has ended (${state})`);
      if (isText) output.explain(temporalCommand(temporal, ['workflow', 'show', '-w', id, '--follow']));
      return EXIT.ok;
    },
  },
];

/** Goes on after the last event that it had, however often the store or Temporal goes away. */
async function read(
  { client, output }: CommandSession,
  id: string,
  first: string,
  signal: AbortSignal,
  onEvent: (cursor: string, event: FeedEvent) => void,
): Promise<void> {
  let after = first;
  for (let isAway = false; !signal.aborted;) {
    try {
      for await (const { cursor, event } of client.watch(id, { after, signal })) {
        if (isAway) output.note('connected again');
        isAway = false;
        after = cursor;
        onEvent(cursor, event);
      }
      return;
    } catch (error) {
      if (signal.aborted) return;
      if (toExitCode(error) !== EXIT.unreachable) throw error;
      if (!isAway) output.problem(`connection lost (${errorMessage(error)}); trying again`);
      isAway = true;
    }
    await sleep(LOOK_MS, undefined, { signal }).catch(() => undefined);
  }
}

/** What the feed does not have: retries of activities, how it is stepped, and that the conversation has ended. */
async function look({ client, output }: CommandSession, id: string, isText: boolean, signal: AbortSignal): Promise<void> {
  const toNews = createLookNews();
  while (!signal.aborted) {
    const description = await client.describe(id).catch(() => undefined);
    if (description !== undefined && description.state !== 'running') return;
    if (isText) {
      const status = await withTimeoutFallback(client.status(id), undefined, LOOK_MS).catch(() => undefined);
      const news = toNews(description?.pendingActivities ?? [], status);
      for (const text of news) output.draw([{ text: toTerminalLine(text, 300), style: 'yellow' }]);
    }
    await sleep(LOOK_MS, undefined, { signal }).catch(() => undefined);
  }
}

/** What is new since the look before; the first status that is not automatic is news too. */
export function createLookNews(): (activities: readonly PendingActivity[], status: ControlView | undefined) => readonly string[] {
  let retries: readonly string[] = [];
  let control = AUTO;
  return (activities, status) => {
    const [retriesBefore, controlBefore] = [retries, control];
    retries = activities.flatMap(describeRetry);
    if (status !== undefined) control = describeControl(status);
    return [...retries.filter((text) => !retriesBefore.includes(text)), ...(control === controlBefore ? [] : [control])];
  };
}

function describeRetry({ type, attempt, lastFailure }: PendingActivity): string[] {
  return attempt < 2 ? [] : [`${type}, attempt ${attempt}${lastFailure === null ? '' : `: ${lastFailure}`}`];
}

const AUTO = 'auto · it runs by itself';

type ControlView = Pick<Status, 'mode' | 'stepLock' | 'pausedBy' | 'nextStep'>;

function describeControl({ mode, stepLock, pausedBy, nextStep }: ControlView): string {
  if (mode === 'auto') return AUTO;
  if (stepLock !== null) return `stepping · ${stepLock} runs`;
  const stopped = pausedBy === null ? '' : ` · stopped by ${pausedBy}`;
  return `stepping${stopped} · next: ${nextStep ?? 'nothing, it waits for a message'}`;
}

/** A line for each event; words of a model are one line for each call, when the first of them comes. */
export function createEventLines(): (event: FeedEvent) => StyledLine | undefined {
  let call: string | undefined;
  const line = (turn: string, what: string, text: string, style?: StyledSpan['style']): StyledLine => [
    { text: `${turn}  ` },
    { text: what, style },
    { text: `  ${toTerminalLine(text, 300)}` },
  ];
  return (event) => {
    switch (event.kind) {
      case 'session':
        return [{ text: `session ${event.session} begins`, style: 'bold' }];
      case 'resync':
        return [{ text: '(a part was missed)', style: 'yellow' }];
      case 'message':
        return line(event.turn, '›', event.preview, 'bold');
      case 'thinking':
      case 'text':
        if (event.call === call) return undefined;
        call = event.call;
        return line(event.turn, 'model', event.kind === 'text' ? 'writes' : 'thinks');
      case 'reset':
        return line(event.turn, 'model', 'starts again: the attempt before was cut off', 'yellow');
      case 'tool-started':
        return line(event.turn, `→ ${event.name}`, event.input, 'cyan');
      case 'tool-finished': {
        const took = typeof event.ms === 'number' ? `${formatDuration(event.ms)} ` : '';
        return line(event.turn, `← ${event.name}`, `${took}${event.outcome} ${event.preview}`, event.outcome === 'ok' ? 'green' : 'red');
      }
      case 'fallback':
        return line(event.turn, 'model', `${event.model} is asked in place of ${event.insteadOf}: ${event.for}`, 'yellow');
      case 'waiting':
        return line(event.turn, 'waiting', `${event.for}; until ${new Date(event.until).toISOString()}`, 'yellow');
      case 'asked':
        return line(event.turn, event.what, `${event.name} ${event.target}; until ${new Date(event.until).toISOString()}`, 'yellow');
      case 'decided':
        return line(event.turn, event.decision, event.name, event.decision === 'approve' || event.decision === 'answer' ? 'green' : 'red');
      case 'paused':
        return line(event.turn, 'stopped', `before ${event.why}`, 'yellow');
      case 'compacted':
        return line(event.turn, 'compacted', `${event.tokensBefore} → ${event.tokensAfter} tokens`, 'dim');
      case 'turn-finished': {
        const { stopReason, usage, error, text } = event.result;
        const style = stopReason === 'end' ? 'green' : stopReason === 'failed' ? 'red' : 'yellow';
        return line(event.turn, stopReason, `${formatUsage(usage)} · ${error?.message ?? text}`, style);
      }
      default:
        return ignoreNewer(event);
    }
  };
}

/** A worker of a later version may report things that this one does not know. */
function ignoreNewer(_event: never): undefined {
  return undefined;
}

interface ShowOptions {
  readonly follow?: boolean;
  readonly raw?: boolean;
  readonly archived?: boolean;
  readonly where?: boolean;
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
      new Option('--where', 'what of it is in the store, and what in the archive').conflicts(['raw', 'follow', 'tools', 'turn', 'branch']),
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
      if (options.where === true) return describeWhere(id, await withSlowNotice(`reading ${id}`, client.whereabouts(id)));
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

function describeWhere(id: string, whereabouts: Whereabouts): Answer {
  const { store, archive } = whereabouts;
  const count = ({ messages, longTexts }: Pick<Whereabouts['store'], 'messages' | 'longTexts'>): string =>
    `${formatQuantity(messages, 'message')} and ${formatQuantity(longTexts, 'long text')}`;
  const packed = archive && `${formatBytes(archive.bytes)} for ${formatBytes(archive.plainBytes)} of text`;
  return {
    data: { id, ...whereabouts },
    text: [
      `store    ${count(store)}  (${store.where})`,
      archive === null
        ? 'archive  nothing'
        : `archive  ${count(archive)} in ${formatQuantity(archive.files, 'file')}, ${packed}, the latest of ${archive.at.toISOString()}  (${archive.where ?? 'PERDURA_ARCHIVE is not set here'})`,
      `history  Temporal has all of it until the retention of its runs has passed`,
    ].join('\n'),
    temporal: ['workflow', 'describe', '-w', id],
  };
}

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
