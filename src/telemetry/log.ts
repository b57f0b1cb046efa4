/**
 * What the worker says of itself, Temporal's part and ours: JSON lines by pino, or readable ones on a terminal. This is
 * Temporal's `Logger`, so that `log` in activities and workflows, and the SDK's messages, all come through here.
 */
import type { LogMetadata, Logger } from '@temporalio/common';
import pc from 'picocolors';
import pino from 'pino';
import type { ActivityInterceptorsFactory } from '@temporalio/worker';
import type { LogLevel } from '../config.js';
import { REDACTED, createKnownSecrets, type KnownSecrets } from '../platform/known-secrets.js';

export interface LogOptions {
  readonly level: LogLevel;
  readonly redactor: Redactor;
  readonly stream: { write(line: string): unknown };
  /** For eyes instead of programs. */
  readonly readable: boolean;
}

/** Headers and options of libraries that carry secrets which we were not given and so do not know by value. */
const SECRET_FIELDS = ['apiKey', 'password', 'authorization', 'Authorization', 'x-api-key'];
const PATHS = SECRET_FIELDS.flatMap((name) => ['', '*.', '*.*.', '*.*.*.'].map((above) => `${above}["${name}"]`.replace('.[', '[')));

export function createLog({ level, redactor, stream, readable }: LogOptions): Logger {
  const log = pino(
    {
      level,
      base: { pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: PATHS, censor: REDACTED },
    },
    { write: (line: string) => stream.write(readable ? toReadable(line) : plainJsonLine(line)) },
  );
  const at =
    (to: LogLevel) =>
    (message: string, meta: LogMetadata = {}): void => {
      if (log.isLevelEnabled(to)) log[to](redactor.plain(inOurWords(meta)) as object, redactor.text(message));
    };
  const [trace, debug, info, warn, error] = [at('trace'), at('debug'), at('info'), at('warn'), at('error')];
  const byLevel = { TRACE: trace, DEBUG: debug, INFO: info, WARN: warn, ERROR: error };
  return { log: (to, message, meta) => byLevel[to](message, meta), trace, debug, info, warn, error };
}

/** A conversation is a workflow; where the one is known, the other is left out. */
function inOurWords({
  conversation,
  turn,
  attempt,
  workflowId,
  workflowInfo: _info,
  taskToken: _token,
  ...rest
}: LogMetadata): LogMetadata {
  return { conversation: conversation ?? workflowId, turn, attempt, ...rest };
}

const COLORS: Readonly<Record<string, (text: string) => string>> = { warn: pc.yellow, error: pc.red };

function toReadable(line: string): string {
  const { time, level, msg, pid: _, error, ...fields } = JSON.parse(line) as Record<string, unknown>;
  const clock = new Date(String(time)).toTimeString().slice(0, 8);
  const word = (COLORS[String(level)] ?? pc.dim)(String(level).padEnd(5));
  const beside = Object.entries(fields).map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`);
  // Texts of a provider or a tool may hold sequences that a terminal obeys.
  const text = `${clock} ${word} ${plainLines(String(msg))} ${pc.dim(plainLines(beside.join(' ')))}`;
  return error === undefined ? `${text}\n` : `${text}\n${plainLines(readStack(error)).replace(/^/gm, '    ')}\n`;
}

function readStack(error: unknown): string {
  const { stack, message } = (typeof error === 'object' && error !== null ? error : {}) as { stack?: string; message?: string };
  return stack ?? message ?? JSON.stringify(error);
}

/** Every line that an activity logs says of which conversation and turn it is. */
export const sayTurn: ActivityInterceptorsFactory = ({ info }) => {
  let turn: string | undefined;
  return {
    inbound: {
      execute(input, next) {
        turn = readTurn(input.args[0]);
        return next(input);
      },
    },
    outbound: {
      getLogAttributes: (attributes, next) => next({ ...attributes, conversation: info.workflowExecution?.workflowId, turn }),
    },
  };
};

/** A store step belongs to no single turn: it writes messages of turns. */
function readTurn(input: unknown): string | undefined {
  const { turn, write } = (input ?? {}) as { readonly turn?: string; readonly write?: { readonly messages?: readonly { turn: string }[] } };
  return turn ?? write?.messages?.[0]?.turn;
}

/**
 * What a log may hold, which people look at in a terminal: JSON escapes the older control characters alone, not those that begin a
 * sequence by one character (C1), turn a line around or hide a part of it.
 */
const UNSEEN = /[\p{Cc}\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\u2028\u2029\ufff9-\ufffb]/gu;

/** Of a line of JSON, with its line feed or without: means the same. */
export function plainJsonLine(line: string): string {
  return line.replace(UNSEEN, (character) =>
    character === '\n'
      ? character
      : Array.from({ length: character.length }, (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`).join(''),
  );
}

/** Line feeds stay. */
function plainLines(text: string): string {
  return text.replace(UNSEEN, (character) => (character === '\n' ? character : ' '));
}

const DEEPEST = 8;

/** Removes secrets by their values from what is logged: from messages, stacks and causes too. */
export interface Redactor extends KnownSecrets {
  /** A copy that is plain data: errors become objects, what is deep or goes round is left out. */
  plain(value: unknown): unknown;
}

export function createRedactor(secrets: readonly string[] = []): Redactor {
  const known = createKnownSecrets(secrets);
  const { text } = known;
  const plain = (value: unknown, depth = 0): unknown => {
    if (typeof value === 'string') return text(value);
    if (typeof value === 'bigint') return String(value);
    if (typeof value !== 'object' || value === null) return value;
    if (depth === DEEPEST) return '…';
    if (value instanceof Date) return value;
    if (ArrayBuffer.isView(value)) return `${value.byteLength} bytes`;
    if (Array.isArray(value)) return value.map((item) => plain(item, depth + 1));
    const plainFields = Object.entries(value).map(([name, field]) => [text(name), plain(field, depth + 1)] as const);
    return Object.fromEntries(value instanceof Error ? [...errorFields(value, depth), ...plainFields] : plainFields);
  };
  const errorFields = ({ name, message, stack, cause }: Error, depth: number): (readonly [string, unknown])[] => [
    ['name', name],
    ['message', text(message)],
    ...(stack ? [['stack', text(stack)] as const] : []),
    ...(cause === undefined ? [] : [['cause', plain(cause, depth + 1)] as const]),
  ];
  return { ...known, plain: (value) => plain(value) };
}
