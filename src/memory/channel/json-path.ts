/**
 * A subset of JSONPath that takes time linear in the content: `$`, `.name`, `['name']`, `[3]`, `[-1]`, `[*]` and `.*`. No filters, no
 * recursion, no expressions: a path comes from a model.
 */
import type { JsonValue } from '../../records/message.js';
import { TransformRefused } from '../../records/memory/agent-memory.js';

type PathStep =
  { readonly kind: 'name'; readonly name: string } | { readonly kind: 'index'; readonly index: number } | { readonly kind: 'all' };

const LONGEST_PATH = 500;
const MOST_STEPS = 32;
const MOST_FOUND = 10_000;
/** Sticky, without nesting: each character is looked at once. */
const STEP = /\.([A-Za-z_$][\w$-]*)|\.(\*)|\[(\*)\]|\[(-?\d{1,9})\]|\['([^'\\\]]*)'\]|\["([^"\\\]]*)"\]/y;

/** What lies at the path, in the content's order; at most 10,000. Throws TransformRefused for what is no path. */
export function atPath(content: JsonValue, path: string): JsonValue[] {
  return parsePath(path).reduce<JsonValue[]>(
    (found, step) => {
      const next: JsonValue[] = [];
      for (const value of found) {
        for (const each of stepInto(value, step)) {
          if (next.length >= MOST_FOUND) return next;
          next.push(each);
        }
      }
      return next;
    },
    [content],
  );
}

function parsePath(path: string): PathStep[] {
  const refuse = (): never => {
    throw new TransformRefused(
      `${JSON.stringify(path.slice(0, 80))} is no path: write it as $.name, $['a name'], $[0], $[-1], $[*] or $.*, one after the other`,
    );
  };
  if (path.length > LONGEST_PATH) refuse();
  let at = path.startsWith('$') ? 1 : 0;
  // `rows[0]` is understood as `$.rows[0]`.
  const text = at === 0 && /^[A-Za-z_]/.test(path) ? `.${path}` : path;
  const steps: PathStep[] = [];
  while (at < text.length) {
    STEP.lastIndex = at;
    const found = STEP.exec(text);
    if (!found || steps.length >= MOST_STEPS) return refuse();
    const [whole, name, every, all, index, single, double] = found;
    const key = name ?? single ?? double;
    if (key !== undefined) steps.push({ kind: 'name', name: key });
    else if (index !== undefined) steps.push({ kind: 'index', index: Number(index) });
    else if ((every ?? all) !== undefined) steps.push({ kind: 'all' });
    at += whole.length;
  }
  return steps;
}

function* stepInto(value: JsonValue, step: PathStep): Iterable<JsonValue> {
  if (typeof value !== 'object' || value === null) return;
  switch (step.kind) {
    case 'all':
      return yield* Array.isArray(value) ? (value as readonly JsonValue[]) : Object.values(value);
    case 'index': {
      const each = Array.isArray(value) ? (value as readonly JsonValue[]).at(step.index) : undefined;
      if (each !== undefined) yield each;
      return;
    }
    case 'name':
      // Own ones alone: `__proto__` and `constructor` are names as any other.
      if (!Array.isArray(value) && Object.hasOwn(value, step.name)) yield (value as Record<string, JsonValue>)[step.name] as JsonValue;
      return;
    default:
      return step satisfies never;
  }
}
