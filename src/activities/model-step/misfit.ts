/** Whether an answer is the data that was asked for (seed 003, Payload): JSON that fits a JSON Schema. */
import { Ajv, type ValidateFunction } from 'ajv';
import type { JsonObject } from '../../records/message.js';
import { beginningOf } from '../../records/text.js';

const MOST_CHARACTERS = 500;

/** What is wrong, for the model to correct; undefined when it fits. */
export function misfitOf(text: string, schema: JsonObject): string | undefined {
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch (error) {
    return `it is not JSON (${error instanceof Error ? beginningOf(error.message, 200) : 'it cannot be read'})`;
  }
  const validate = validatorOf(schema);
  if (typeof validate === 'string') return validate;
  if (validate(data)) return undefined;
  const problems = (validate.errors ?? []).map(
    ({ instancePath, message }) => `${instancePath || '(the whole)'} ${message ?? 'does not fit'}`,
  );
  return beginningOf(problems.join('; '), MOST_CHARACTERS);
}

/** A text for a schema that cannot be compiled: the person who sent it reads it as the turn's error. */
function validatorOf(schema: JsonObject): ValidateFunction | string {
  try {
    return new Ajv({ strict: false, logger: false, validateFormats: false }).compile(schema);
  } catch (error) {
    return `the schema itself cannot be used (${error instanceof Error ? beginningOf(error.message, 200) : 'unknown'})`;
  }
}
