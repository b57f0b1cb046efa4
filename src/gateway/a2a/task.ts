/** A turn as a task of A2A: its id, its objects as they are on the wire, its state, and its live events as updates. Pure. */
import type { Pending } from '../../client.js';
import type { StopReason, TurnResult } from '../../conversation/protocol/contract.js';
import { partSchema } from '../../conversation/protocol/message.js';
import { isFromPerson, shownText, type Entry, type JsonObject, type JsonValue } from '../../records/message.js';
import { describeClientWait } from '../core/client-calls.js';
import { schemaIn, shortfall, textsIn } from '../core/answer.js';
import { isRecord } from '../../platform/json.js';
import { turnId } from '../../records/identity.js';
import type { TurnName } from '../../client/turns/turn-status.js';
import { toConversationId } from '../core/read-body.js';
import { callTexts, type TurnView } from '../../records/turn-view.js';
import type { Change } from '../core/turn-stream.js';

export type State =
  | 'TASK_STATE_SUBMITTED'
  | 'TASK_STATE_WORKING'
  | 'TASK_STATE_INPUT_REQUIRED'
  | 'TASK_STATE_COMPLETED'
  | 'TASK_STATE_FAILED'
  | 'TASK_STATE_CANCELED'
  | 'TASK_STATE_REJECTED';

export type Part = { readonly text: string } | { readonly data: JsonValue };

export interface Message {
  readonly messageId: string;
  readonly contextId: string;
  readonly taskId?: string;
  readonly role: 'ROLE_USER' | 'ROLE_AGENT';
  readonly parts: readonly Part[];
}

export interface Status {
  readonly state: State;
  readonly message?: Message;
  readonly timestamp?: string;
}

interface Artifact {
  readonly artifactId: string;
  readonly name: string;
  readonly parts: readonly Part[];
  readonly metadata?: Readonly<Record<string, JsonValue>>;
}

export interface Task {
  readonly id: string;
  readonly contextId: string;
  readonly status: Status;
  readonly artifacts: readonly Artifact[];
  readonly history: readonly Message[];
  readonly metadata?: Readonly<Record<string, JsonValue>>;
}

interface OfTask {
  readonly taskId: string;
  readonly contextId: string;
}

export type Update =
  | { readonly task: Task }
  | { readonly message: Message }
  | { readonly statusUpdate: OfTask & { readonly status: Status; readonly metadata?: Readonly<Record<string, JsonValue>> } }
  | { readonly artifactUpdate: OfTask & { readonly artifact: Artifact; readonly append: boolean; readonly lastChunk: boolean } };

/**
 * The context, as the client names it, and the turn are in the id of a task, so that any gateway finds both, and the client reads the context
 * that it has chosen.
 */
export interface TaskName extends TurnName {
  readonly task: string;
  /** The conversation, as the client names it. */
  readonly context: string;
}

export const MAX_CONTEXT = 256;
const MAX_TASK_ID = 1_500;
const NAME = /^([^]{1,256}):turn_(\d{1,15})$/;

export function taskName(context: string, turn: string): TaskName {
  const task = Buffer.from(`${context}:${turn}`).toString('base64url');
  return { task, context, conversation: toConversationId(context), turn };
}

/** Undefined for what no gateway can have given out. */
export function readTaskId(task: string): TaskName | undefined {
  if (task.length > MAX_TASK_ID) return undefined;
  const [, context, number] = NAME.exec(Buffer.from(task, 'base64url').toString()) ?? [];
  if (context === undefined) return undefined;
  const name = taskName(context, turnId(Number(number)));
  return name.task === task ? name : undefined;
}

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
const STATES = {
  stop: 'TASK_STATE_CANCELED',
  refusal: 'TASK_STATE_REJECTED',
  failure: 'TASK_STATE_FAILED',
  length: 'TASK_STATE_FAILED',
} as const;

const WORDS: Partial<Record<StopReason, string>> = {
  refused: 'The model refused to answer.',
  failed: 'The turn failed.',
  'tool-limit': 'It has called as many tools as it may in one turn.',
  budget: 'It has used all that it may.',
};

const TERMINAL: readonly State[] = ['TASK_STATE_COMPLETED', 'TASK_STATE_FAILED', 'TASK_STATE_CANCELED', 'TASK_STATE_REJECTED'];

export function decideState({ end, waiting, isQueued = false }: TaskFacts): State {
  const short = end && shortfall(end);
  if (end) return short === undefined ? 'TASK_STATE_COMPLETED' : STATES[short];
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

function renderStatus(facts: TaskFacts): Status {
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
function renderArtifacts({ name, entries, end }: TaskFacts): readonly Artifact[] {
  const recorded = textsIn(entries.filter(({ turn }) => turn === name.turn));
  const texts = recorded.length === 0 && end !== undefined && end.text !== '' ? [end.text] : recorded;
  const wanted = schemaIn(entries) !== undefined;
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

const CODE_LENGTH = 12;

/** Long enough that no other arguments have it by design. */
export function shortenHash({ hash }: Pick<Pending, 'hash'>): string {
  return hash.slice(0, CODE_LENGTH);
}

/** Questions in words for people, and as data for programs; the words name the form of an answer, or who else can give it. */
function askingParts(waiting: readonly Pending[]): readonly Part[] {
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

export interface TaskEvents {
  /** Its turn has begun. */
  begin(): Update;
  /** Its texts have come so far. */
  show(view: TurnView): readonly Update[];
  /** All other events of the task, except its end and its questions. */
  take(change: Change): readonly Update[];
  /** It waits for a person. */
  ask(facts: TaskFacts): readonly Update[];
  end(facts: TaskFacts): readonly Update[];
  /** As they are now. */
  artifacts(): readonly Artifact[];
}

interface Shown {
  readonly text: string;
  readonly isOpen: boolean;
}

const MAX_WORDS = 500;

/**
 * A turn's live events as the updates of a task.
 *
 * - Each text of the model is an artifact, in appended chunks.
 * - The text of a failed attempt is taken back: nothing replaces its artifact, and the next attempt is appended to that.
 * - At the end every artifact is as recorded: missing text is appended, different text is replaced. The last update has the final state.
 */
export function createTaskEvents(name: TaskName): TaskEvents {
  const ids = { taskId: name.task, contextId: name.context };
  const shown: Shown[] = [];

  const update = (at: number, part: Part, how: { append: boolean; lastChunk: boolean }): Update => ({
    artifactUpdate: { ...ids, artifact: artifact(name, at, part), ...how },
  });
  const working = (metadata?: Readonly<Record<string, string>>, words?: string): Update => {
    const status: Status = {
      state: 'TASK_STATE_WORKING',
      ...(words !== undefined && { message: byAgent(name, 'status', [{ text: words.slice(0, MAX_WORDS) }]) }),
    };
    return { statusUpdate: { ...ids, status, ...(metadata && { metadata }) } };
  };

  /** `isOver`: nothing more comes of any. */
  const turnInto = (next: readonly { readonly part: Part; readonly isOpen: boolean }[], isOver: boolean): Update[] => {
    const updates: Update[] = [];
    for (const [at, { part, isOpen }] of next.entries()) {
      const was = shown[at];
      const text = 'text' in part ? part.text : undefined;
      if (was === undefined || text?.startsWith(was.text) !== true) {
        updates.push(update(at, part, { append: false, lastChunk: !isOpen }));
      } else if (text !== was.text || (was.isOpen && !isOpen)) {
        updates.push(update(at, { text: text.slice(was.text.length) }, { append: true, lastChunk: !isOpen }));
      }
      shown[at] = { text: text ?? '', isOpen };
    }
    for (const [at, { text }] of shown.entries()) {
      if (at < next.length || text === '') continue;
      updates.push(update(at, { text: '' }, { append: false, lastChunk: isOver }));
      shown[at] = { text: '', isOpen: !isOver };
    }
    return updates;
  };

  return {
    begin: () => working(),
    show: (view) =>
      turnInto(
        callTexts(view).map(({ text, isOpen }) => ({ part: { text }, isOpen })),
        false,
      ),
    take(change) {
      switch (change.kind) {
        case 'tool-started':
          return [working({ tool: change.name, callId: change.callId })];
        case 'decided':
          return [working({ decided: change.decision, callId: change.callId })];
        case 'waiting':
          return [working(undefined, change.for)];
        default:
          return [];
      }
    },
    ask: (facts) => [{ statusUpdate: { ...ids, status: renderStatus(facts) } }],
    end(facts) {
      const texts = renderArtifacts(facts).map(({ parts: [part = { text: '' }] }) => ({ part, isOpen: false }));
      const stopReason = facts.end?.stopReason;
      const metadata = stopReason !== undefined && { metadata: { stopReason } };
      return [...turnInto(texts, true), { statusUpdate: { ...ids, status: renderStatus(facts), ...metadata } }];
    },
    artifacts: () => shown.flatMap(({ text }, at) => (text === '' ? [] : [artifact(name, at, { text })])),
  };
}
