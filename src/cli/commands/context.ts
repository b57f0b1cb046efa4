/**
 * `perdura debug context`: what the next model call sees, why it does not see a turn, and changes of it: compacted, truncated, taken back.
 */
import { Option } from 'commander';
import { knownTurns, type KnownTurns, type Shortened, type Why, type WhyAnswer } from '../../insight/why.js';
import { turnNumber } from '../../records/identity.js';
import { listSlots } from '../../records/slots.js';
import { findConversation, findRunning } from '../args/find-conversation.js';
import { parseChunks, toTurn } from '../args/values.js';
import { CONVERSATION, type Answer, type CommandRow, type CommandSession } from '../session/command.js';
import { queryWords, updateWords } from '../session/connect.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { toTerminalLine, type StyledLine } from '../terminal/terminal-text.js';
import { describeOutcome, renderContext } from '../views/state.js';
import { formatQuantity, formatCount, formatTime } from '../views/quantities.js';
import { drawText, renderTable, type Column, type Look } from '../views/table.js';

interface ContextOptions {
  readonly compact?: boolean;
  readonly undo?: boolean;
  readonly truncate?: boolean;
  /** Of --compact or --truncate: these alone. `true`: list them. */
  readonly chunks?: true | readonly string[];
  /** A turn. */
  readonly why?: string;
}

export const CONTEXT: readonly CommandRow[] = [
  {
    name: 'debug context',
    description: 'show what the next model call sees, and how much still fits; compact it, or ask why a turn is not there',
    args: [CONVERSATION],
    options: [
      new Option('--compact', 'make memory of the older turns now, and show what is left').conflicts(['undo', 'truncate', 'why']),
      new Option('--undo', 'take the last compaction back').conflicts(['truncate', 'why']),
      new Option('--truncate', 'leave the oldest out of the prompt, down to the hard threshold').conflicts('why'),
      new Option('--chunks [ids]', 'list the messages of it; with --compact or --truncate: these alone, such as chunk_3,chunk_4')
        .conflicts(['undo', 'why'])
        .argParser(parseChunks),
      ['--why <turn>', 'why it forgot this turn: what took it out of the prompt, and what stands for it'],
    ],
    async run(frame, given: string, { compact = false, undo = false, truncate = false, chunks, why }: ContextOptions): Promise<Answer> {
      const changes = compact || truncate;
      if (chunks === true && changes)
        throw new CliError(
          'name the chunks behind --chunks, such as chunk_3,chunk_4; `perdura debug context ID --chunks` lists them',
          EXIT.usage,
        );
      if (chunks !== undefined && chunks !== true && !changes)
        throw new CliError('choose what becomes of these chunks: --compact or --truncate', EXIT.usage);
      const turn = why === undefined ? undefined : toTurn(why);
      const named = chunks === true ? undefined : chunks;
      const session = await frame.open({ needsWorker: turn === undefined });
      if (compact) return change(session, given, named ? 'triggerCompaction' : 'compact', named);
      if (undo) return change(session, given, 'undoCompaction');
      if (truncate) return change(session, given, named ? 'executeTruncation' : 'truncate', named);
      const id = await findConversation(session, given);
      if (turn !== undefined) return explainTurn(session, id, turn);
      return chunks === undefined ? showContext(session, id) : listChunks(session, id);
    },
  },
];

async function showContext({ client, globals, withSlowNotice }: CommandSession, id: string): Promise<Answer> {
  const index = await withSlowNotice(`asking ${id} for its context`, client.context(id));
  const temporal = queryWords('context', id);
  if (globals.output === 'json') return { data: index, temporal };
  const read = Promise.all([client.history(id), client.memory(id)]);
  const [entries, { episodes }] = await withSlowNotice(`reading ${id}`, read);
  const known = knownTurns(index, entries, episodes);
  return { data: index, draw: (look) => [...renderContext(index, look), ...renderKnown(id, known, look)], temporal };
}

interface ShownChunk {
  readonly chunk: string;
  readonly turn: string;
  readonly role: string;
  readonly tokens: number;
  readonly words: string;
}

const CHUNK_COLUMNS: readonly Column<ShownChunk>[] = [
  { title: 'CHUNK', cell: ({ chunk }) => chunk, look: () => 'cyan', rank: 0 },
  { title: 'TURN', cell: ({ turn }) => turn, rank: 3 },
  { title: 'FROM', cell: ({ role }) => role, rank: 4 },
  { title: 'TOKENS', cell: ({ tokens }) => formatCount(tokens), align: 'right', rank: 2 },
  { title: 'WORDS', cell: ({ words }) => toTerminalLine(words, 200), least: 8, rank: 1 },
];

/** The messages that a model call sees, by the ids that a step's result, --compact and --truncate have for them. */
async function listChunks({ client, withSlowNotice }: CommandSession, id: string): Promise<Answer> {
  const [{ tokenCounterBy }, { describeChunks }] = await Promise.all([
    import('../../models/token-counter.js'),
    import('../../insight/moments.js'),
  ]);
  const read = Promise.all([client.context(id), client.control(id)]);
  const [index, control] = await withSlowNotice(`asking ${id} for its context`, read);
  const slots = index.chunks.flatMap(({ slots: ranges = [] }) => listSlots(ranges));
  const entries = await withSlowNotice(`reading ${id}`, client.entries(id, slots));
  const { count } = await tokenCounterBy(index.tokenizer, index.tokenRatio);
  const all = describeChunks(index, new Map(entries.map((entry) => [entry.slot, entry])), control, count);
  const chunks = all
    .filter(({ kind }) => kind === 'WORKING_FLOW')
    .map(({ id: chunk, turn, role, tokens, words }) => ({ chunk, turn, role, tokens, words }));
  const draw = (look: Look): StyledLine[] => renderTable(chunks, CHUNK_COLUMNS, look);
  return { data: { id, chunks }, ...(chunks.length === 0 ? { say: 'the context has no messages' } : { draw }) };
}

const DOING = {
  compact: 'compacting',
  triggerCompaction: 'compacting chunks of',
  undoCompaction: 'taking back the compaction of',
  truncate: 'truncating',
  executeTruncation: 'leaving chunks out of',
} as const;

async function change(session: CommandSession, given: string, name: keyof typeof DOING, chunks: readonly string[] = []): Promise<Answer> {
  const { client, withSlowNotice } = session;
  const id = await findRunning(session, given);
  const outcome = await withSlowNotice(`${DOING[name]} ${id}`, client[name](id, chunks));
  const words = describeOutcome(outcome);
  return {
    data: { id, outcome },
    draw: async (look) => renderContext(await client.context(id), look),
    ...(outcome.kind === 'failed' ? { problems: [words], exitCode: EXIT.failed } : { say: words }),
    temporal: updateWords(name, id, chunks.length === 0 ? undefined : { chunks }),
  };
}

/** Which compaction, truncation or trim took a turn out of the prompt. */
async function explainTurn({ client, withSlowNotice }: CommandSession, id: string, turn: string): Promise<Answer> {
  const answer = await withSlowNotice(`replaying the history of ${id}`, client.why(id, turn));
  return {
    data: answer,
    draw: (look) => renderWhy(answer, look),
    notes: [
      ...(answer.complete ? [] : ['earlier runs have passed their retention: what happened in them, only the store knows']),
      ...answer.problems.map((problem) => `a run cannot be replayed with this version: ${toTerminalLine(problem, 300)}`),
    ],
    temporal: ['workflow', 'show', '-w', id],
  };
}

interface KnownRow {
  readonly seen: string;
  readonly turns: readonly string[];
  readonly rest: string;
}

/** Of which turns the next model call sees what. */
export function renderKnown(id: string, known: KnownTurns, look: Pick<Look, 'width' | 'measure'>): StyledLine[] {
  const { whole, inPart, shortened, summarized, leftOut, earlierSessions } = known;
  const cut = (kind: Shortened['kind'], seen: string): KnownRow => {
    const some = shortened.filter((one) => one.kind === kind);
    return { seen, turns: some.map(({ turn }) => turn), rest: `retrieve_from_memory: ${some.map(({ item }) => item).join(', ')}` };
  };
  const rows: KnownRow[] = [
    { seen: 'word for word', turns: whole, rest: '' },
    { seen: 'in part', turns: inPart, rest: '' },
    cut('message', 'by its ends'),
    cut('result', 'by a line'),
    ...summarized.map(({ episode, turns }) => ({ seen: 'as a summary', turns, rest: `${episode}: perdura memory --of ${id} --list` })),
    { seen: 'not now', turns: leftOut, rest: `left out until the next summary: perdura debug context ${id} --compact` },
    { seen: 'no longer', turns: earlierSessions, rest: 'of a session that /new ended: MEMORY.md, perdura history' },
  ];
  const shown = rows.filter(({ turns }) => turns.length > 0);
  if (shown.every(({ seen }) => seen === 'word for word')) return [];
  const columns: Column<KnownRow>[] = [
    { title: 'SEEN', cell: ({ seen }) => seen, rank: 0 },
    { title: 'TURNS', cell: ({ turns }) => formatSpans(turns), rank: 1 },
    { title: 'THE REST', cell: ({ rest }) => rest, least: 12, rank: 2 },
  ];
  return [[], ...renderTable(shown, columns, look)];
}

/** `1–4, 7`. */
export function formatSpans(turns: readonly string[]): string {
  const numbers = [...new Set(turns.map(turnNumber))].sort((a, b) => a - b);
  const found: [number, number][] = [];
  for (const number of numbers) {
    const last = found.at(-1);
    if (last && last[1] === number - 1) last[1] = number;
    else found.push([number, number]);
  }
  return found.map(([first, last]) => (first === last ? String(first) : `${first}–${last}`)).join(', ');
}

export function renderWhy({ id, turn, hasEnded, branch, entries, shortened, inPrompt, causes }: WhyAnswer, look: Look): StyledLine[] {
  const all = formatQuantity(entries, 'message');
  const show = `perdura show ${id}${branch === undefined ? '' : ` --branch ${branch}`} --turn ${turnNumber(turn)}`;
  const head =
    inPrompt === 0
      ? `${turn} is no longer in the prompt: none of its ${all} is`
      : inPrompt < entries
        ? `${turn} is partly in the prompt: ${inPrompt} of its ${all}`
        : shortened.length > 0
          ? `${turn} is in the prompt, and not all of it word for word`
          : `${turn} is not forgotten: all of its ${all} are in the prompt`;
  const last = causes.findLast(({ kind }) => kind !== 'returned');
  const kind = hasEnded ? 'session-ended' : last?.kind;
  const substitute = inPrompt < entries && kind ? describeSubstitute(kind, last?.episode ?? '', id, turn) : undefined;
  const facts = [
    ...shortened.map(({ item }) => `a long text of it is shown shortened; the model reads the rest by retrieve_from_memory (${item})`),
    ...(hasEnded ? ['/new has ended its session'] : []),
    ...(substitute === undefined ? [] : [`what the model has instead: ${substitute}`]),
    ...(inPrompt < entries || shortened.length > 0 ? [`word for word: ${show}`] : []),
    ...(causes.length === 0 && inPrompt < entries ? ['what took it out is not known any more'] : []),
  ];
  const summaries = causes.flatMap(({ episode, summary }) =>
    episode === null ? [] : drawText(`${episode}: ${summary ?? 'is not in the store any more'}`, 2, look),
  );
  return [
    [{ text: head, style: 'bold' }],
    ...facts.flatMap((fact) => drawText(fact, 2, look)),
    ...(causes.length === 0 ? [] : [[], ...renderTable(causes, causeColumns(look), look), ...summaries]),
  ];
}

function causeColumns({ timeFormat, now }: Look): Column<Why>[] {
  return [
    { title: 'WHEN', cell: ({ at }) => formatTime(at, timeFormat, now), rank: 3 },
    { title: 'CAUSE', cell: ({ kind }) => kind, look: () => 'cyan', rank: 0 },
    { title: 'EPOCH', cell: ({ epoch }) => String(epoch), align: 'right', rank: 6 },
    { title: 'TURNS', cell: ({ turns }) => formatSpans(turns), least: 6, rank: 2 },
    {
      title: 'TOKENS',
      cell: ({ tokens }) => (tokens === null ? '' : `${formatCount(tokens.before)} → ${formatCount(tokens.after)}`),
      rank: 4,
    },
    { title: 'EPISODE', cell: ({ episode }) => episode ?? '', rank: 1 },
    { title: 'BY', cell: describeSummarizer, least: 8, rank: 5 },
  ];
}

function describeSummarizer({ kind, method, model, failure, episode }: Why): string {
  if (episode === null) return '';
  if (method === 'rules') return `rules, without ${model ?? 'the model'}${failure === null ? '' : `: ${toTerminalLine(failure, 300)}`}`;
  return kind === 'trimmed' ? 'long-term memory' : (model ?? '');
}

/** In the place of what left. */
function describeSubstitute(kind: Why['kind'], episode: string, id: string, turn: string): string | undefined {
  switch (kind) {
    case 'compacted':
    case 'trimmed':
      return `the summary ${episode} below: whole while it is among the newest, then in short; read_episode reads the turns again`;
    case 'truncated':
      return `a notice that something was left out, until the next summary; \`perdura debug context ${id} --compact\` makes one now`;
    case 'session-ended':
      return 'MEMORY.md, and what search_history finds; `perdura memory` and `perdura history` have both';
    case 'rewound':
      return `nothing, since a person rewound it; \`perdura fork ${id} --at ${turnNumber(turn)}\` goes on from it`;
    case 'returned':
    case 'other':
      return undefined;
  }
}
