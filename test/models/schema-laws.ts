/** What holds of the form of every schema, for any number of random ones. */
import fc from 'fast-check';
import { toStrictSchema, withoutAbsent } from '../../src/models/answer-schema.js';
import { toToolSchema, type SchemaTaker } from '../../src/models/tool-schema.js';
import type { JsonObject, JsonValue } from '../../src/records/message.js';
import { strictSchemaProblem } from '../support/provider-apis/check-answer-schema.js';
import {
  anthropicSchemaProblem,
  geminiSchemaProblem,
  ollamaSchemaProblem,
  openaiSchemaProblem,
} from '../support/provider-apis/check-tool-schema.js';
import { answerCases, fits, fitsSchema, toolCases } from './schema-cases.js';

type Problem = (schema: JsonObject) => string | undefined;

const TAKERS: readonly (readonly [SchemaTaker, Problem])[] = [
  ['full', anthropicSchemaProblem],
  ['full', openaiSchemaProblem],
  ['gemini', geminiSchemaProblem],
  ['ollama', ollamaSchemaProblem],
];

/** Every provider takes its form, of a form too; and what fits the schema fits the form. */
export function holdsForTools(numRuns: number): void {
  fc.assert(
    fc.property(toolCases.filter(fitsSchema), ({ schema, data }) => {
      for (const [taker, problem] of TAKERS) {
        const form = toToolSchema(schema, taker);
        expect([problem(form), problem(toToolSchema(form, taker))]).toEqual([undefined, undefined]);
        expect({ fits: fits(form, data), taker, form, data }).toMatchObject({ fits: true });
      }
    }),
    { numRuns },
  );
}

/** Both strict forms are taken; an answer fits them as it fits the schema, and comes back as it was once its nulls are taken out. */
export function holdsForAnswers(numRuns: number): void {
  let sent = 0;
  fc.assert(
    fc.property(answerCases.filter(fitsSchema), ({ schema, data }) => {
      const [all, some] = [true, false].map((allRequired) => toStrictSchema(schema, { allRequired }));
      if (!all || !some) return;
      sent += 1;
      expect(strictSchemaProblem(all, { allRequired: true, bounds: false })).toBeUndefined();
      expect(strictSchemaProblem(some, { allRequired: false, bounds: false })).toBeUndefined();
      expect({ fits: fits(some, data), form: some, data }).toMatchObject({ fits: true });
      const filled = withNulls(data, all);
      expect({ fits: fits(all, filled), form: all, filled }).toMatchObject({ fits: true });
      expect(withoutAbsent(filled, schema)).toEqual(withoutNullable(data, withoutAbsent(filled, schema)));
      expect(fitsSchema({ schema, data: withoutAbsent(filled, schema) })).toBe(true);
    }),
    { numRuns },
  );
  expect(sent).toBeGreaterThan(numRuns / 2);
}

/** As a model answers in strict mode: null for each property that is absent. */
function withNulls(data: JsonValue, strict: JsonObject): JsonValue {
  const { properties, items, anyOf } = strict as { properties?: JsonObject; items?: JsonObject; anyOf?: readonly JsonObject[] };
  if (anyOf) {
    const filled = anyOf.map((one) => [one, withNulls(data, one)] as const).find(([one, value]) => fits(one, value));
    return filled ? filled[1] : data;
  }
  if (Array.isArray(data) && items) return (data as JsonValue[]).map((one) => withNulls(one, items));
  if (typeof data !== 'object' || data === null || !properties) return data;
  const given = data as JsonObject;
  return Object.fromEntries(
    Object.entries(properties).map(([name, one]) => [
      name,
      Object.hasOwn(given, name) ? withNulls(given[name] as JsonValue, one as JsonObject) : null,
    ]),
  );
}

/** A property that is absent and may be null comes back as null: no more than that differs. */
function withoutNullable(data: JsonValue, undone: JsonValue): JsonValue {
  if (Array.isArray(data) && Array.isArray(undone)) {
    return (data as JsonValue[]).map((one, at) => withoutNullable(one, (undone as JsonValue[])[at] ?? null));
  }
  if (typeof data !== 'object' || typeof undone !== 'object' || data === null || undone === null) return data;
  const [given, other] = [data as JsonObject, undone as JsonObject];
  const added = Object.entries(other).filter(([name, one]) => one === null && !Object.hasOwn(given, name));
  return {
    ...Object.fromEntries(Object.entries(given).map(([name, one]) => [name, withoutNullable(one, other[name] ?? null)])),
    ...Object.fromEntries(added),
  };
}
