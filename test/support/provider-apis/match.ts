/** Whether a value is as expected, told in words. */

/**
 * Undefined when `actual` has all that `expected` names: objects field by field, arrays item by item and of the same length,
 * a RegExp by test, a function by its answer; else where and how they differ.
 */
export function mismatch(actual: unknown, expected: unknown, path = 'body'): string | undefined {
  if (expected instanceof RegExp) {
    return typeof actual === 'string' && expected.test(actual) ? undefined : `${path}: ${show(actual)} does not match ${String(expected)}`;
  }
  if (typeof expected === 'function') return expected(actual) === false ? `${path}: ${show(actual)} was refused by the test` : undefined;
  if (Array.isArray(expected)) {
    if (!Array.isArray(actual)) return `${path}: ${show(actual)} is no list`;
    if (actual.length !== expected.length) return `${path}: ${actual.length} items, expected ${expected.length}: ${show(actual)}`;
    return first(expected.entries(), ([index, item]) => mismatch(actual[index], item, `${path}.${index}`));
  }
  if (typeof expected === 'object' && expected !== null) {
    if (typeof actual !== 'object' || actual === null) return `${path}: ${show(actual)} is no object`;
    return first(Object.entries(expected), ([key, item]) => mismatch((actual as Record<string, unknown>)[key], item, `${path}.${key}`));
  }
  return Object.is(actual, expected) ? undefined : `${path}: ${show(actual)}, expected ${show(expected)}`;
}

function first<Item>(items: Iterable<Item>, find: (item: Item) => string | undefined): string | undefined {
  for (const item of items) {
    const found = find(item);
    if (found !== undefined) return found;
  }
  return undefined;
}

function show(value: unknown): string {
  const json = JSON.stringify(value) ?? 'undefined';
  return json.length > 300 ? `${json.slice(0, 300)}…` : json;
}
