/** `perdura memory`: MEMORY.md of a scope, now and as it was, and what a conversation remembers. */
import { Option } from 'commander';
import type { ScopeMemory } from '../../client.js';
import { memoryWorkflowId, type MemoryStatus } from '../../conversation/protocol/memory-contract.js';
import { isoTime } from '../../records/memory/history-text.js';
import { type MemoryChange, NO_MEMORY_VERSION } from '../../records/memory/documents.js';
import { parseMoment } from '../../records/time-in-words.js';
import { utf8Length } from '../../records/text.js';
import type { Config } from '../../config.js';
import { findConversation, OF_CONVERSATION, openScope, SCOPE, type ScopeWanted } from '../args/find-conversation.js';
import { parseCount } from '../args/values.js';
import type { Answer, CommandRow, CommandSession } from '../session/command.js';
import { queryWords } from '../session/connect.js';
import { withTimeoutFallback } from '../session/with-progress.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { plain, toTerminalText, type StyledLine } from '../terminal/terminal-text.js';
import { renderBlame, renderDiff, renderEpisodes, renderFacts, renderItems, renderLog, shortVersion } from '../views/memory.js';
import { drawLine } from '../views/table.js';
import { formatQuantity, formatCount, formatTime, formatUsage } from '../views/quantities.js';

interface MemoryOptions extends ScopeWanted {
  readonly blame?: boolean;
  readonly diff?: boolean;
  readonly at?: string;
  readonly log?: boolean;
  /** Of a conversation; a text: this one, whole. */
  readonly items?: true | string;
  /** Of a conversation. */
  readonly list?: true | 'episodic' | 'semantic';
  readonly all?: boolean;
  readonly from?: string;
  readonly to?: string;
  readonly limit: number;
}

const HOW_DATES_ARE_WRITTEN = 'write 2026-02-27 or 2026-02-27T14:30, in UTC unless a zone stands behind it';

export const MEMORY: readonly CommandRow[] = [
  {
    name: 'memory',
    description: 'print MEMORY.md, which is part of every system prompt of the scope; or its history, or what a conversation remembers',
    args: [SCOPE],
    options: [
      OF_CONVERSATION,
      new Option('--blame', 'the source of each line: trust, turns, time').conflicts(['diff', 'at', 'log', 'items', 'list']),
      new Option('--diff', 'what the last change did, or what differs from --from to --to').conflicts(['at', 'log', 'items', 'list']),
      new Option('--at <date>', 'as it was then').conflicts(['log', 'items', 'list']),
      new Option('--log', 'the changes, newest first, with their cause').conflicts(['items', 'list']),
      new Option('--items [item]', 'with --of: what is in its memory channel; or one of these, whole').conflicts('list'),
      new Option('--list [kind]', 'with --of: its summaries of older turns (episodic) and the facts of its scope (semantic)').choices([
        'episodic',
        'semantic',
      ]),
      ['--from <version>', 'of --diff: a version (or its beginning) or a date'],
      ['--to <version>', 'of --diff: the same; without it, now'],
      ['--all', 'of --list: also facts that were replaced, and by what'],
      ['--limit <count>', 'of --log: at most so many', parseCount, 20],
    ],
    help: 'A DATE is 2026-02-27 or 2026-02-27T14:30, in UTC unless a zone stands behind it. A day as --from is its beginning, else its end.',
    async run(frame, scope: string | undefined, options: MemoryOptions): Promise<Answer> {
      const at = options.at === undefined ? undefined : parseMoment(options.at, 'end');
      if (options.at !== undefined && at === undefined)
        throw new CliError(`${JSON.stringify(options.at)} is no date: ${HOW_DATES_ARE_WRITTEN}`, EXIT.usage);
      const { items, list, of } = options;
      if (items !== undefined || list !== undefined) {
        if (of === undefined || scope !== undefined)
          throw new CliError('say of which conversation: perdura memory --of ID --items, or --list', EXIT.usage);
        const session = await frame.open();
        const id = await findConversation(session, of);
        if (list !== undefined) return listMemory(session, id, options);
        return items === undefined || items === true ? listItems(session, id) : showItem(session, id, items);
      }
      const session = await frame.open();
      const memory = await openScope(session, { scope, of });
      if (at !== undefined) return textAt(session, memory, at);
      if (options.blame === true) return blameLines(session, memory);
      if (options.diff === true) return diffVersions(session, memory, options);
      return options.log === true ? logChanges(session, memory, options.limit) : showDocument(session, memory);
    },
  },
  {
    name: 'memory scopes',
    description: 'list the scopes that have messages or memories',
    async run(frame): Promise<Answer> {
      const { client, withSlowNotice } = await frame.open();
      const scopes = await withSlowNotice('looking which scopes there are', client.scopes());
      return {
        data: scopes,
        draw: (look) => scopes.flatMap((scope) => drawLine('', scope, look)),
        notes: scopes.length === 0 ? ['no scope has a message yet'] : [],
      };
    },
  },
];

async function showDocument({ config, globals, withSlowNotice }: CommandSession, memory: ScopeMemory): Promise<Answer> {
  const { scope } = memory;
  const [{ text, version }, changes, proposals, limit] = await withSlowNotice(
    `reading the memory of ${scope}`,
    Promise.all([memory.text(), memory.changes(), memory.proposals(), readLimit(config, scope)]),
  );
  const status = await withSlowNotice(
    `asking ${memoryWorkflowId(scope)}`,
    withTimeoutFallback<MemoryStatus | undefined | null>(memory.status(), null),
  );
  const open = proposals.filter(({ state }) => state === 'open').length;
  const bytes = utf8Length(text);
  const last = changes.at(-1);
  const when = last === undefined ? '' : ` · ${last.cause} ${formatTime(Math.round(last.ts * 1000), globals.timeFormat, Date.now())}`;
  const size = `${formatCount(bytes)} of ${formatCount(limit)} bytes${bytes > limit ? ', to be compressed' : ''}`;
  return {
    data: { scope, version, text, bytes, limit, status: status ?? null, openProposals: open },
    draw: () => toLines(text),
    notes: [
      ...(text.trim() === '' ? [`nothing is remembered of ${scope} yet`] : [`version ${shortVersion(version)} · ${size}${when}`]),
      describeStatus(scope, status),
      ...(open === 0 ? [] : [`${open} ${open === 1 ? 'line waits' : 'lines wait'} for a person: perdura memory review ${scope}`]),
    ],
    temporal: queryWords('status', memoryWorkflowId(scope)),
  };
}

async function blameLines(session: CommandSession, memory: ScopeMemory): Promise<Answer> {
  const { scope } = memory;
  const { text, version, changes } = await readWhole(session, memory);
  const { blame } = await import('../../memory/documents/memory-diff.js');
  const lines = blame(text, changes);
  return {
    data: { scope, version, lines },
    draw: (look) => renderBlame(lines, look),
    notes: lines.length === 0 ? [`nothing is remembered of ${scope} yet`] : [],
    temporal: ['workflow', 'describe', '-w', memoryWorkflowId(scope)],
  };
}

async function diffVersions(session: CommandSession, memory: ScopeMemory, wanted: MemoryOptions): Promise<Answer> {
  const { scope } = memory;
  const { version: present, changes } = await readWhole(session, memory);
  const [from, to] = await chooseVersions(changes, present, wanted);
  const read = Promise.all([readVersion(memory, from), readVersion(memory, to)]);
  const { diffMemory } = await import('../../memory/documents/memory-diff.js');
  const lines = diffMemory(...(await session.withSlowNotice('reading both versions', read)));
  const isSame = lines.every(({ kind }) => kind === 'kept');
  return {
    data: { scope, from, to, lines },
    draw: (look) => (isSame ? [] : renderDiff(lines, look)),
    notes: [isSame ? 'no line is another' : `from ${shortVersion(from)} to ${shortVersion(to)}`],
    temporal: ['workflow', 'describe', '-w', memoryWorkflowId(scope)],
  };
}

async function textAt(session: CommandSession, memory: ScopeMemory, ts: number): Promise<Answer> {
  const { scope } = memory;
  const { changes } = await readWhole(session, memory);
  const { versionAt } = await import('../../memory/documents/memory-diff.js');
  const version = versionAt(changes, ts);
  const text = await readVersion(memory, version);
  const since = changes.findLast((change) => change.ts <= ts);
  return {
    data: { scope, at: isoTime(ts), version, text },
    draw: () => toLines(text),
    notes: [
      since === undefined || text.trim() === ''
        ? `nothing was remembered of ${scope} at ${isoTime(ts)}`
        : `version ${shortVersion(version)}, in force since ${isoTime(since.ts)} (${since.cause})`,
    ],
    temporal: ['workflow', 'describe', '-w', memoryWorkflowId(scope)],
  };
}

async function logChanges(session: CommandSession, memory: ScopeMemory, limit: number): Promise<Answer> {
  const { scope } = memory;
  const { changes } = await readWhole(session, memory);
  const { countedChange } = await import('../../memory/documents/memory-diff.js');
  const newest = changes.slice(-limit).reverse();
  const counting = Promise.all(newest.map((one) => countedChange(memory, one)));
  const counted = await session.withSlowNotice(`counting the lines of ${formatQuantity(newest.length, 'change')}`, counting);
  return {
    data: { scope, changes: counted },
    draw: (look) => (counted.length === 0 ? [] : renderLog(counted, look)),
    notes: [
      ...(counted.length === 0 ? [`nothing was ever written into the memory of ${scope}`] : []),
      ...(changes.length > newest.length ? [`the newest ${newest.length} of ${changes.length}; --limit shows more`] : []),
    ],
    temporal: ['workflow', 'show', '-w', memoryWorkflowId(scope)],
  };
}

async function listMemory({ client, withSlowNotice }: CommandSession, id: string, wanted: MemoryOptions): Promise<Answer> {
  const { all = false, list } = wanted;
  const read = Promise.all([client.memory(id, { all }), client.imported(id)]);
  const [{ episodes: made, facts, skipped }, imported] = await withSlowNotice(`reading the memory of ${id}`, read);
  const { withoutSuperseded } = await import('../../records/memory/items.js');
  // Those that it did not begin with: of earlier sessions, and those that a later one stands for.
  const known = new Set(made.map(({ id: episode }) => episode));
  const others = imported.filter(({ id: episode }) => !known.has(episode)).map((episode) => ({ ...episode, imported: true as const }));
  const episodes = all ? [...made, ...others] : withoutSuperseded([...made, ...others]);
  return {
    data: { id, ...(list !== 'semantic' && { episodes }), ...(list !== 'episodic' && { facts }), skipped },
    draw: async (look) => [
      ...(list !== 'semantic' ? renderEpisodes(episodes, look) : []),
      ...(list === true ? [[]] : []),
      ...(list !== 'episodic' ? renderFacts(facts, (await client.key(id)).scope, look) : []),
    ],
    problems: describeSkipped(skipped),
    temporal: queryWords('context', id),
  };
}

async function listItems({ client, withSlowNotice }: CommandSession, id: string): Promise<Answer> {
  const { items, skipped } = await withSlowNotice(`reading the items of ${id}`, client.items(id));
  const [first] = items;
  return {
    data: { id, items, skipped },
    draw: (look) => renderItems(items, look),
    notes: first === undefined ? [] : [`perdura memory --of ${id} --items ${first.id} prints one`],
    problems: describeSkipped(skipped),
  };
}

async function showItem({ client, withSlowNotice }: CommandSession, id: string, wanted: string): Promise<Answer> {
  const item = await withSlowNotice(`reading ${wanted} of ${id}`, client.item(id, wanted));
  return { data: item, text: toTerminalText(item.text) };
}

function describeSkipped(skipped: number): string[] {
  return skipped > 0 ? [`not read and left out: ${formatQuantity(skipped, 'record')} of the store`] : [];
}

interface WholeDocument {
  readonly text: string;
  readonly version: string;
  readonly changes: readonly MemoryChange[];
}

/** Reading the text turns a person's edit of the file into a change: so the read comes first. */
async function readWhole({ withSlowNotice }: CommandSession, memory: ScopeMemory): Promise<WholeDocument> {
  const read = async (): Promise<WholeDocument> => {
    const { text, version } = await memory.text();
    return { text, version, changes: await memory.changes() };
  };
  return withSlowNotice(`reading the memory of ${memory.scope}`, read());
}

async function readVersion(memory: ScopeMemory, version: string): Promise<string> {
  if (version === NO_MEMORY_VERSION) return '';
  const text = await memory.textOf(version);
  if (text !== undefined) return text;
  throw new CliError(`the text of version ${shortVersion(version)} is not kept any more`, EXIT.notFound);
}

/** The last change, or from that on to now, or to that from what was before it. */
async function chooseVersions(
  changes: readonly MemoryChange[],
  present: string,
  { from, to }: MemoryOptions,
): Promise<[from: string, to: string]> {
  const end = to === undefined ? present : await toVersion(changes, to, 'end');
  if (from !== undefined) return [await toVersion(changes, from, 'beginning'), end];
  return [changes.findLast(({ version }) => version === end)?.from ?? NO_MEMORY_VERSION, end];
}

/** A date, a version, or the beginning of one. */
async function toVersion(changes: readonly MemoryChange[], given: string, ofDay: 'beginning' | 'end'): Promise<string> {
  const ts = parseMoment(given, ofDay);
  if (ts !== undefined) return (await import('../../memory/documents/memory-diff.js')).versionAt(changes, ts);
  const known = new Set(changes.flatMap((change) => [change.from, change.version]).concat(NO_MEMORY_VERSION));
  const beginning = given.replace(/…$/, '');
  const found = known.has(beginning) ? [beginning] : [...known].filter((version) => version.startsWith(beginning));
  const [first, second] = found;
  if (first === undefined) {
    throw new CliError(
      `there is no version ${given}; \`perdura memory --log\` lists them; for a date, ${HOW_DATES_ARE_WRITTEN}`,
      EXIT.notFound,
    );
  }
  if (second !== undefined) throw new CliError(`${given} is the beginning of several versions: write more of it`, EXIT.usage);
  return first;
}

/** Of the agent that is called as the scope: a consolidation goes by the agent that requests it. */
async function readLimit(config: Config, scope: string): Promise<number> {
  const [{ agentsFolder, loadAgent }, { agentConfigSchema }] = await Promise.all([
    import('../../agents/load-agent.js'),
    import('../../agents/agent-config.js'),
  ]);
  const { memory } = await loadAgent(agentsFolder(config), scope).then(
    (agent) => agent.config,
    () => agentConfigSchema.parse({}),
  );
  return memory.maxMemorySize;
}

function describeStatus(scope: string, status: MemoryStatus | undefined | null): string {
  const id = memoryWorkflowId(scope);
  if (status === undefined) return `${id} does not run: nothing was consolidated yet`;
  if (status === null) return `no worker answers for ${id}`;
  const { phase, waitingFor, queued, consolidated, fallbacks, usage } = status;
  const [first, ...others] = queued;
  const doing =
    first === undefined ? phase : `${phase}: ${formatQuantity(first.messages, 'message')} of ${first.conversation} (${first.why})`;
  return [
    `${id} is ${doing}${others.length === 0 ? '' : `, ${others.length} more wait`}`,
    ...(waitingFor === undefined ? [] : [waitingFor]),
    `${formatCount(consolidated)} consolidated${fallbacks === 0 ? '' : `, ${formatCount(fallbacks)} of them without a model`}`,
    ...(usage.inputTokens + usage.outputTokens === 0 ? [] : [formatUsage(usage)]),
  ].join(' · ');
}

function toLines(text: string): StyledLine[] {
  const lines = text.replace(/\r?\n$/, '').split(/\r?\n/);
  return text.trim() === '' ? [] : lines.map(plain);
}
