/**
 * Many servers write `null` where a field is not there, which no schema of the protocol takes: a message with one would be lost, and its
 * request would wait for ever.
 */

/** In these `null` is a value that a tool or a schema means. */
const MEANT = new Set(['structuredContent', 'inputSchema', 'outputSchema', 'requestedSchema', 'arguments', 'data', '_meta']);
const NULL_FIELD = /:\s*null\b/;
/** Of a message that could not be read there is none. */
const ID = 'id';

/** A message as JSON text, without such fields; the same text where there are none, or it is no JSON. */
export function withoutNullFields(text: string): string {
  if (!NULL_FIELD.test(text)) return text;
  try {
    return JSON.stringify(clean(JSON.parse(text) as unknown));
  } catch {
    return text;
  }
}

function clean(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(clean);
  if (typeof value !== 'object' || value === null) return value;
  // Entries, so that a field called `__proto__` stays one.
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, inner]) => {
      if (inner === null) return name === ID ? [[name, null]] : [];
      return [[name, MEANT.has(name) ? inner : clean(inner)]];
    }),
  );
}
