/**
 * What the worker says of itself, Temporal's part and ours: JSON lines by pino, or readable ones on a terminal. This is
 * Temporal's `Logger`, so that `log` in activities and workflows, and the SDK's messages, all come through here.
 */
import type { LogMetadata, Logger } from '@temporalio/common';
import pc from 'picocolors';
import pino from 'pino';
import type { LogLevel } from '../config.js';
import { REDACTED } from '../platform/known-secrets.js';
import { plainJsonLine, plainLines } from './plain-line.js';
import type { Redactor } from './redact.js';
import type { ActivityInterceptorsFactory } from '@temporalio/worker';

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
