/** A turn as a task. Pure. */
import type { Pending } from '../../client.js';
import type { StopReason, TurnResult } from '../../conversation/protocol/contract.js';
import { partSchema } from '../../conversation/protocol/message.js';
import { isFromPerson, shownText, type Entry, type JsonObject, type JsonValue } from '../../records/message.js';
import { describeClientWait } from '../core/client-calls.js';
import { textsIn } from '../core/answer.js';
import { shortenHash } from './answers.js';
import type { TaskName } from './task-id.js';
import type { Artifact, Message, Part, State, Status, Task } from './wire.js';
import { isRecord } from '../../platform/json.js';

export interface TaskFacts {
  readonly name: TaskName;
  /** The entries of its turn. */
  readonly entries: readonly Entry[];
  /** Absent while it goes on. */
  readonly end?: Pick<TurnResult, 'stopReason' | 'error' | 'text'>;
  /** Other turns come before this one. */
  readonly isQueued?: boolean;
  /** Its questions to a person. */
  readonly waiting: readonly Pending[];
}

/** A task whose answer is not whole is no success, and the status states why. */
const STATES: Partial<Record<StopReason, State>> = {
  interrupted: 'TASK_STATE_CANCELED',
  withdrawn: 'TASK_STATE_CANCELED',
  refused: 'TASK_STATE_REJECTED',
  failed: 'TASK_STATE_FAILED',
  'tool-limit': 'TASK_STATE_FAILED',
  budget: 'TASK_STATE_FAILED',
};

const WORDS: Partial<Record<StopReason, string>> = {
  refused: 'The model refused to answer.',
  failed: 'The turn failed.',
  'tool-limit': 'It has called as many tools as it may in one turn.',
  budget: 'It has used all that it may.',
};

const TERMINAL: readonly State[] = ['TASK_STATE_COMPLETED', 'TASK_STATE_FAILED', 'TASK_STATE_CANCELED', 'TASK_STATE_REJECTED'];

export function decideState({ end, waiting, isQueued = false }: TaskFacts): State {
  if (end) return STATES[end.stopReason] ?? 'TASK_STATE_COMPLETED';
  if (waiting.length > 0) return 'TASK_STATE_INPUT_REQUIRED';
  return isQueued ? 'TASK_STATE_SUBMITTED' : 'TASK_STATE_WORKING';
}

export function isTerminal(facts: TaskFacts): boolean {
  return TERMINAL.includes(decideState(facts));
}

/** `historyLength` counts from the end; absent: all. */
export function renderTask(
  facts: TaskFacts,
  { historyLength, artifacts }: { historyLength?: number; artifacts?: readonly Artifact[] } = {},
): Task {
  const { name, end } = facts;
  const history = renderHistory(facts);
  return {
    id: name.task,
    contextId: name.context,
    status: renderStatus(facts),
    artifacts: artifacts ?? renderArtifacts(facts),
    history: historyLength === undefined ? history : historyLength <= 0 ? [] : history.slice(-historyLength),
    ...(end && { metadata: { stopReason: end.stopReason } }),
  };
}

export function renderStatus(facts: TaskFacts): Status {
  const { name, entries, end, waiting } = facts;
  const timestamp = waiting.length > 0 ? Math.max(...waiting.map(({ askedAt }) => askedAt)) : lastTime(entries);
  const words = end?.error?.message ?? (end && WORDS[end.stopReason]);
  const parts: readonly Part[] = end ? (words === undefined ? [] : [{ text: words }]) : askingParts(waiting);
  return {
    state: decideState(facts),
    ...(parts.length > 0 && { message: byAgent(name, 'status', parts) }),
    ...(timestamp !== undefined && { timestamp: new Date(timestamp).toISOString() }),
  };
}

export function lastTime(entries: readonly Entry[]): number | undefined {
  const ts = entries.at(-1)?.ts;
  return ts === undefined ? undefined : ts * 1000;
}

/** Each text of the model is one artifact, unchanged; an answer that had to match a schema is data. */
export function renderArtifacts({ name, entries, end }: TaskFacts): readonly Artifact[] {
  const recorded = textsIn(entries.filter(({ turn }) => turn === name.turn));
  const texts = recorded.length === 0 && end !== undefined && end.text !== '' ? [end.text] : recorded;
  const wanted = entries.some(({ message }) => isFromPerson(message) && partSchema(shownText(message.text)).output !== undefined);
  return texts.map((text, at) => {
    const data = wanted && end?.stopReason === 'end' && at === texts.length - 1 ? objectIn(text) : undefined;
    return artifact(name, at, data === undefined ? { text } : { data });
  });
}

export function artifact({ turn }: TaskName, at: number, part: Part): Artifact {
  return { artifactId: `${turn}-${at + 1}`, name: 'answer', parts: [part] };
}

function objectIn(text: string): JsonObject | undefined {
  try {
    const data = JSON.parse(text) as JsonValue;
    return isRecord(data) ? (data as JsonObject) : undefined;
  } catch {
    return undefined;
  }
}

export function byAgent({ task, context, turn }: TaskName, what: string, parts: readonly Part[]): Message {
  return { messageId: `${turn}-${what}`, contextId: context, taskId: task, role: 'ROLE_AGENT', parts };
}

/** Questions in words for people, and as data for programs; the words name the form of an answer, or who else can give it. */
export function askingParts(waiting: readonly Pending[]): readonly Part[] {
  if (waiting.length === 0) return [];
  const persons = waiting.filter(({ kind }) => kind !== 'client-tool');
  const words = persons.map((pending) => {
    if (pending.kind === 'question') return questionIn(pending.arguments) ?? pending.target;
    const what = `${pending.tool} ${pending.target}`.trim();
    return `Allow this call: ${what}? Answer "approve ${shortenHash(pending)}" or "deny ${shortenHash(pending)}".`;
  });
  const asks = waiting.map(({ kind, callId, tool, target, hash, arguments: input, conversation, via, expiresAt }) => ({
    ...{ kind, callId, tool, target, hash, expiresAt: new Date(expiresAt).toISOString() },
    ...(input !== undefined && { arguments: input }),
    ...(conversation !== via && { conversation }),
  }));
  const client = describeClientWait(waiting[0]?.via ?? '', waiting);
  return [{ text: [...words, ...(client === undefined ? [] : [client])].join('\n\n') }, { data: { asks } }];
}

function questionIn(input: JsonValue | undefined): string | undefined {
  const { question, options } = (input ?? {}) as { readonly question?: JsonValue; readonly options?: readonly JsonValue[] };
  if (typeof question !== 'string') return undefined;
  return Array.isArray(options) ? `${question} (${options.join(', ')})` : question;
}

const QUESTION_TOOL = 'ask_user';

/** The messages to the agent, and its questions; its answers are artifacts. */
function renderHistory({ name, entries }: TaskFacts): readonly Message[] {
  const byUser = (messageId: string, text: string): Message => ({
    ...{ messageId, contextId: name.context, taskId: name.task, role: 'ROLE_USER', parts: [{ text }] },
  });
  return entries.flatMap((entry): Message[] => {
    const { message } = entry;
    if (isFromPerson(message)) return [byUser(entry.messageId ?? `${name.turn}-${entry.seq}`, partSchema(shownText(message.text)).text)];
    if (message.role === 'tool' && message.name === QUESTION_TOOL) return [byUser(`${message.callId}-answer`, shownText(message.text))];
    if (message.role !== 'assistant') return [];
    return message.blocks.flatMap((block) => {
      const question = block.kind === 'tool-call' && block.name === QUESTION_TOOL ? questionIn(block.input) : undefined;
      return question === undefined || block.kind !== 'tool-call'
        ? []
        : [{ ...byAgent(name, '', [{ text: question }]), messageId: block.callId }];
    });
  });
}
