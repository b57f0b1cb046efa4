/** Of which turns the next model call sees what, in words. */
import type { KnownTurns, Shortened } from '../../insight/known-turns.js';
import { turnNumber } from '../../records/identity.js';
import type { StyledLine } from '../terminal/terminal-text.js';

export function renderKnown(id: string, known: KnownTurns): StyledLine[] {
  const { whole, inPart, shortened, summarized, leftOut, earlierSessions } = known;
  const missing = inPart.length + shortened.length + summarized.length + leftOut.length + earlierSessions.length;
  if (missing === 0) return [];
  const fact = (name: string, text: string): StyledLine => [{ text: `  ${name.padEnd(14)}`, style: 'dim' }, { text }];
  const cutIn = (kind: Shortened['kind']): Shortened[] => shortened.filter((one) => one.kind === kind);
  const [messages, results] = [cutIn('message'), cutIn('result')];
  return [
    [],
    [{ text: 'what the model sees of each turn' }],
    ...(whole.length === 0 ? [] : [fact('word for word', spans(whole))]),
    ...(inPart.length === 0 ? [] : [fact('in part', spans(inPart))]),
    ...(messages.length === 0
      ? []
      : [fact('by its ends', `a long message of ${spans(messages.map(({ turn }) => turn))}; ${rest(messages)}`)]),
    ...(results.length === 0 ? [] : [fact('by a line', `long results of ${spans(results.map(({ turn }) => turn))}; ${rest(results)}`)]),
    ...summarized.map(({ episode, turns }) => fact('as a summary', `${spans(turns)}: ${episode} (perdura memory list ${id})`)),
    ...(leftOut.length === 0
      ? []
      : [fact('not now', `${spans(leftOut)}: left out until the next summary; perdura context ${id} --compact makes one`)]),
    ...(earlierSessions.length === 0
      ? []
      : [
          fact(
            'no longer',
            `${spans(earlierSessions)}: of a session that /new ended; MEMORY.md and \`perdura history\` have what was kept of it`,
          ),
        ]),
    [{ text: `  why a turn is not there: perdura context ${id} --why TURN`, style: 'dim' }],
  ];
}

function rest(some: readonly Shortened[]): string {
  const [first] = some;
  return `the rest by retrieve_from_memory (${some.length === 1 ? (first?.item ?? '') : `${first?.item ?? ''}, …`})`;
}

/** `turns 1–4, 7`. */
export function spans(turns: readonly string[]): string {
  const numbers = [...new Set(turns.map(turnNumber))].sort((a, b) => a - b);
  const found: [number, number][] = [];
  for (const number of numbers) {
    const last = found.at(-1);
    if (last && last[1] === number - 1) last[1] = number;
    else found.push([number, number]);
  }
  const text = found.map(([first, last]) => (first === last ? String(first) : `${first}–${last}`)).join(', ');
  return `${numbers.length === 1 ? 'turn' : 'turns'} ${text}`;
}
