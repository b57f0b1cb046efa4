/**
 * What waits for a person. A person decides by what stands here, and the words are a model's: arguments are shown as JSON in which
 * whatever could hide, move or look like something else is escaped.
 */
import type { Pending } from '../../client.js';
import type { JsonValue } from '../../records/message.js';
import { toTerminalJson, toTerminalLine, type StyledLine } from '../terminal/terminal-text.js';
import { formatTime } from './quantities.js';
import { renderTable, type Column, type Look } from './table.js';
import { isRecord } from '../../platform/json.js';

const LOST = '(the store does not have them)';
const ALTERED = '(changed in the store since the model asked: they will not run)';

/** One line each; their whole arguments are `renderApproval`'s. */
export function renderApprovals(approvals: readonly Pending[], look: Look): StyledLine[] {
  const columns: Column<Pending>[] = [
    { title: 'CONVERSATION', cell: ({ conversation }) => conversation, look: () => 'cyan', rank: 0 },
    { title: 'CALL', cell: ({ callId }) => callId, rank: 1 },
    { title: 'WHAT', cell: ({ kind, tool }) => (kind === 'question' ? 'answer' : shownName(tool)), look: () => 'yellow', rank: 2 },
    { title: 'ASKED', cell: ({ askedAt }) => formatTime(askedAt, look.timeFormat, look.now), rank: 5 },
    { title: 'EXPIRES', cell: ({ expiresAt }) => formatTime(expiresAt, look.timeFormat, look.now), rank: 4 },
    { title: 'ARGUMENTS', cell: (one) => (one.arguments === undefined ? missing(one) : shownArguments(one.arguments)), least: 12, rank: 3 },
  ];
  return renderTable(approvals, columns, look);
}

/** Everything about one: what would run, whole, and how to decide. */
export function renderApproval(one: Pending, { timeFormat, now }: Pick<Look, 'timeFormat' | 'now'>): StyledLine[] {
  const { conversation, callId, kind, tool, why, askedAt, expiresAt } = one;
  const times = `asked ${formatTime(askedAt, timeFormat, now)}, expires ${formatTime(expiresAt, timeFormat, now)}`;
  return [
    [{ text: conversation, style: 'cyan' }, { text: `  ${callId}  ` }, { text: describeWait(kind, tool), style: 'yellow' }],
    ...renderQuestion(one).map((line): StyledLine => [{ text: `  ${line}` }]),
    ...(why === undefined ? [] : [[{ text: `  why: ${toTerminalLine(why, 500)}` }] as StyledLine]),
    [{ text: `  ${times}`, style: 'dim' }],
    ...howToDecide(one).map((line): StyledLine => [{ text: `  ${line}`, style: 'dim' }]),
  ];
}

function describeWait(kind: Pending['kind'], tool: string): string {
  if (kind === 'client-tool') return `${shownName(tool)} waits for the client that runs it`;
  return kind === 'question' ? 'asks' : `Allow ${shownName(tool)}?`;
}

/** What would be saved, whole, before it is. `where`: how far it reaches, in words. */
export function renderStanding({ tool, arguments: given = null }: Pick<Pending, 'tool' | 'arguments'>, where: string): string[] {
  return [
    `From now on ${where}, ${shownName(tool)} runs without asking with exactly these arguments and no others:`,
    ...shownArguments(given, 2)
      .split('\n')
      .map((line) => `    ${line}`),
  ];
}

/** Why a call cannot be allowed for good; undefined where it can. */
export function standingRefusal({ kind, mayAlways, arguments: given, callId }: Pending): string | undefined {
  if (kind !== 'approval') return `${callId} waits for an answer: it cannot be answered for good`;
  if (!mayAlways) return `${callId} is asked about each time: it cannot be allowed for good`;
  return given === undefined ? `the arguments of ${callId} cannot be shown, so they cannot be allowed for good` : undefined;
}

/** What a person types elsewhere. */
function howToDecide({
  via,
  conversation,
  callId,
  kind,
  mayAlways,
}: Pick<Pending, 'via' | 'conversation' | 'callId' | 'kind' | 'mayAlways'>): string[] {
  const whose = conversation === via ? via : conversation;
  if (kind === 'question') return [`perdura answer ${whose} ${callId} YOUR ANSWER`];
  if (kind === 'client-tool')
    return [`perdura answer ${whose} ${callId} WHAT THE TOOL ANSWERS`, `perdura deny ${whose} ${callId} --note WHY`];
  return [`perdura approve ${whose} ${callId}${mayAlways ? ' [--always]' : ''}`, `perdura deny ${whose} ${callId} --note WHY`];
}

/** A question as the agent wrote it, with its choices; of anything else the arguments, whole. */
export function renderQuestion(one: Pick<Pending, 'kind' | 'arguments' | 'altered'>): string[] {
  if (one.arguments === undefined) return [missing(one)];
  const read = one.kind === 'question' ? questionIn(one.arguments) : undefined;
  if (read === undefined) return shownArguments(one.arguments, 2).split('\n');
  return [...lines(read.question), ...read.options.map((option, at) => `${at + 1}. ${toTerminalLine(option, 200)}`)];
}

function missing({ altered }: Pick<Pending, 'altered'>): string {
  return altered ? ALTERED : LOST;
}

/** JSON that says the same, with every blank but the plain one escaped too. */
export function shownArguments(value: JsonValue, indent?: number): string {
  return toTerminalJson(value, indent).replace(OTHER_BLANKS, (blank) => `\\u${blank.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** A tool's name may be anything that a server or a model made up. */
export function shownName(name: string): string {
  return /^[\w.:/-]{1,80}$/.test(name) ? name : toTerminalJson(name.slice(0, 80));
}

const OTHER_BLANKS = /[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]/g;

export function questionIn(given: JsonValue): { readonly question: string; readonly options: readonly string[] } | undefined {
  if (!isRecord(given)) return undefined;
  const { question, options } = given as { readonly question?: JsonValue; readonly options?: JsonValue };
  if (typeof question !== 'string') return undefined;
  const offered: readonly JsonValue[] = Array.isArray(options) ? (options as readonly JsonValue[]) : [];
  return { question, options: offered.filter((option) => typeof option === 'string') };
}

/** A question may have paragraphs. */
function lines(text: string): string[] {
  return text.split('\n').map((line) => toTerminalLine(line, 4_000));
}
