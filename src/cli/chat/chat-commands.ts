/** What a line that begins with `/` means in the chat. */
import { nearest } from '../args/nearest.js';

interface CommandDescription {
  readonly name: string;
  /** What may or must stand behind it. */
  readonly argument?: string;
  readonly meaning: string;
}

export const CHAT_COMMANDS = [
  { name: '/new', meaning: 'clear the session; long-term memory keeps what it was about' },
  { name: '/retry', meaning: 'say the last message again, as a new one' },
  {
    name: '/approve',
    argument: '[NOTE]',
    meaning: 'let the call run that waits for your approval; c2 before the note names one of several',
  },
  { name: '/deny', argument: '[NOTE]', meaning: 'do not let it run, or give no answer; the agent reads the note' },
  { name: '/approvals', meaning: 'what waits for you, again' },
  { name: '/status', meaning: 'what the conversation does and has used' },
  { name: '/context', meaning: 'what the model sees, and how much still fits' },
  { name: '/compact', meaning: 'make memory of the older turns now' },
  { name: '/mode', argument: '[auto|stepping]', meaning: 'go on by itself, or wait for each /step' },
  { name: '/step', meaning: 'do one thing, in stepping mode, and say what it was' },
  { name: '/cost', meaning: 'tokens and money, turn by turn while we watched' },
  { name: '/model', argument: '[NAME]', meaning: 'which model answers, or begin a conversation with another' },
  { name: '/rename', argument: 'TITLE', meaning: 'give the conversation a title' },
  { name: '/link', meaning: "the conversation in Temporal's own page" },
  { name: '/export', argument: '[FILE]', meaning: 'write what was said as Markdown' },
  { name: '/help', meaning: 'this list' },
  { name: '/exit', meaning: 'leave; the conversation stays and can be gone on with' },
] as const satisfies readonly CommandDescription[];

export type ChatCommand = (typeof CHAT_COMMANDS)[number]['name'];

export type ChatLine =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'message'; readonly text: string }
  | { readonly kind: 'command'; readonly name: ChatCommand; readonly argument: string }
  | { readonly kind: 'unknown-command'; readonly name: string; readonly nearest: ChatCommand }
  | { readonly kind: 'stray-words'; readonly name: ChatCommand };

const NAMES = CHAT_COMMANDS.map(({ name }) => name) as [ChatCommand, ...ChatCommand[]];

/**
 * A word behind a slash is a command or a slip, and neither is sent to the model. `/etc/hosts says …` is a message, as is a
 * line with a blank before the slash, and one that was pasted in several rows.
 */
export function readChatLine(line: string): ChatLine {
  if (line.trim() === '') return { kind: 'nothing' };
  const [, said, argument = ''] = /^(\/[a-z?-]+)(?:[ \t]+(.*?))?\s*$/i.exec(line) ?? [];
  if (said === undefined) return { kind: 'message', text: line.trim() };
  const word = said.toLowerCase();
  const name = word === '/quit' ? '/exit' : word === '/?' ? '/help' : word;
  const known: CommandDescription | undefined = CHAT_COMMANDS.find((command) => command.name === name);
  if (known === undefined) return { kind: 'unknown-command', name: word, nearest: nearest(word, NAMES) };
  if (argument !== '' && known.argument === undefined) return { kind: 'stray-words', name: known.name as ChatCommand };
  return { kind: 'command', name: known.name as ChatCommand, argument };
}

/** Why a line that looked like a command was not taken. */
export function refusalOf(line: Extract<ChatLine, { kind: 'unknown-command' | 'stray-words' }>): string {
  const escape = 'a blank before the slash makes it a message';
  if (line.kind === 'stray-words') return `${line.name} takes no words; ${escape}`;
  return `there is no ${line.name}; the nearest is ${line.nearest}, and /help lists all; ${escape}`;
}

export function helpText(): string {
  const commands: readonly CommandDescription[] = CHAT_COMMANDS;
  const lines = commands.map(({ name, argument, meaning }) => `  ${[name, argument].filter(Boolean).join(' ').padEnd(22)} ${meaning}`);
  return [
    ...lines,
    '  Ctrl+C                 once stops the answer, twice leaves',
    '  anything else is said to the agent; a line sent while it answers is taken next',
    '  while a question of the agent waits, the next line is its answer',
  ].join('\n');
}
