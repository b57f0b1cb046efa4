/**
 * Tools that the client runs: as a request brings them, and their calls as protocols show them, with ids from which any gateway finds
 * conversation, turn and call. Such an id gives no right: who answers must be the one whose conversation it is (supplied-history.ts).
 */
import type { Pending } from '../../client.js';
import { invalid } from './errors.js';
import { isClientTool, readClientTools, resultText, withoutPrefix } from '../../conversation/protocol/message.js';
import { ID_PATTERN } from '../../conversation/protocol/contract.js';
import type { Approval } from '../../conversation/protocol/human-input.js';
import { shownText, sourcesIn, type ClientTool, type Entry, type JsonValue, type Media } from '../../records/message.js';
import { isoTime } from '../../records/text.js';
import { clientToolsRefusal } from '../../tools/client-tools.js';

export interface ClientCall {
  readonly callId: string;
  /** As the client calls the tool. */
  readonly name: string;
  readonly input: JsonValue;
}

interface CallName {
  readonly conversation: string;
  readonly turn: string;
  readonly callId: string;
}

/** The answer of a tool, as the client states it. */
export interface ToolAnswer {
  readonly id: string;
  readonly output: string;
  readonly isError: boolean;
  /** Files of it: they reach the model in a message after the results. */
  readonly media?: Media;
}

/** Results are text: words stand in the place of files, which not every model takes there. */
export function toAnswer({ media = {}, ...answer }: ToolAnswer): ToolAnswer {
  const files = describeFiles(media);
  if (files === '') return answer;
  const words = `[${files}: in the message after the results]`;
  return { ...answer, output: answer.output === '' ? words : `${answer.output}\n${words}`, media };
}

export function describeFiles(media: Media): string {
  return sourcesIn(media).map(describeFile).join(', ');
}

export function describeFile({ kind, source: { mediaType } }: ReturnType<typeof sourcesIn>[number]): string {
  return mediaType.includes('octet-stream') ? `a file among the ${kind}` : mediaType;
}

const NAME = /^(.{1,64}):((turn_\d{4,15})\/c\d{1,6})$/;

export function publicCallId(conversation: string, callId: string, prefix = 'call_'): string {
  return `${prefix}${Buffer.from(`${conversation}:${callId}`).toString('base64url')}`;
}

/** Undefined for what no gateway has given out: a call of another server's, in a history that the client has brought along. */
export function readCallId(id: string): CallName | undefined {
  const [, encoded = ''] = /^(?:call|toolu)_([\w-]{1,160})$/.exec(id) ?? [];
  const [, conversation = '', callId = '', turn = ''] = NAME.exec(Buffer.from(encoded, 'base64url').toString()) ?? [];
  return ID_PATTERN.test(conversation) ? { conversation, callId, turn } : undefined;
}

/** In the order in which they were made. */
export function callsIn({ message }: Entry): readonly ClientCall[] {
  if (message.role !== 'assistant') return [];
  return message.blocks.flatMap((block) =>
    block.kind === 'tool-call' && isClientTool(block.name)
      ? [{ callId: block.callId, name: withoutPrefix(block.name), input: block.input }]
      : [],
  );
}

type Result = Extract<Entry['message'], { readonly role: 'tool' }>;

export function resultsByCall(entries: readonly Entry[]): ReadonlyMap<string, Result> {
  return new Map(entries.flatMap(({ message }) => (message.role === 'tool' ? [[message.callId, message] as const] : [])));
}

/** The very answer is recorded already: the same request came twice. */
export function isSameAnswer(result: Result, { output, isError }: ToolAnswer): boolean {
  return result.outcome === (isError ? 'error' : 'ok') && shownText(result.text) === resultText(output);
}

/** Calls that the client received: it has not seen those that were refused at once or never began. */
export function callsForClient(entry: Entry, results: ReadonlyMap<string, Result>): readonly ClientCall[] {
  return callsIn(entry).filter(({ callId }) => {
    const outcome = results.get(callId)?.outcome;
    return outcome !== 'rejected' && outcome !== 'cancelled';
  });
}

/** Where an answer ends, because the client has to act next. */
export interface Pause {
  /** Slot of the message with these calls. */
  readonly slot: number;
  readonly ids: readonly string[];
}

/** The first pause after slot `from`, as the store and the conversation have it; for what the live events no longer show. */
export function pauseAfter(entries: readonly Entry[], waiting: readonly Approval[], from: number): Pause | undefined {
  const results = resultsByCall(entries);
  const open = waiting.filter(({ kind }) => kind === 'client-tool');
  const again = open.filter(({ askedIn }) => askedIn === from).map(({ callId }) => callId);
  if (again.length > 0) return { slot: from, ids: again };
  for (const entry of entries) {
    if (entry.slot <= from) continue;
    const ids = callsForClient(entry, results)
      .map(({ callId }) => callId)
      .filter((callId) => results.has(callId) || open.some((one) => one.callId === callId));
    if (ids.length > 0) return { slot: entry.slot, ids };
  }
  return undefined;
}

/** What a request says of the calls of its tools. */
export interface ToolChoice {
  /** One of them must be called next. */
  readonly mustCall?: boolean;
  /** The model has these of them alone; absent: all. */
  readonly names?: readonly string[];
  /** An answer has one call at most. */
  readonly single?: boolean;
}

/** Checked before anything is sent, as the conversation takes them and as providers do. */
export function checkTools(all: readonly ClientTool[], { mustCall, names, single }: ToolChoice = {}): readonly ClientTool[] {
  const tools = all.filter(({ name }) => mustCall || !names || names.includes(name));
  const unknown = names?.find((name) => !all.some((tool) => tool.name === name));
  if (unknown !== undefined || (mustCall && (names ?? all).length === 0)) {
    throw invalid(`tool_choice names no tool of the request${unknown === undefined ? '' : `: ${unknown.slice(0, 64)}`}`, 'tool_choice');
  }
  const read = readClientTools(tools);
  if (!read.ok) throw invalid(read.reason.replace(/^message\./, ''), 'tools');
  const refusal = clientToolsRefusal(read.value);
  if (refusal !== undefined) throw invalid(refusal, 'tools');
  return read.value.map((tool) => ({
    ...tool,
    ...(mustCall && (names?.includes(tool.name) ?? true) && { mustCall: true }),
    ...(single && { single: true }),
  }));
}

/** For those who came by another way: what it waits for, and who can answer; undefined where it waits for no tool of a client. */
export function describeClientWait(conversation: string, waiting: readonly Pending[]): string | undefined {
  const calls = waiting.filter(({ kind }) => kind === 'client-tool');
  const [first] = calls;
  if (!first) return undefined;
  const names = calls.map(({ tool, callId }) => `${withoutPrefix(tool)} (${callId})`).join(', ');
  const until = isoTime(Math.min(...calls.map(({ expiresAt }) => expiresAt)));
  return (
    `${conversation} waits for what ${names} answers, until ${until}. The client that brought this tool runs it and answers; ` +
    `"perdura answer ${conversation} ${first.callId} WHAT IT ANSWERS" answers in its place, and an interrupt ends the wait.`
  );
}
