/** What a search has found, for people: who said it where and when, the words of the question marked, and what only a tool said in yellow. */
import type { Recalled } from '../../client.js';
import { turnNumber } from '../../records/identity.js';
import { textOfDrawn, toTerminalLine, type StyledLine, type StyledSpan } from '../terminal/terminal-text.js';
import { formatTime } from './quantities.js';
import { drawLine, type Look } from './table.js';

const HIT_CHARACTERS = 600;
const LEAD = 120;
const WORDS = /[\p{L}\p{N}][\p{L}\p{N}\p{M}]*(?:['’][\p{L}\p{M}]+)*/gu;

/** `most`: UTF-16 units of one text that are shown. */
export function renderFound(found: readonly Recalled[], look: Look, most = HIT_CHARACTERS): StyledLine[] {
  return found.flatMap((one, at) => [...(at === 0 ? [] : [[]]), ...renderHead(one, look), ...renderText(one, look, most)]);
}

function renderHead({ address, kind, ts, conversation, turn, speaker, trust }: Recalled, look: Look): StyledLine[] {
  const isUntrusted = trust.startsWith('tool:');
  const parts = [
    ...(ts === 0 ? [] : [formatTime(Math.round(ts * 1000), look.timeFormat, look.now)]),
    speaker === kind ? kind : `${kind} ${speaker}`,
    ...(conversation === undefined ? [] : [`${conversation}${turn === undefined ? '' : `, turn ${turnNumber(turn)}`}`]),
    address,
    ...(isUntrusted ? ['untrusted'] : []),
  ];
  const text = parts.map((part) => toTerminalLine(part, 120)).join(' · ');
  return drawLine('', text, look, isUntrusted ? 'yellow' : 'cyan');
}

function renderText({ text, marks, isPart }: Recalled, look: Look, most: number): StyledLine[] {
  const words = new Set(marks.map(([start, end]) => text.slice(start, end).toLowerCase()));
  const first = marks[0]?.[0] ?? 0;
  const start = text.length <= most ? 0 : Math.max(0, Math.min(first - LEAD, text.length - most));
  const end = Math.min(text.length, start + most);
  const shown = `${start > 0 || isPart === true ? '…' : ''}${text.slice(start, end)}${end < text.length || isPart === true ? '…' : ''}`;
  const lines = shown.split(/\r?\n/).filter((line) => line.trim() !== '');
  return lines.flatMap((line) => drawLine('  ', line.toWellFormed(), look).map((drawn) => marked(textOfDrawn(drawn), words)));
}

function marked(text: string, words: ReadonlySet<string>): StyledLine {
  const spans: StyledSpan[] = [];
  let last = 0;
  for (const { 0: word, index } of text.matchAll(WORDS)) {
    if (!words.has(word.toLowerCase())) continue;
    if (index > last) spans.push({ text: text.slice(last, index) });
    spans.push({ text: word, style: 'bold' });
    last = index + word.length;
  }
  if (last < text.length || spans.length === 0) spans.push({ text: text.slice(last) });
  return spans;
}
