/** What a line that begins with `/` means in the chat. */
export const CHAT_COMMANDS = [
  { name: '/new', meaning: 'clear the session; long-term memory stays' },
  { name: '/help', meaning: 'this list' },
  { name: '/exit', meaning: 'leave; the conversation stays and can be gone on with' },
] as const;

export type ChatCommand = (typeof CHAT_COMMANDS)[number]['name'];

export type ChatLine =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'message'; readonly text: string }
  | { readonly kind: 'command'; readonly name: ChatCommand }
  | { readonly kind: 'unknown-command'; readonly name: string; readonly nearest: ChatCommand };

/** `/etc/hosts says …` is a message: only a lone word after the slash is taken for a command. A blank before the slash makes any line a message. */
export function readChatLine(line: string): ChatLine {
  if (line.trim() === '') return { kind: 'nothing' };
  const word = /^(\/[a-z?-]+)\s*$/i.exec(line)?.[1]?.toLowerCase();
  if (word === undefined) return { kind: 'message', text: line.trim() };
  if (word === '/quit') return { kind: 'command', name: '/exit' };
  const known = CHAT_COMMANDS.find((command) => command.name === word);
  return known === undefined
    ? { kind: 'unknown-command', name: word, nearest: nearestCommand(word) }
    : { kind: 'command', name: known.name };
}

export function helpText(): string {
  const lines = CHAT_COMMANDS.map(({ name, meaning }) => `  ${name.padEnd(7)} ${meaning}`);
  return [
    ...lines,
    '  Ctrl+C  once stops the answer, twice leaves',
    '  anything else is said to the agent; a line sent while it answers is taken next',
  ].join('\n');
}

function nearestCommand(word: string): ChatCommand {
  const ranked = CHAT_COMMANDS.map(({ name }) => ({ name, distance: editDistance(word, name) }));
  return ranked.reduce((best, other) => (other.distance < best.distance ? other : best)).name;
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...b].entries()) {
      next.push(Math.min((row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1, (row[j] ?? 0) + (letter === other ? 0 : 1)));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
