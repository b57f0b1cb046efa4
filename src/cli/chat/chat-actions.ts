/** What the commands of the chat answer. None of them goes to the agent. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Consolidation, Status, TurnResult } from '../../conversation/protocol/contract.js';
import type { Usage } from '../../records/message.js';
import type { AnswerAgainOptions } from '../../client.js';
import type { ChatSession } from './chat-session.js';
import { readModelName } from '../args/values.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { toMarkdown } from '../views/transcript.js';
import { withTimeoutFallback } from '../session/with-progress.js';
import { textOfDrawn, toTerminalLine, type StyledLine } from '../terminal/terminal-text.js';
import { describeOutcome, renderControl } from '../views/state.js';
import { formatQuantity, describeBranch, describeCached, describeModel, describePrefix, formatDuration } from '../views/quantities.js';
import { renderFound } from '../views/memory.js';
import { loadMeasure, renderTable, type Column } from '../views/table.js';
import { errorCode, errorMessage } from '../../platform/errors.js';

/** The card of `/status`. */
export function statusCard(id: string, status: Status): string {
  const { context, usage } = status;
  const { tokens, compactsAt = context.budget } = context;
  const share =
    compactsAt > 0 ? ` of ${count(compactsAt)}, from which older turns become memory (${Math.round((tokens / compactsAt) * 100)} %)` : '';
  const rows: [string, string | undefined][] = [
    ['conversation', id],
    ['title', status.title ?? undefined],
    ['agent', status.agent],
    ['model', status.model ?? 'not known before the first answer'],
    ['phase', status.phase],
    ['waits for', status.waitingFor],
    ['mode', status.mode === 'stepping' ? `stepping${status.stepLock === null ? '' : `, step ${status.stepLock} is running`}` : undefined],
    ['stopped by', status.pausedBy ?? undefined],
    ['next step', status.nextStep ?? undefined],
    ['turn', `${status.turn}, session ${status.session}${status.queued > 0 ? `, ${status.queued} queued` : ''}`],
    ['context', `${count(tokens)} tokens${share}`],
    ['cache', describePrefix(context)],
    ['last turn', status.lastError && `${status.lastError.type}: ${status.lastError.message}`],
    ['used', describeUsage(usage)],
    ['history', `${formatQuantity(status.historyEvents, 'event')} in this run`],
    [
      'refused',
      status.rejectedInputs.count > 0
        ? `${formatQuantity(status.rejectedInputs.count, 'input')}, the last: ${lastRefusal(status)}`
        : undefined,
    ],
  ];
  return rows.flatMap(([name, value]) => (value === undefined ? [] : [`  ${name.padEnd(12)}  ${toTerminalLine(value, 400)}`])).join('\n');
}

/** The table of `/cost`: the turns whose end this chat has seen, and the whole conversation. */
export function costTable(turns: readonly TurnResult[], whole: Usage): string {
  const rows = [...turns.slice(-10).map(({ turnId, usage }) => ({ name: turnId ?? 'reset', ...usage })), { name: 'whole', ...whole }];
  const lines = renderTable(rows, COST_COLUMNS, { measure: (text) => text.length });
  return lines.map((line) => `  ${textOfDrawn(line)}`).join('\n');
}

const COST_COLUMNS: readonly Column<Usage & { readonly name: string }>[] = [
  { title: '', cell: ({ name }) => name, rank: 0 },
  { title: 'in', cell: ({ inputTokens }) => count(inputTokens), align: 'right', rank: 1 },
  { title: 'cached', cell: ({ cachedTokens }) => count(cachedTokens), align: 'right', rank: 2 },
  { title: 'out', cell: ({ outputTokens }) => count(outputTokens), align: 'right', rank: 3 },
  { title: 'cost', cell: ({ costUsd }) => (costUsd === null ? 'not known' : `$${costUsd.toFixed(4)}`), align: 'right', rank: 4 },
];

/** Ends the session. `reply` is what is answered, `how` what has become of the messages; undefined where there were none. */
export async function resetNow({ client, id }: ChatSession): Promise<{ readonly reply: string; readonly how: string | undefined }> {
  const began = Date.now();
  const { reply, consolidation } = await client.reset(id);
  const took = Date.now() - began;
  if (consolidation !== 'raw-fallback') return { reply, how: describeConsolidation(consolidation, took, false) };
  return { reply, how: describeConsolidation(consolidation, took, await isStillOwed(client, id)) };
}

/** A raw fallback is written when the memory was late, and when no answer of the model was of use. */
export function describeConsolidation(consolidation: Consolidation, tookMs: number, isOwed: boolean): string | undefined {
  switch (consolidation) {
    case 'model':
      return 'long-term memory has it now';
    case 'nothing-to-do':
      return undefined;
    case 'raw-fallback':
      return isOwed
        ? `the memory was not ready in ${formatDuration(tookMs)}; it is completed later`
        : 'the model’s summary was of no use; HISTORY has the last messages as they were';
  }
}

/** Where no worker answers, it is: what memory owes a conversation stays until it is done. */
async function isStillOwed(client: ChatSession['client'], id: string): Promise<boolean> {
  const look = async (): Promise<boolean> => {
    const { scope, window } = await client.status(id);
    const memory = await client.scope(scope).status();
    return window.owed > 0 || memory === undefined || memory.queued.some(({ conversation }) => conversation === id);
  };
  return withTimeoutFallback(look(), true, 2000).catch(() => true);
}

/** Answers a turn anew; with a text, that takes its place. The note tells where the old one is. */
export async function answerAgain(
  { client, id, output }: ChatSession,
  { turn, text, ...options }: { readonly turn?: string; readonly text?: string } & AnswerAgainOptions,
): Promise<TurnResult> {
  const done = text === undefined ? await client.retry(id, options) : await client.edit(id, text, { turn, ...options });
  output.note(`(${describeBranch(id, done)})`);
  return done;
}

const CHAT_HITS = 5;

/** It does not go to the agent. */
export async function searchNow({ client, id, output }: ChatSession, question: string): Promise<StyledLine[]> {
  if (question === '') throw new CliError('write what to look for behind it: /search QUESTION', EXIT.usage);
  const { scope } = await client.status(id);
  const notes: string[] = [];
  const found = await client.scope(scope).search(question, { limit: CHAT_HITS, onNote: (note) => notes.push(note) });
  if (found.length === 0) notes.push(`nothing that was said in ${scope} fits`);
  const below = notes.map((text): StyledLine => [{ text, style: 'dim' }]);
  const hits = renderFound(found, { width: output.width(), timeFormat: 'relative', now: Date.now(), measure: await loadMeasure() });
  return [...hits, ...below];
}

export async function rename({ client, id }: ChatSession, title: string): Promise<string> {
  if (title === '') throw new CliError('write the title behind it: /rename TITLE', EXIT.usage);
  await client.rename(id, title);
  return `the conversation is called ${JSON.stringify(title)} now`;
}

export async function compactNow({ client, id }: ChatSession): Promise<string> {
  const outcome = await client.compact(id);
  if (outcome.kind === 'failed') throw new CliError(describeOutcome(outcome), EXIT.failed);
  return describeOutcome(outcome);
}

/** Never overwrites a file of that name that it did not write. */
export async function exportMarkdown({ client, id, config }: ChatSession, file: string): Promise<string> {
  const target = file === '' ? join(config.cwd, '.perdura', 'exports', `${id}.md`) : resolve(config.cwd, file);
  const { title } = await client.status(id);
  const text = toMarkdown(title ?? id, await client.history(id));
  try {
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, text, { flag: file === '' ? 'w' : 'wx' });
  } catch (cause) {
    const reason = errorCode(cause) === 'EEXIST' ? 'it is there already; name another' : errorMessage(cause);
    throw new CliError(`cannot write ${target}: ${reason}`, EXIT.failed, { cause });
  }
  return `written to ${target}`;
}

/** Without a name it says which answers. */
export async function chooseModel({ client, id }: ChatSession, name: string): Promise<string> {
  if (name !== '') await client.setModel(id, name === 'default' ? null : readModelName(name));
  const words = describeModel(await client.status(id));
  return name === ''
    ? `${words}\n/model provider/name chooses another, /model default that of the agent`
    : `${words}, from the next call on`;
}

function describeUsage(usage: Usage): string {
  const { inputTokens, outputTokens, costUsd } = usage;
  const cost = costUsd === null ? 'cost not known' : `$${costUsd.toFixed(4)}`;
  return `${count(inputTokens)} tokens in (${describeCached(usage) || 'none cached'}), ${count(outputTokens)} out, ${cost}`;
}

function lastRefusal({ rejectedInputs }: Status): string {
  const last = rejectedInputs.last.at(-1);
  return last === undefined ? '' : `${last.name}: ${last.reason}`;
}

function count(number: number): string {
  return number.toLocaleString('en-US');
}

/** Without a mode it says how things stand. */
export async function setMode({ client, id }: ChatSession, mode: string): Promise<StyledLine[]> {
  if (mode !== '' && mode !== 'auto' && mode !== 'stepping') {
    throw new CliError(`there is no mode ${mode}: write /mode auto or /mode stepping`, EXIT.usage);
  }
  return renderControl(mode === '' ? await client.control(id) : await client.setMode(id, mode));
}

/** Queues a line, and answers which turn it becomes. */
export async function queueLine({ client, id }: ChatSession, text: string): Promise<string> {
  const { messageId } = await client.message(id, text);
  for (let tries = 0; tries < 50; tries++) {
    const queued = (await client.queue(id)).find(({ event }) => event.kind === 'message' && event.messageId === messageId);
    if (queued?.event.kind === 'message') return queued.event.turnId;
    await sleep(100);
  }
  throw new CliError(`the line was sent to ${id}, and is not in its queue: \`perdura debug queue ${id}\` shows what is`, EXIT.failed);
}
