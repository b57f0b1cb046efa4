/** JSON that a person gives to a command: as it is, `@file`, or `-` for stdin. */
import { readFile } from 'node:fs/promises';
import type { JsonObject, JsonValue } from '../../records/message.js';
import { CliError, EXIT, messageOf } from '../terminal/exit.js';
import { readStandardInput } from '../terminal/standard-input.js';

export async function readJson(option: string, given: string): Promise<JsonValue> {
  const text = given === '-' ? await readStandardInput() : given.startsWith('@') ? await readGiven(option, given.slice(1)) : given;
  try {
    return JSON.parse(text) as JsonValue;
  } catch (cause) {
    throw new CliError(`${option} is not JSON: ${messageOf(cause)}; write JSON, @FILE or - for stdin`, EXIT.usage, { cause });
  }
}

export async function readJsonObject(option: string, given: string): Promise<JsonObject> {
  const value = await readJson(option, given);
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as JsonObject;
  throw new CliError(`${option} must be a JSON object, such as {"name":"value"}`, EXIT.usage);
}

async function readGiven(option: string, path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (cause) {
    throw new CliError(`cannot read ${path} for ${option}: ${messageOf(cause)}`, EXIT.usage, { cause });
  }
}
