/** What a line that begins with `/` means in the chat: one table for the terminal, for piped lines, for `/help`, for Tab and for docs. */
import type { TurnResult } from '../../conversation/protocol/contract.js';
import { knownModels } from '../../models/known-models.js';
import { nearest, toTurn } from '../args/values.js';
import { CliError, EXIT } from '../terminal/exit.js';
import type { Output } from '../terminal/output.js';
import type { StyledLine } from '../terminal/terminal-text.js';
import { compactNow, costTable, exportMarkdown, chooseModel, rename, searchNow, setMode, statusCard } from './chat-actions.js';
import type { ChatPeople } from './chat-people.js';
import type { ChatSession } from './chat-session.js';
import { renderContext, renderStep } from '../views/state.js';
import { loadMeasure } from '../views/table.js';

/** What the commands act on: a terminal and piped lines each have theirs. */
export interface ChatControls {
  readonly session: ChatSession;
  /** The turns whose end this chat has seen. */
  readonly seen: readonly TurnResult[];
  /** What waits for the person; absent where a line is taken only when the answer before it is there, and nothing waits by then. */
  readonly people?: Pick<ChatPeople, 'decide' | 'offerAlways' | 'showAll'>;
  /** Shows what a command answers. */
  answer(text: string): void;
  send(text: string): void | Promise<void>;
  /** Without a text the last turn is answered anew. */
  again(edit: { readonly turn?: string; readonly text?: string }): void | Promise<void>;
  reset(): void | Promise<void>;
  /** After a step, or once the mode was looked at (`''`) or set. */
  stepped(mode: string): void | Promise<void>;
  leave(): void;
}

export interface ChatCommand {
  readonly name: string;
  readonly alias?: string;
  /** What may or must stand behind it; absent: nothing. */
  readonly argument?: string;
  readonly meaning: string;
  /** What Tab offers behind it. */
  readonly choices?: () => readonly string[];
  run(chat: ChatControls, argument: string): void | Promise<void>;
}

export const CHAT_COMMANDS: readonly ChatCommand[] = [
  { name: '/new', meaning: 'clear the session; long-term memory keeps what it was about', run: (chat) => chat.reset() },
  { name: '/retry', meaning: 'answer the last message anew; the old answer is kept as a branch', run: (chat) => chat.again({}) },
  {
    name: '/edit',
    argument: '[turn_N] TEXT',
    meaning: 'say this in place of the last message, or of turn N; what was there is kept as a branch',
    run: (chat, argument) => chat.again(readEdit(argument)),
  },
  {
    name: '/approve',
    argument: '[NOTE]',
    meaning: 'let the call run that waits for your approval; c2 before the note names one of several',
    run: (chat, argument) => decide(chat, 'approve', argument),
  },
  {
    name: '/deny',
    argument: '[NOTE]',
    meaning: 'do not let it run, or give no answer; the agent reads the note',
    run: (chat, argument) => decide(chat, 'deny', argument),
  },
  {
    name: '/always',
    argument: '[CALL]',
    meaning: 'let the call run that waits, and the same call from now on; shown before it is saved. The line `a` does it too',
    run: (chat, argument) => requirePeople(chat, '/always').offerAlways(argument),
  },
  {
    name: '/stop',
    meaning: 'stop the answer, also one that waits for you: then the call does not run',
    run: ({ session: { client, id } }) => client.interrupt(id, '/stop'),
  },
  { name: '/approvals', meaning: 'what waits for you, again', run: (chat) => requirePeople(chat, '/approvals').showAll() },
  {
    name: '/status',
    meaning: 'what the conversation does and has used',
    run: async ({ session: { client, id }, answer }) => answer(statusCard(id, await client.status(id))),
  },
  {
    name: '/context',
    meaning: 'what the model sees, and how much still fits',
    run: async ({ session: { client, id, output } }) =>
      draw(output, renderContext(await client.context(id), { width: output.width(), measure: await loadMeasure() })),
  },
  {
    name: '/compact',
    meaning: 'make memory of the older turns now',
    run: async ({ session, answer }) => answer(await compactNow(session)),
  },
  {
    name: '/mode',
    argument: '[auto|stepping]',
    meaning: 'go on by itself, or wait for each /step',
    choices: () => ['auto', 'stepping'],
    async run({ session, stepped }, argument) {
      draw(session.output, await setMode(session, argument));
      await stepped(argument);
    },
  },
  {
    name: '/step',
    argument: '[into|over]',
    meaning: 'do one thing, in stepping mode, and say what it was; over: sub-agents go on until they have reported',
    choices: () => ['into', 'over'],
    async run({ session, stepped }, argument) {
      if (argument !== '' && argument !== 'into' && argument !== 'over')
        throw new CliError(`there is no /step ${argument}: write /step, /step into or /step over`, EXIT.usage);
      draw(session.output, renderStep(await session.client.step(session.id, argument === '' ? {} : { scope: argument })));
      await stepped('');
    },
  },
  {
    name: '/cost',
    meaning: 'tokens and money, turn by turn while we watched',
    run: async ({ session: { client, id }, seen, answer }) => answer(costTable(seen, (await client.status(id)).usage)),
  },
  {
    name: '/model',
    argument: '[NAME]',
    meaning: 'which model answers, or another from the next call on: provider/name, or default',
    choices: () => ['default', ...knownModels()],
    run: async ({ session, answer }, argument) => answer(await chooseModel(session, argument)),
  },
  {
    name: '/search',
    argument: 'QUESTION',
    meaning: 'find what was ever said or remembered in the scope of this conversation',
    run: async ({ session }, argument) => draw(session.output, await searchNow(session, argument)),
  },
  {
    name: '/rename',
    argument: 'TITLE',
    meaning: 'give the conversation a title',
    run: async ({ session }, argument) => session.output.note(await rename(session, argument)),
  },
  {
    name: '/link',
    meaning: "the conversation in Temporal's own page",
    run: ({ session: { link, id }, answer }) => answer(link ?? `temporal workflow show -w ${id}`),
  },
  {
    name: '/export',
    argument: '[FILE]',
    meaning: 'write what was said as Markdown: to FILE, or into .perdura/exports',
    run: async ({ session }, argument) => session.output.note(await exportMarkdown(session, argument)),
  },
  { name: '/help', alias: '/?', meaning: 'this list', run: ({ session }) => session.output.say(helpText()) },
  { name: '/exit', alias: '/quit', meaning: 'leave; the conversation stays and can be gone on with', run: (chat) => chat.leave() },
];

export type ChatLine =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'message'; readonly text: string }
  | { readonly kind: 'command'; readonly command: ChatCommand; readonly argument: string }
  | { readonly kind: 'unknown-command'; readonly name: string; readonly nearest: string }
  | { readonly kind: 'stray-words'; readonly name: string };

const NAMES = CHAT_COMMANDS.map(({ name }) => name) as [string, ...string[]];

/**
 * A word behind a slash is a command or a slip, and neither is sent to the model. `/etc/hosts says …` is a message, as is a
 * line with a blank before the slash, and one that was pasted in several rows.
 */
export function readChatLine(line: string): ChatLine {
  if (line.trim() === '') return { kind: 'nothing' };
  const [, name, argument = ''] = /^(\/[a-z?-]+)(?:[ \t]+(.*?))?\s*$/i.exec(line) ?? [];
  if (name === undefined) return { kind: 'message', text: line.trim() };
  const word = name.toLowerCase();
  const command = CHAT_COMMANDS.find((one) => one.name === word || one.alias === word);
  if (command === undefined) return { kind: 'unknown-command', name: word, nearest: nearest(word, NAMES) };
  if (argument !== '' && command.argument === undefined) return { kind: 'stray-words', name: command.name };
  return { kind: 'command', command, argument };
}

/** Why a line that looked like a command was not taken. */
export function explainRefusal(line: Extract<ChatLine, { kind: 'unknown-command' | 'stray-words' }>): string {
  const escape = 'a blank before the slash makes it a message';
  if (line.kind === 'stray-words') return `${line.name} takes no words; ${escape}`;
  return `there is no ${line.name}; the nearest is ${line.nearest}, and /help lists all; ${escape}`;
}

function helpText(): string {
  const lines = CHAT_COMMANDS.map(({ name, argument, meaning }) => `  ${[name, argument].filter(Boolean).join(' ').padEnd(22)} ${meaning}`);
  return [
    ...lines,
    '  Ctrl+C                 once stops the answer, twice leaves',
    '  anything else is said to the agent; a line sent while it answers is taken next',
    '  while a question of the agent waits, the next line is its answer',
  ].join('\n');
}

/**
 * What Tab makes of the beginning of a line, as `readline` asks: what begins so of the commands, or of what one takes; in a message it is a
 * tab.
 */
export function completeChatLine(line: string): [completions: string[], replaced: string] {
  const [, typed, begun] = /^(\/[a-z?-]+)[ \t]+(\S*)$/i.exec(line) ?? [];
  const choices = typed && CHAT_COMMANDS.find(({ name }) => name === typed.toLowerCase())?.choices?.();
  if (choices && begun !== undefined) return [choices.filter((choice) => choice.startsWith(begun)), begun];
  if (!/^\/\S*$/.test(line)) return [['\t'], ''];
  const names = CHAT_COMMANDS.map(({ name, argument }) => (argument === undefined ? name : `${name} `));
  return [names.filter((name) => name.startsWith(line)), line];
}

/** A turn is written as `turn_3`: a message may begin with a number. */
function readEdit(argument: string): { readonly turn?: string; readonly text: string } {
  const [, turn, text = ''] = /^(?:(turn_\d+)[ \t]+)?(.*)$/i.exec(argument) ?? [];
  if (text.trim() === '' || /^turn_\d+$/i.test(text))
    throw new CliError('write what to say in its place: /edit TEXT, or /edit turn_3 TEXT', EXIT.usage);
  return { text, ...(turn !== undefined && { turn: toTurn(turn.toLowerCase()) }) };
}

function draw(output: Output, lines: readonly StyledLine[]): void {
  for (const line of lines) output.draw(line);
}

async function decide(chat: ChatControls, verb: 'approve' | 'deny', argument: string): Promise<void> {
  const words = await requirePeople(chat, `/${verb}`).decide(verb, argument);
  if (words !== '') chat.session.output.note(words);
}

function requirePeople({ people, session }: ChatControls, name: string): NonNullable<ChatControls['people']> {
  if (people !== undefined) return people;
  throw new CliError(
    `${name} is for a chat at a terminal; here \`perdura approvals ${session.id}\` shows what waits and how to decide`,
    EXIT.usage,
  );
}
