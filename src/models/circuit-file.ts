/** Which models a worker does not call now, in a separate file beside the working folder's other state: `perdura doctor` reads it there. */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { isAlive } from '../platform/processes.js';
import type { OpenCircuit } from './circuit-breaker.js';

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
