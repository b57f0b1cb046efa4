/** What a schema found wrong, one line per finding, `path: reason`: for a model to correct itself, or a person their file. */
import type { z } from 'zod';
import { firstBytes } from './result-text.js';

const MOST_LINES = 12;
const LINE_BYTES = 300;

export function listIssues(issues: readonly z.core.$ZodIssue[]): string[] {
  const lines = issues.flatMap(issueLines);
  const shown = lines.slice(0, MOST_LINES).map((line) => firstBytes(line, LINE_BYTES));
  return lines.length > MOST_LINES ? [...shown, `and ${lines.length - MOST_LINES} more`] : shown;
}

function issueLines(issue: z.core.$ZodIssue): string[] {
  if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => `${shownPath([...issue.path, key])}: no such field`);
  if (issue.code === 'invalid_union' && issue.errors.length > 0) {
    const ways = issue.errors.map((branch) => branch.map((inner) => inner.message).join(' and '));
    return [`${shownPath(issue.path)}: fits none of: ${ways.join('; or ')}`];
  }
  return [`${shownPath(issue.path)}: ${issue.message}`];
}

/** `limits.maxToolRounds`, `tools[2]`; the whole value where the path is empty. */
function shownPath(path: readonly PropertyKey[]): string {
  if (path.length === 0) return '(the whole)';
  return path
    .map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`))
    .join('')
    .replace(/^\./, '');
}
