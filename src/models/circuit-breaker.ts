/**
 * Which models cannot answer now, as one worker has seen it: a conversation whose agent names another model need not wait for them. Only
 * hastens: the last model of a list is always called, and so is the only one.
 *
 * @rule models/failure-of-model-or-provider: A limit or an overload counts for that model, another failure for its whole provider; a
 *   refused request says nothing of either. (test: test/models/circuit-breaker.test.ts)
 * @rule models/one-try-after-rest: After `FAILURES` in a row a model rests for `REST_MS`, or for as long as its provider wants; then one
 *   call tries, and the others wait for its result. (test: test/models/circuit-breaker.test.ts)
 */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { truncate } from '../records/text.js';
import { isModelAway } from '../records/turn-end.js';
import { ModelFailure } from './model.js';
import { splitModel } from './known-models.js';
import { isAlive } from '../platform/processes.js';

const FAILURES = 3;
const REST_MS = 30_000;
const MAX_REST_MS = 10 * 60_000;
const MAX_KNOWN = 200;
const MAX_WORDS = 300;
/** (models/failure-of-model-or-provider) */
const OF_MODEL: readonly string[] = ['rate-limit', 'overloaded'];

export interface OpenCircuit {
  /** A provider, or a `provider/model`. */
  readonly of: string;
  readonly reason: string;
  readonly message: string;
  /** Epoch milliseconds. */
  readonly until: number;
}

export interface Circuits {
  /**
   * Why this model, as `provider/model`, is not to be called now. If its rest is over, one caller alone may try (models/one-try-after-rest).
   */
  refusal(
    name: string,
  ): { readonly type: string; readonly message: string; readonly transient: true; readonly retryAfterMs: number } | undefined;
  /** How a call ended: with an answer, or with what it threw. */
  note(name: string, error?: unknown): void;
  open(): readonly OpenCircuit[];
}

interface Circuit {
  readonly failures: number;
  readonly reason: string;
  readonly message: string;
  /** null: the model is called. */
  readonly until: number | null;
}

/** `changed` is called with all that are open, after `of` has opened, has opened anew, or has closed. */
export function createCircuits({
  now = Date.now,
  changed = () => undefined,
}: { readonly now?: () => number; readonly changed?: (open: readonly OpenCircuit[], of: string) => void } = {}): Circuits {
  const circuits = new Map<string, Circuit>();

  const open = (): OpenCircuit[] =>
    [...circuits].flatMap(([of, { reason, message, until }]) => (until === null ? [] : [{ of, reason, message, until }]));

  const succeeded = (name: string): void => {
    for (const key of circuitKeys(name)) {
      const was = circuits.get(key);
      circuits.delete(key);
      if (was && was.until !== null) changed(open(), key);
    }
  };

  const failed = (name: string, { kind, message, options }: ModelFailure): void => {
    if (!isModelAway(kind)) return succeeded(name); // it answers (models/failure-of-model-or-provider)
    const of = OF_MODEL.includes(kind) ? name : splitModel(name).provider;
    const failures = (circuits.get(of)?.failures ?? 0) + 1;
    const rest = Math.min(Math.max(REST_MS, options.retryAfterMs ?? 0), MAX_REST_MS);
    const until = failures >= FAILURES ? now() + rest : null;
    circuits.delete(of);
    if (circuits.size >= MAX_KNOWN) circuits.delete(circuits.keys().next().value ?? '');
    circuits.set(of, { failures, reason: kind, message: truncate(message, MAX_WORDS), until });
    if (until !== null) changed(open(), of);
  };

  return {
    open,

    note(name, error) {
      if (error === undefined) succeeded(name);
      else if (error instanceof ModelFailure) failed(name, error);
    },

    refusal(name) {
      for (const key of circuitKeys(name)) {
        const circuit = circuits.get(key);
        if (!circuit || circuit.until === null) continue;
        const left = circuit.until - now();
        if (left <= 0) {
          // The next call finds it shut until this call has ended (models/one-try-after-rest).
          circuits.set(key, { ...circuit, until: now() + REST_MS });
          continue;
        }
        const { reason, message } = circuit;
        return {
          type: reason,
          message: `not called: ${key} has failed ${circuit.failures} times in a row (${message})`,
          transient: true,
          retryAfterMs: left,
        };
      }
      return undefined;
    },
  };
}

function circuitKeys(name: string): readonly string[] {
  return [name, splitModel(name).provider];
}

// Which models a worker does not call now, in a separate file beside the working folder's other state: `perdura doctor` reads it there.

const circuitSchema = z.object({ of: z.string(), reason: z.string(), message: z.string(), until: z.number() });
const fileSchema = z.object({ v: z.literal(1), open: z.array(circuitSchema).max(1_000) });

/** A folder that cannot be written to costs the doctor its view, and no turn anything. */
export function writeCircuits(cwd: string, open: readonly OpenCircuit[]): void {
  const file = circuitPath(cwd, process.pid);
  try {
    if (open.length === 0) return rmSync(file, { force: true });
    mkdirSync(circuitFolder(cwd), { recursive: true });
    writeFileSync(`${file}.new`, JSON.stringify({ v: 1, open }));
    renameSync(`${file}.new`, file);
  } catch {
    // The gauge and the log say it all the same.
  }
}

/** Of the workers that run in this folder now. */
export function readCircuits(cwd: string): readonly (OpenCircuit & { readonly pid: number })[] {
  return pidsIn(circuitFolder(cwd)).flatMap((pid) => {
    if (!isAlive(pid)) return [];
    try {
      return fileSchema.parse(JSON.parse(readFileSync(circuitPath(cwd, pid), 'utf8'))).open.map((one) => ({ ...one, pid }));
    } catch {
      return [];
    }
  });
}

function pidsIn(folder: string): number[] {
  try {
    return readdirSync(folder).flatMap((name) => {
      const [, pid] = /^(\d{1,10})\.json$/.exec(name) ?? [];
      return pid === undefined ? [] : [Number(pid)];
    });
  } catch {
    return [];
  }
}

function circuitFolder(cwd: string): string {
  return join(cwd, '.perdura', 'circuits');
}

function circuitPath(cwd: string, pid: number): string {
  return join(circuitFolder(cwd), `${pid}.json`);
}
