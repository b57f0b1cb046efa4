/** What workers have asked of the effect ledger and were told (store-log.cjs), as one log for each effect. */
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { effectModel, linearize, type EffectOperation } from './linearizable.js';

interface Line {
  readonly call: string;
  readonly at: number;
  readonly ops?: readonly {
    readonly kind: 'reserve' | 'commit' | 'fence';
    readonly effect: string;
    readonly hash?: string;
    readonly given?: string;
  }[];
  readonly ends?: readonly { readonly status: 'reserved' | 'committed' | 'fenced' | 'conflict'; readonly value?: string }[];
}

export interface CheckedEffects {
  readonly effects: number;
  readonly operations: number;
  /** Whose caller died, or lost the answer. */
  readonly unheard: number;
  readonly violations: readonly string[];
}

export async function checkEffects(file: string): Promise<CheckedEffects> {
  const logs = await readEffects(file);
  const all = [...logs.values()].flat();
  const violations = [...logs].flatMap(([effect, log]) => {
    const verdict = linearize(effectModel, log);
    return verdict.ok ? [] : [`effect ${effect} has no possible order: ${log.map(wordsOf).join('; ')}`];
  });
  return { effects: logs.size, operations: all.length, unheard: all.filter((op) => op.return === Infinity).length, violations };
}

/** In the order of their calls in the file. */
async function readEffects(file: string): Promise<Map<string, EffectOperation[]>> {
  const logs = new Map<string, EffectOperation[]>();
  const open = new Map<string, { readonly at: number; readonly ops: NonNullable<Line['ops']> }>();
  const add = (ops: NonNullable<Line['ops']>, call: number, end: number, ends: NonNullable<Line['ends']>): void =>
    ops.forEach(({ kind, effect, hash = '', given = '' }, i) => {
      const { status = 'unheard', value } = ends[i] ?? {};
      const log = logs.get(effect) ?? logs.set(effect, []).get(effect) ?? [];
      // Each kind has its own words for what came of it; one that it does not know is a violation by the model.
      log.push({ kind, call, return: end, hash, given, status, value } as EffectOperation);
    });
  for await (const text of createInterface({ input: createReadStream(file) })) {
    const line = readLine(text);
    if (!line) continue;
    if (line.ops) open.set(line.call, { at: line.at, ops: line.ops });
    const called = line.ends && open.get(line.call);
    if (!line.ends || !called) continue;
    open.delete(line.call);
    add(called.ops, called.at, line.at, line.ends);
  }
  for (const { at, ops } of open.values()) add(ops, at, Infinity, []);
  return logs;
}

/** The last line of a worker that was killed may be cut. */
function readLine(text: string): Line | undefined {
  try {
    return JSON.parse(text) as Line;
  } catch {
    return undefined;
  }
}

function wordsOf({ kind, status, value, call, return: end, ...more }: EffectOperation): string {
  const given = 'given' in more && more.given ? ` ${more.given}` : '';
  return `${kind}${given} → ${status}${value === undefined ? '' : ` ${value}`} (${call.toFixed(0)}–${end === Infinity ? '?' : end.toFixed(0)})`;
}
