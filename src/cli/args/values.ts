/** Values of arguments: times, amounts, turns, JSON, and words that were mistyped. */
import { readFile } from 'node:fs/promises';
import { resolve, sep } from 'node:path';
import { InvalidArgumentError, type Command } from 'commander';
import type { Surroundings } from '../session/context.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { readAll } from '../terminal/input.js';
import { errorMessage } from '../../platform/errors.js';
import { isRecord } from '../../platform/json.js';
import { decodeText } from '../../records/file-type.js';
import { turnId } from '../../records/identity.js';
import type { JsonObject, JsonValue } from '../../records/message.js';

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, min: 60_000, h: 3_600_000, d: 86_400_000 };

/** `30s`, `1.5m`, `500ms`; a bare number is seconds. Answers milliseconds. For an option of commander. */
export function parseDuration(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|min|m|h|d)?$/.exec(text.trim());
  const ms = Number(match?.[1]) * (UNITS[match?.[2] ?? 's'] ?? NaN);
  // Longer ones overflow Node's timers.
  if (!(ms > 0) || ms > 2 ** 31 - 1) throw new InvalidArgumentError('write a duration such as 30s, 5m or 1h.');
  return ms;
}

/** `chunk_3,chunk_4`, or `3,4`: whether there are such chunks the conversation knows. */
export function parseChunks(text: string): readonly string[] {
  const ids = text.split(',').map((id) => id.trim().replace(/^(?=\d)/, 'chunk_'));
  const wrong = ids.find((id) => !/^chunk_\d{1,9}$/.test(id));
  if (wrong !== undefined) throw new InvalidArgumentError(`${JSON.stringify(wrong)} is no chunk: write ids such as chunk_3,chunk_4.`);
  return ids;
}

export function parseCount(text: string): number {
  const count = Number(text);
  if (!Number.isInteger(count) || count < 1) throw new InvalidArgumentError('write a whole number from 1.');
  return count;
}

/** Of an option: `provider/model`, as the workflow takes it. */
export function parseModelName(text: string): string {
  const refusal = refuseModelName(text);
  if (refusal !== undefined) throw new InvalidArgumentError(`${refusal}.`);
  return text;
}

/** Of an argument, or of a line in the chat. */
export function readModelName(text: string): string {
  const refusal = refuseModelName(text);
  if (refusal !== undefined) throw new CliError(refusal, EXIT.usage);
  return text;
}

function refuseModelName(text: string): string | undefined {
  if (/^[!-.0-~]{1,64}\/[!-~]{1,128}$/.test(text)) return undefined;
  return `${JSON.stringify(text)} is no model: write provider/model, such as anthropic/claude-sonnet-5-5`;
}

export function parsePort(text: string): number {
  const port = Number(text);
  if (/^\d+$/.test(text) && port > 0 && port < 65_536) return port;
  throw new InvalidArgumentError('A port is a number from 1 to 65535.');
}

/** 0: any that is free. */
export function readAnyPort(text: string): number {
  return text === '0' ? 0 : parsePort(text);
}

/** Of an option that may stand more than once. */
export function addValue(value: string, before: readonly string[]): readonly string[] {
  return [...before, value];
}

// Sums that people type, for options of commander.

/** US dollars: `2.50`, `$2.50`. */
export function parseAmount(text: string): number {
  const amount = /^\$?(\d+(?:\.\d+)?|\.\d+)$/.exec(text.trim())?.[1];
  if (amount === undefined) throw new InvalidArgumentError('write US dollars, such as 2.50.');
  return Number(amount);
}

/** `500000`, `500k`, `2M`. */
export function parseTokens(text: string): number {
  const [, digits, unit = ''] = /^(\d{1,15}(?:\.\d+)?)([kM]?)$/.exec(text.trim()) ?? [];
  const count = Number(digits) * (unit === 'k' ? 1_000 : unit === 'M' ? 1_000_000 : 1);
  if (!Number.isSafeInteger(count)) throw new InvalidArgumentError('write a number of tokens, such as 500000 or 500k.');
  return count;
}

/** `7`, `turn_7` or `turn_0007`, as people write a turn. */
export function toTurn(text: string): string {
  const digits = /^(?:turn_)?0*(\d{1,9})$/.exec(text)?.[1];
  if (digits === undefined)
    throw new CliError(`${JSON.stringify(text)} is not a turn: write its number, such as 7 or turn_0007`, EXIT.usage);
  return turnId(Number(digits));
}

/** Where a value may be that is not written out: on stdin, or in a file. */
export type Sources = Pick<Surroundings, 'input' | 'cwd'>;

/** A text that a person gives to a command: as it is, or `-` for stdin. */
export function readText({ input }: Pick<Sources, 'input'>, given: string): Promise<string> {
  return given === '-' ? readAll(input) : Promise.resolve(given);
}

/** JSON that a person gives to a command: as it is, `@file`, or `-` for stdin. */
export async function readJson(sources: Sources, option: string, given: string): Promise<JsonValue> {
  const text = given.startsWith('@') ? await readGiven(sources, option, given.slice(1)) : await readText(sources, given);
  try {
    return JSON.parse(text) as JsonValue;
  } catch (cause) {
    throw new CliError(`${option} is not JSON: ${errorMessage(cause)}; write JSON, @FILE or - for stdin`, EXIT.usage, { cause });
  }
}

export async function readJsonObject(sources: Sources, option: string, given: string): Promise<JsonObject> {
  const value = await readJson(sources, option, given);
  if (isRecord(value)) return value as JsonObject;
  throw new CliError(`${option} must be a JSON object, such as {"name":"value"}`, EXIT.usage);
}

async function readGiven({ cwd }: Sources, option: string, path: string): Promise<string> {
  try {
    return decodeText(await readFile(await findFile(cwd, path)));
  } catch (cause) {
    throw new CliError(`cannot read ${path} for ${option}: ${errorMessage(cause)}`, EXIT.usage, { cause });
  }
}

/** Where a file is that a person names, though its name is written in other characters that look the same. */
export async function findFile(cwd: string, path: string): Promise<string> {
  const { findLookalike } = await import('../../tools/workspace.js');
  return findLookalike(sep, resolve(cwd, path));
}

/** Which known word a mistyped one was meant to be. */
export function nearest<Word extends string>(word: string, known: readonly [Word, ...Word[]]): Word {
  const ranked = known.map((name) => ({ name, distance: editDistance(word, name) }));
  return ranked.reduce((best, other) => (other.distance < best.distance ? other : best)).name;
}

/** The nearest one, or none when all are too far to be a slip of the fingers. */
export function nearestSlip(word: string, known: readonly string[]): string | undefined {
  const [first, ...others] = known;
  if (first === undefined) return undefined;
  const found = nearest(word, [first, ...others]);
  return editDistance(word, found) <= Math.max(1, Math.floor(found.length * 0.4)) ? found : undefined;
}

/** A swap of neighbours counts as one. */
function editDistance(a: string, b: string): number {
  const [left, right] = [[...a], [...b]];
  let before: number[] = [];
  let row = Array.from({ length: right.length + 1 }, (_, at) => at);
  for (const [i, letter] of left.entries()) {
    const next = [i + 1];
    for (const [j, other] of right.entries()) {
      const plain = Math.min((row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1, (row[j] ?? 0) + (letter === other ? 0 : 1));
      const isSwap = i > 0 && j > 0 && letter === right[j - 1] && left[i - 1] === other;
      next.push(isSwap ? Math.min(plain, (before[j - 1] ?? 0) + 1) : plain);
    }
    before = row;
    row = next;
  }
  return row[right.length] ?? 0;
}

/** `perdura shwo conv_1` is a slip, not a message that costs money: without the word `chat` the first word must be a command. */
export function refuseStrayWords(words: readonly string[], isPrint: boolean, program: Command, command: Command): void {
  const isNamed = program.args[0] === command.name();
  const word = words[0];
  if (isNamed || isPrint || word === undefined) return;
  const group = program.commands.find(({ commands }) => commands.some((one) => one.name() === word));
  const names = program.commands.map((one) => one.name());
  const meant = group === undefined ? nearestSlip(word, names) : `${group.name()} ${word}`;
  const hint = meant === undefined ? ';' : `; did you mean ${meant}?`;
  throw new CliError(
    `there is no command ${word}${hint} \`perdura help all\` lists them, and \`perdura chat\` or -p takes words to say`,
    EXIT.usage,
  );
}
