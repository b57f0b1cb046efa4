/** The part of care that needs no model: it removes what is there twice, and nothing else. */
import { foldedLine, splitLines } from '../../records/memory/documents.js';
import { shareIn, significantWords, type SignificantWords } from '../documents/significant-words.js';
import { bySalience, foldedFact, type SemanticItem } from '../../records/memory/items.js';

const NEAR = 0.9;

/**
 * MEMORY.md without lines that are above already, under the same heading and, where indented, under the same line: "yes" below
 * two questions is two facts. Headings, blank lines, code and lines without a letter or digit stay, and so does what has lines below it.
 */
export function withoutDuplicateLines(text: string): string {
  const lines = splitLines(text);
  const seen = new Set<string>();
  /** The lines that the current one is below, outermost first. */
  let parents: { readonly indent: number; readonly line: string }[] = [];
  let section = 0;
  let inCode = false;
  const kept = lines.filter((line, at) => {
    if (/^\s*(?:```|~~~)/.test(line)) {
      inCode = !inCode;
      return true;
    }
    const folded = foldedLine(line);
    if (inCode || !/[\p{L}\p{N}]/u.test(folded)) return true;
    if (/^#{1,6}\s/.test(line)) {
      section = at;
      parents = [];
      return true;
    }
    const indent = countIndent(line);
    parents = parents.filter((parent) => parent.indent < indent);
    const key = JSON.stringify([section, ...parents.map((parent) => parent.line), folded]);
    parents.push({ indent, line: folded });
    const isTwice = seen.has(key) && countIndent(lines[at + 1] ?? '') <= indent;
    seen.add(key);
    return !isTwice;
  });
  return kept.length === lines.length ? text : kept.join('\n');
}

/** Ids of facts that say what a more salient one says: 0.9 of their words are the same, and all that is hard in them. */
export function nearDuplicateFacts(facts: readonly SemanticItem[]): string[] {
  const kept: { readonly fact: string; readonly words: SignificantWords }[] = [];
  const removed: string[] = [];
  for (const { id, fact } of [...facts].sort(bySalience)) {
    const entry = { fact: foldedFact(fact), words: significantWords(fact) };
    if (kept.some((other) => other.fact === entry.fact || saysTheSame(entry.words, other.words))) removed.push(id);
    else kept.push(entry);
  }
  return removed;
}

/** Another port or a "not" is another fact, however long the rest. */
function saysTheSame(a: SignificantWords, b: SignificantWords): boolean {
  if (a.hard.size !== b.hard.size || (a.hard.size > 0 && shareIn(a.hard, b.hard) < 1)) return false;
  const both = new Set([...a.soft, ...b.soft]).size;
  const shared = a.soft.size + b.soft.size - both;
  const hard = a.hard.size;
  return both + hard > 0 && (shared + hard) / (both + hard) >= NEAR;
}

function countIndent(line: string): number {
  return line.trim() === '' ? 0 : line.length - line.trimStart().length;
}
