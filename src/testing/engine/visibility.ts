/** The part of Temporal's list queries that lists here are made with: comparisons of a field with a text, joined by AND, OR and brackets. */
import type { Execution } from './engine.js';

type Filter = (execution: Execution) => boolean;

const WORD = /\s*(?:('(?:[^']|'')*')|([(),])|(!=|<=|>=|=|<|>)|([A-Za-z_][\w.]*|-?\d+(?:\.\d+)?))/y;

const FIELDS: Readonly<Record<string, (execution: Execution) => unknown>> = {
  WorkflowId: ({ workflowId }) => workflowId,
  WorkflowType: ({ type }) => type,
  RunId: ({ runId }) => runId,
  TaskQueue: ({ taskQueue }) => taskQueue,
  ExecutionStatus: ({ status }) => STATUS_NAMES[status],
};
const STATUS_NAMES: Readonly<Record<Execution['status'], string>> = {
  ...{ RUNNING: 'Running', COMPLETED: 'Completed', FAILED: 'Failed', CANCELED: 'Canceled', TERMINATED: 'Terminated' },
  CONTINUED_AS_NEW: 'ContinuedAsNew',
};

/** Throws for what needs Temporal. */
export function filterOf(query: string): Filter {
  if (query.trim() === '') return () => true;
  const words = wordsOf(query);
  let at = 0;
  const next = (): string => words[at++] ?? refuse(query);
  const isNext = (word: string): boolean => words[at]?.toUpperCase() === word && ++at > 0;

  const all = (): Filter => {
    const parts = [one()];
    while (isNext('AND')) parts.push(one());
    return (execution) => parts.every((part) => part(execution));
  };
  const any = (): Filter => {
    const parts = [all()];
    while (isNext('OR')) parts.push(all());
    return (execution) => parts.some((part) => part(execution));
  };
  const one = (): Filter => {
    if (isNext('(')) {
      const inner = any();
      return next() === ')' ? inner : refuse(query);
    }
    const name = next();
    const read = FIELDS[name] ?? (name.startsWith('Agent') ? ({ attributes }: Execution) => attributes[name] : refuse(query));
    const operator = next().toUpperCase();
    if (operator === 'IS') {
      const isNot = isNext('NOT');
      next();
      return (execution) => ((read(execution) ?? null) === null) !== isNot;
    }
    const value = valueOf(next());
    switch (operator) {
      case '=':
        return (execution) => read(execution) === value;
      case '!=':
        return (execution) => read(execution) !== value;
      case 'STARTS_WITH':
        return (execution) => String(read(execution) ?? '').startsWith(String(value));
      default:
        return refuse(query);
    }
  };

  const filter = any();
  return at === words.length ? filter : refuse(query);
}

function wordsOf(query: string): string[] {
  const words: string[] = [];
  const word = new RegExp(WORD);
  while (word.lastIndex < query.trimEnd().length) {
    const found = word.exec(query);
    if (!found) return refuse(query);
    words.push(found[0].trim());
  }
  return words;
}

function valueOf(word: string): string | number {
  return word.startsWith("'") ? word.slice(1, -1).replaceAll("''", "'") : Number(word);
}

function refuse(query: string): never {
  throw new Error(`the list query ${JSON.stringify(query)} needs Temporal`);
}
