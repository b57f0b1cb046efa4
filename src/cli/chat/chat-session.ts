/** What the chat is about: one conversation, and what the command knows of it. */
import { mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import writeFileAtomic from 'write-file-atomic';
import { refuseUnusableAgent } from '../services/before-start.js';
import type { Services } from '../services/services.js';
import { withSlowNotice } from '../session/with-progress.js';
import { CliError, EXIT } from '../terminal/exit.js';
import type { Person } from '../terminal/input.js';
import type { Output } from '../terminal/output.js';
import { toTerminalLine } from '../terminal/terminal-text.js';
import type { PerduraClient } from '../../client.js';
import { ClientError } from '../../client/errors.js';
import type { Config } from '../../config.js';
import { CONVERSATION_PATTERN, type Status } from '../../conversation/protocol/contract.js';
import type { ControlMode } from '../../conversation/protocol/stepping.js';
import { explainEnd } from '../../insight/turns.js';
import { answerText, isFromPerson, shownText } from '../../records/message.js';

export interface ChatSession {
  readonly client: PerduraClient;
  readonly config: Config;
  readonly output: Output;
  readonly id: string;
  /** Of the conversation's page, where it is known. */
  readonly link?: string;
  /** Where this command has started the worker (services.ts). */
  readonly watchWorker?: Services['watchWorker'];
  /** That answers next, as `provider/name`; absent where only the worker knows it, before the first turn. */
  readonly model?: string;
  /** True when this command began the conversation. */
  readonly isNew: boolean;
  /** True when it was running before this command. */
  readonly wasOpen: boolean;
  /** It waits for each step, as it was when we came. */
  readonly isStepped: boolean;
  /** Turns that were running or queued when we came, oldest first. */
  readonly openTurns: readonly string[];
  /** To be called with each message, before it is sent. */
  noteSpoken(): void;
  wasSpoken(): boolean;
}

export async function openSession(
  client: PerduraClient,
  config: Config,
  output: Output,
  options: {
    readonly resume?: string;
    readonly agent?: string;
    readonly model?: string;
    readonly mode?: ControlMode;
    /** US dollars. */
    readonly budget?: number;
    /** Of the agent, where the worker is of this very folder: a conversation that names none goes by it. */
    readonly ownModel?: string;
    /** Its one message gives it no title. */
    readonly isOneShot?: boolean;
    readonly findLink?: (id: string) => string | undefined;
    readonly watchWorker?: Services['watchWorker'];
  },
): Promise<ChatSession> {
  const { resume, agent, model, mode, budget, isOneShot, ownModel, findLink, watchWorker } = options;
  let openTurns: readonly string[] = [];
  let answersNext = resume === undefined ? (model ?? ownModel) : undefined;
  let isStepped = mode === 'stepping';
  let wasOpen = false;
  let id: string;
  if (resume === undefined) {
    await refuseUnusableAgent({ ...config, taskQueue: client.taskQueue }, agent);
    ({ id } = await client.start(undefined, {
      ...(isOneShot && { autoTitle: false }),
      agent,
      model,
      // An agent's default would leave it waiting for a step.
      mode: isOneShot ? (mode ?? 'auto') : mode,
      ...(budget === undefined ? {} : { budget: { maxCostUsd: budget } }),
    }));
  } else {
    id = resume;
    wasOpen = await openAgain(client, output, id);
    const status = await client.status(id);
    isStepped = status.mode === 'stepping';
    openTurns = listOpenTurns(status);
    answersNext = status.model ?? undefined;
    if (mode !== undefined) output.problem(`--mode chooses for a new conversation; /mode ${mode} sets it in this one`);
    if (agent !== undefined || model !== undefined || budget !== undefined)
      output.problem('--agent, --model and --budget choose for a new conversation; this one keeps its own');
  }
  let spoken = false;
  return {
    client,
    config,
    output,
    id,
    link: findLink?.(id),
    ...(watchWorker && { watchWorker }),
    ...(answersNext !== undefined && { model: answersNext }),
    isNew: resume === undefined,
    wasOpen,
    openTurns,
    isStepped,
    noteSpoken() {
      if (!spoken) rememberLastConversation(config.cwd, id);
      spoken = true;
    },
    wasSpoken: () => spoken,
  };
}

/** One that has ended goes on as `perdura resume` has it. Answers whether it ran. */
async function openAgain(client: PerduraClient, output: Output, id: string): Promise<boolean> {
  const isRunning = await client.describe(id).then(
    ({ state }) => state === 'running',
    (error: unknown) => {
      if (error instanceof ClientError && error.kind === 'not-found') return false;
      throw error;
    },
  );
  if (isRunning) return true;
  const { turn } = await withSlowNotice(output, `going on from the end of ${id}`, client.resume(id));
  output.note(`(${id} had ended; it goes on after ${turn})`);
  return false;
}

/** `turns` have ended, `turn` is the latest: what lies between is running or queued. */
function listOpenTurns(status: Status): readonly string[] {
  if (status.phase === 'idle' && status.queued === 0) return [];
  const count = Math.max(status.turn - status.turns, 0);
  return Array.from({ length: count }, (_, at) => `turn_${String(status.turns + 1 + at).padStart(4, '0')}`);
}

/**
 * Reminds the person where the conversation stands: the last question that was answered, and its answer. Open turns are drawn from the
 * feed.
 */
export async function recap(session: ChatSession): Promise<void> {
  const entries = (await session.client.history(session.id)).filter((entry) => !session.openTurns.includes(entry.turn));
  const question = entries.findLast((entry) => isFromPerson(entry.message));
  if (question?.message.role !== 'user') return;
  session.output.note(`› ${toTerminalLine(shownText(question.message.text), 200)}`);
  const answer = entries.findLast((entry) => entry.turn === question.turn && answerText(entry.message) !== '');
  if (answer !== undefined) showAgain(session.output, takeEnd(answerText(answer.message)));
  const end = (await session.client.turnEnds(session.id)).find(({ turn }) => turn === question.turn);
  const why = end === undefined ? undefined : explainEnd(end);
  if (why !== undefined) session.output.problem(why);
}

/** Drawn as it was when it came, where a screen draws texts; elsewhere it is none of what is written out. */
function showAgain(output: ChatSession['output'], text: string): void {
  if (!output.isColoredTerminal()) return output.note(text);
  output.text(text);
  output.endText();
}

/** Characters; about a screenful. */
const RECAP = 2000;

/** The end of a long text from where a paragraph, a line or a word of it begins. */
function takeEnd(text: string): string {
  if (text.length <= RECAP) return text;
  const end = text.slice(-RECAP);
  const start = [/\n\n+/, /\n/, /\s+/].map((border) => border.exec(end.slice(0, RECAP / 2))).find((found) => found !== null);
  return `… (\`/export\` writes all of it)\n${end.slice(start === undefined ? 0 : start.index + start[0].length)}`;
}

export function readLastConversation(cwd: string): string {
  const id = readFile(lastConversationFile(cwd));
  if (id !== undefined && CONVERSATION_PATTERN.test(id)) return id;
  throw new CliError('cannot go on with the last conversation: there is none in this folder; leave out -c to begin one', EXIT.notFound);
}

function rememberLastConversation(cwd: string, id: string): void {
  mkdirSync(dirname(lastConversationFile(cwd)), { recursive: true });
  writeFileAtomic.sync(lastConversationFile(cwd), `${id}\n`);
}

function lastConversationFile(cwd: string): string {
  return join(cwd, '.perdura', 'last-conversation');
}

function readFile(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return undefined;
  }
}

// `-r` without an id: which conversation to go on with.

const MOST = 50;

/** Asks the person at the terminal. */
export async function pickConversation(client: PerduraClient, { input, stderr }: Person): Promise<string> {
  const columns = stderr.columns || 80;
  const open = (await client.list({ limit: MOST })).filter((one) => one.running);
  if (open.length === 0) throw new CliError('there is no conversation to go on with; leave out -r to begin one', EXIT.notFound);
  const { select, isCancel } = await import('@clack/prompts');
  const chosen = await select({
    message: toTerminalLine('Which conversation?', Math.max(columns - 4, 10)),
    maxItems: 10,
    input,
    output: stderr,
    options: open.map((one) => ({ value: one.id, label: toLabel(one, Math.max(columns - 18, 10)) })),
  });
  if (isCancel(chosen)) throw new CliError('none chosen', EXIT.interrupted);
  return chosen;
}

/** One row, whatever the title holds. */
function toLabel(
  one: { readonly id: string; readonly agent: string | null; readonly title: string | null; readonly startedAt: Date },
  columns: number,
): string {
  const when = one.startedAt.toISOString().slice(0, 16).replace('T', ' ');
  return toTerminalLine(`${one.title ?? one.id}  ${one.agent ?? ''}  ${when}`, columns);
}
