/** `perdura show`: what was said in a conversation. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Branch, TurnEnd } from '../../client.js';
import type { QueuedEvent, Status } from '../../conversation/protocol/contract.js';
import type { SubAgent } from '../../conversation/protocol/stepping.js';
import type { Entry } from '../../records/message.js';
import { turnNumber } from '../../records/identity.js';
import { listSlots } from '../../records/slots.js';
import type { CliContext } from '../session/context.js';
import type { StyledLine } from '../terminal/terminal-text.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { findConversation } from '../args/find-conversation.js';
import type { TimeFormat } from '../args/global-options.js';
import { withTimeoutFallback } from '../session/with-progress.js';
import { turnName } from '../args/values.js';
import { toToolInteractions, toTraces } from '../../memory/traces.js';
import { queuedInWords, renderTree } from '../views/control.js';
import { formatTime } from '../views/quantities.js';
import { renderData, renderInteractions, renderTraces, renderTranscript, withTurnEnds } from '../views/transcript.js';
import { withClient, type CommandSession, temporalCommand } from '../session/with-client.js';

export interface ShowOptions {
  readonly follow?: boolean;
  readonly raw?: boolean;
  readonly archived?: boolean;
  readonly tools?: boolean;
  readonly turn?: string;
  readonly branch?: number;
}

export function show(context: CliContext, given: string, options: ShowOptions): Promise<number> {
  const turn = options.turn === undefined ? undefined : turnName(options.turn);
  if (options.follow === true && context.globals().output === 'json') {
    throw new CliError('--follow never ends, and json is one whole: use -o jsonl', EXIT.usage);
  }
  if (options.branch !== undefined && options.follow === true) {
    throw new CliError('a branch has ended: nothing of it can be followed', EXIT.usage);
  }
  if (options.archived === true && options.raw !== true) {
    throw new CliError('--archived is for --raw: without it everything that was said is shown', EXIT.usage);
  }
  return withClient(context, { whenInterrupted: 'stopped following' }, async (desk) => {
    const { client, output, globals, temporal, withSlowNotice } = desk;
    const id = await findConversation(desk, given);
    const { branch } = options;
    const showsWaiting = globals.output === 'text' && options.raw !== true && branch === undefined && turn === undefined;
    const read = Promise.all([
      client.history(id, { branch }),
      client.branches(id),
      showsWaiting ? waitingIn(desk, id) : NOTHING,
      client.turnEnds(id),
    ]);
    const [all, branches, waiting, ends] = await withSlowNotice(`reading ${id}`, read);
    const wanted = (entry: Entry): boolean => turn === undefined || entry.turn === turn;
    const entries = all.filter(wanted);
    if (turn !== undefined && entries.length === 0 && options.follow !== true) {
      throw new CliError(`conversation ${id} has no ${turn}; \`perdura inspect ${id}\` shows the latest`, EXIT.notFound);
    }
    const hidden = options.raw === true && options.archived !== true ? new Set(listSlots(await client.archived(id))) : new Set();
    const shown = entries.filter(({ slot }) => !hidden.has(slot));
    print(desk, id, { entries: shown, ends }, options, undefined);
    if (shown.length < entries.length) output.note(`${entries.length - shown.length} archived entries are not shown; --archived adds them`);
    if (branch === undefined) for (const one of branches) output.note(cutInWords(one));
    for (const queued of waiting.queue) output.draw(drawWaiting(queued, globals.timeFormat));
    for (const line of renderTree(waiting.subAgents)) output.draw(line);
    if (all.length === 0 && waiting.queue.length === 0 && globals.output === 'text' && options.raw !== true)
      output.note('nothing was said yet');
    if (options.follow === true) await follow(desk, id, { entries: all, ends }, wanted, options);
    if (globals.output === 'text') output.explain(temporalCommand(temporal, ['workflow', 'show', '-w', id]));
    return EXIT.ok;
  });
}

/** What was said, and how turns ended that have no whole answer. */
interface Shown {
  readonly entries: readonly Entry[];
  readonly ends: readonly TurnEnd[];
}

function print(
  { output, globals }: CommandSession,
  id: string,
  { entries, ends }: Shown,
  { raw, tools }: ShowOptions,
  before: string | undefined,
): void {
  if (tools === true) {
    const interactions = toToolInteractions(entries.flatMap((entry) => toTraces(entry, id)));
    if (globals.output === 'text') for (const line of renderInteractions(interactions)) output.draw(line);
    else for (const line of renderData(interactions, globals.output)) output.line(line);
  } else if (raw === true) for (const line of renderTraces(entries, id)) output.line(line);
  else if (globals.output !== 'text') for (const line of renderData(withTurnEnds(entries, ends), globals.output)) output.line(line);
  else {
    const lines = renderTranscript(withTurnEnds(entries, ends), { timeFormat: globals.timeFormat, now: Date.now(), before });
    for (const line of lines) output.draw(line);
  }
}

/** Milliseconds: what was said is shown without a worker too. */
const QUEUE_MS = 2_000;

interface UnderWay {
  readonly queue: readonly QueuedEvent[];
  readonly subAgents: readonly SubAgent[];
}

const NOTHING: UnderWay = { queue: [], subAgents: [] };

/** What was sent and no turn has begun yet, which the store gets when its turn begins; and sub-agents that hold. */
async function waitingIn({ client }: CommandSession, id: string): Promise<UnderWay> {
  const { state } = await client.describe(id);
  if (state !== 'running') return NOTHING;
  const [queue, { subAgents = [] }] = await Promise.all([
    withTimeoutFallback<readonly QueuedEvent[]>(client.queue(id), [], QUEUE_MS).catch(() => []),
    withTimeoutFallback<Pick<Status, 'subAgents'>>(client.status(id), {}, QUEUE_MS).catch((): Pick<Status, 'subAgents'> => ({})),
  ]);
  return { queue, subAgents: subAgents.some(({ next }) => next !== null) ? subAgents : [] };
}

function drawWaiting(queued: QueuedEvent, timeFormat: TimeFormat): StyledLine {
  const since = formatTime(queued.queuedAt, timeFormat, Date.now());
  return [{ text: 'waits  ', style: 'yellow' }, { text: queuedInWords(queued) }, { text: `  ${since}`, style: 'dim' }];
}

const LOOK_AGAIN_MS = 1000;

/** The store is the truth and the feed only hurries: what was recorded is looked for until the conversation has ended. */
async function follow(
  desk: CommandSession,
  id: string,
  known: Shown,
  isWanted: (entry: Entry) => boolean,
  options: ShowOptions,
): Promise<void> {
  const { client, signal } = desk;
  const seen = new Set(known.entries.map(({ slot }) => slot));
  const ended = new Set(known.ends.map(({ turn }) => turn));
  let before = known.entries.at(-1)?.turn;
  for (let running = true; running;) {
    await sleep(LOOK_AGAIN_MS, undefined, { signal });
    running = (await client.describe(id)).state === 'running';
    // A slot that is still empty may yet be filled.
    let dense = 0;
    while (seen.has(dense + 1)) dense++;
    // The end of a turn is written after what was said in it: asked for first, it is never shown before that.
    const ends = (await client.turnEnds(id)).filter(({ turn }) => !ended.has(turn));
    for (const { turn } of ends) ended.add(turn);
    const fresh = (await client.history(id, { after: dense })).filter(({ slot }) => !seen.has(slot));
    for (const { slot } of fresh) seen.add(slot);
    const wanted = fresh.filter(isWanted);
    print(desk, id, { entries: wanted, ends }, options, before);
    before = wanted[wanted.length - 1]?.turn ?? before;
  }
}

function cutInWords({ branch, after, turns }: Branch): string {
  const [first, last] = [turns[0], turns.at(-1)];
  const cut = first === undefined ? 'nothing' : first === last ? first : `${first} to ${last}`;
  const where = turnNumber(after) === 0 ? 'cut, with which it began' : `cut after ${after}`;
  return `${cut} was ${where}: --branch ${branch} shows it`;
}
