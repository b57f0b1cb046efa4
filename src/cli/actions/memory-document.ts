/** `perdura memory show`, `blame`, `diff`, `at`, `log`: MEMORY.md of a scope, now and as it was. */
import { agentConfigSchema } from '../../agents/agent-config.js';
import { agentsFolder } from '../../agents/agents-folder.js';
import { loadAgent } from '../../agents/load-agent.js';
import type { ScopeMemory } from '../../client.js';
import { memoryWorkflowId, type MemoryStatus } from '../../conversation/protocol/memory-contract.js';
import { utf8Length } from '../../records/text.js';
import { blame as blameLines, countedChange, diffMemory, versionAt } from '../../memory/documents/memory-diff.js';
import type { MemoryChange } from '../../records/memory/documents.js';
import { isoTime } from '../../records/memory/history-text.js';
import { NO_MEMORY_VERSION } from '../../records/memory/memory-lines.js';
import { parseMoment } from '../../records/time.js';
import type { CliContext } from '../session/context.js';
import { plain, type StyledLine } from '../terminal/terminal-text.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { withTimeoutFallback } from '../session/with-progress.js';
import { renderBlame, renderDiff, renderLog, shortVersion } from '../views/memory-document.js';
import { formatQuantity, formatCount, formatTime, formatUsage } from '../views/quantities.js';
import { print, withMemory, type MemoryDesk, type ScopeWanted } from '../session/with-memory.js';

export function showMemory(context: CliContext, wanted: ScopeWanted): Promise<number> {
  return withMemory(context, wanted, {}, async (desk) => {
    const { memory, config, look, withSlowNotice } = desk;
    const { scope } = memory;
    const [{ text, version }, changes, proposals, limit] = await withSlowNotice(
      `reading the memory of ${scope}`,
      Promise.all([memory.text(), memory.changes(), memory.proposals(), limitOf(agentsFolder(config), scope)]),
    );
    const status = await withSlowNotice(
      `asking ${memoryWorkflowId(scope)}`,
      withTimeoutFallback<MemoryStatus | undefined | null>(memory.status(), null),
    );
    const open = proposals.filter(({ state }) => state === 'open').length;
    const bytes = utf8Length(text);
    const last = changes.at(-1);
    const when = last === undefined ? '' : ` · ${last.cause} ${formatTime(Math.round(last.ts * 1000), look.timeFormat, look.now)}`;
    const size = `${formatCount(bytes)} of ${formatCount(limit)} bytes${bytes > limit ? ', to be compressed' : ''}`;
    print(desk, {
      data: { scope, version, text, bytes, limit, status: status ?? null, openProposals: open },
      lines: linesOf(text),
      notes: [
        ...(text.trim() === '' ? [`nothing is remembered of ${scope} yet`] : [`version ${shortVersion(version)} · ${size}${when}`]),
        statusInWords(scope, status),
        ...(open === 0 ? [] : [`${open} ${open === 1 ? 'line waits' : 'lines wait'} for a person: perdura memory review ${scope}`]),
      ],
      temporal: ['workflow', 'query', '--name', 'status', '-w', memoryWorkflowId(scope)],
    });
    return EXIT.ok;
  });
}

export function blameMemory(context: CliContext, wanted: ScopeWanted): Promise<number> {
  return withMemory(context, wanted, {}, async (desk) => {
    const { scope } = desk.memory;
    const { text, version, changes } = await readWhole(desk);
    const lines = blameLines(text, changes);
    print(desk, {
      data: { scope, version, lines },
      records: lines,
      lines: renderBlame(lines, desk.look),
      notes: lines.length === 0 ? [`nothing is remembered of ${scope} yet`] : [],
      temporal: describing(scope),
    });
    return EXIT.ok;
  });
}

export interface DiffWanted extends ScopeWanted {
  readonly from?: string;
  readonly to?: string;
}

export function diffOfMemory(context: CliContext, wanted: DiffWanted): Promise<number> {
  return withMemory(context, wanted, {}, async (desk) => {
    const { memory, withSlowNotice } = desk;
    const { scope } = memory;
    const { version: present, changes } = await readWhole(desk);
    const [from, to] = versionsBetween(changes, present, wanted);
    const [before, after] = await withSlowNotice('reading both versions', Promise.all([textOf(memory, from), textOf(memory, to)]));
    const lines = diffMemory(before, after);
    const isSame = lines.every(({ kind }) => kind === 'kept');
    print(desk, {
      data: { scope, from, to, lines },
      records: lines,
      lines: isSame ? [] : renderDiff(lines, desk.look),
      notes: [isSame ? 'no line is another' : `from ${shortVersion(from)} to ${shortVersion(to)}`],
      temporal: describing(scope),
    });
    return EXIT.ok;
  });
}

export function memoryAt(context: CliContext, date: string, wanted: ScopeWanted): Promise<number> {
  const ts = parseMoment(date, 'end');
  if (ts === undefined) throw new CliError(`${JSON.stringify(date)} is no date: ${HOW_DATES_ARE_WRITTEN}`, EXIT.usage);
  return withMemory(context, wanted, {}, async (desk) => {
    const { scope } = desk.memory;
    const { changes } = await readWhole(desk);
    const version = versionAt(changes, ts);
    const text = await textOf(desk.memory, version);
    const since = changes.findLast((change) => change.ts <= ts);
    print(desk, {
      data: { scope, at: isoTime(ts), version, text },
      lines: linesOf(text),
      notes: [
        since === undefined || text.trim() === ''
          ? `nothing was remembered of ${scope} at ${isoTime(ts)}`
          : `version ${shortVersion(version)}, in force since ${isoTime(since.ts)} (${since.cause})`,
      ],
      temporal: describing(scope),
    });
    return EXIT.ok;
  });
}

export function logOfMemory(context: CliContext, wanted: ScopeWanted, { limit }: { readonly limit: number }): Promise<number> {
  return withMemory(context, wanted, {}, async (desk) => {
    const { memory, withSlowNotice } = desk;
    const { scope } = memory;
    const { changes } = await readWhole(desk);
    const newest = changes.slice(-limit).reverse();
    const counted = await withSlowNotice(
      `counting the lines of ${formatQuantity(newest.length, 'change')}`,
      Promise.all(newest.map((one) => countedChange(memory, one))),
    );
    print(desk, {
      data: { scope, changes: counted },
      records: counted,
      lines: counted.length === 0 ? [] : renderLog(counted, desk.look),
      notes: [
        ...(counted.length === 0 ? [`nothing was ever written into the memory of ${scope}`] : []),
        ...(changes.length > newest.length ? [`the newest ${newest.length} of ${changes.length}; --limit shows more`] : []),
      ],
      temporal: ['workflow', 'show', '-w', memoryWorkflowId(scope)],
    });
    return EXIT.ok;
  });
}

const HOW_DATES_ARE_WRITTEN = 'write 2026-02-27 or 2026-02-27T14:30, in UTC unless a zone stands behind it';

/** What a person has just written with an editor becomes a change when the text is read: so that comes first. */
async function readWhole({
  memory,
  withSlowNotice,
}: MemoryDesk): Promise<{ text: string; version: string; changes: readonly MemoryChange[] }> {
  const read = async (): Promise<{ text: string; version: string; changes: readonly MemoryChange[] }> => {
    const { text, version } = await memory.text();
    return { text, version, changes: await memory.changes() };
  };
  return withSlowNotice(`reading the memory of ${memory.scope}`, read());
}

async function textOf(memory: ScopeMemory, version: string): Promise<string> {
  if (version === NO_MEMORY_VERSION) return '';
  const text = await memory.textOf(version);
  if (text !== undefined) return text;
  throw new CliError(`the text of version ${shortVersion(version)} is not kept any more`, EXIT.notFound);
}

/** The last change, or from that on to now, or to that from what was before it. */
function versionsBetween(changes: readonly MemoryChange[], present: string, { from, to }: DiffWanted): [from: string, to: string] {
  const end = to === undefined ? present : toVersion(changes, to, 'end');
  if (from !== undefined) return [toVersion(changes, from, 'beginning'), end];
  return [changes.findLast(({ version }) => version === end)?.from ?? NO_MEMORY_VERSION, end];
}

/** A date, a version, or the beginning of one. */
function toVersion(changes: readonly MemoryChange[], said: string, ofDay: 'beginning' | 'end'): string {
  const ts = parseMoment(said, ofDay);
  if (ts !== undefined) return versionAt(changes, ts);
  const known = new Set(changes.flatMap((change) => [change.from, change.version]).concat(NO_MEMORY_VERSION));
  const beginning = said.replace(/…$/, '');
  const found = known.has(beginning) ? [beginning] : [...known].filter((version) => version.startsWith(beginning));
  const [first, second] = found;
  if (first === undefined) {
    throw new CliError(
      `there is no version ${said}; \`perdura memory log\` lists them; for a date, ${HOW_DATES_ARE_WRITTEN}`,
      EXIT.notFound,
    );
  }
  if (second !== undefined) throw new CliError(`${said} is the beginning of several versions: write more of it`, EXIT.usage);
  return first;
}

/** As the scope's own agent has it: a consolidation goes by the agent that asked. */
async function limitOf(agentsDir: string, scope: string): Promise<number> {
  const config = await loadAgent(agentsDir, scope).then(
    (agent) => agent.config,
    () => agentConfigSchema.parse({}),
  );
  return config.memory.maxMemorySize;
}

function statusInWords(scope: string, status: MemoryStatus | undefined | null): string {
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

function linesOf(text: string): StyledLine[] {
  const lines = text.replace(/\r?\n$/, '').split(/\r?\n/);
  return text.trim() === '' ? [] : lines.map(plain);
}

function describing(scope: string): readonly string[] {
  return ['workflow', 'describe', '-w', memoryWorkflowId(scope)];
}
