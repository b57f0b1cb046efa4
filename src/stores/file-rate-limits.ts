/** Limits of providers as files, `<dir>/limits/<provider/model#account>.json`, each changed under a lock (rate-limits.ts). */
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isRecord } from '../platform/json.js';
import { isForgotten, learn, newLimiter, pass, release, showLimiter, take, type LimiterState } from './limiter-state.js';
import { withPeriods, type RateLimits } from './rate-limits.js';
import { describeErrors, unlessAbsent } from './file/errors.js';
import type { WithLock } from './file/lock.js';
import { fromFileName, toFileName } from './file/paths.js';

const END = '.json';

export function createFileRateLimits(dir: string, withLock: WithLock, clock: () => number = Date.now): RateLimits {
  const folder = join(dir, 'limits');
  /** Calls of one process take turns: of many that look at one lock the last one would have to look for long. */
  const turns = new Map<string, Promise<unknown>>();
  const inTurn = <T>(path: string, work: () => Promise<T>): Promise<T> => {
    const turn = (turns.get(path) ?? Promise.resolve()).then(work, work);
    turns.set(path, turn);
    const leave = (): void => void (turns.get(path) === turn && turns.delete(path));
    turn.then(leave, leave);
    return turn;
  };
  const change = <T>(attempt: string, of: string, step: (state: LimiterState, now: number) => T): Promise<T> => {
    const path = join(folder, `${toFileName(of)}${END}`);
    const locked = (work: () => Promise<T>): Promise<T> => inTurn(path, () => withLock(`${path}.lock`, work));
    return describeErrors(path, `${attempt} ${of}`, () =>
      locked(async () => {
        const now = clock();
        const known = await readState(path);
        const state = known && !isForgotten(known, now) ? known : newLimiter(now);
        const answer = step(state, now);
        // A provider that says nothing of limits leaves nothing here.
        if (known || Object.keys(state.buckets).length > 0 || state.blocked > now) await writeState(folder, path, state);
        return answer;
      }),
    );
  };
  return {
    take: (of, claim) => change('take room of', of, (state, now) => take(state, claim, now)),
    learn: (of, id, seen, set) => change('note what is left of', of, (state, now) => learn(state, id, withPeriods(seen), set, now)),
    release: (of, id, outcome) => change('give back room of', of, (state, now) => release(state, id, outcome, now)),

    async list() {
      const names = (await unlessAbsent(readdir(folder))) ?? [];
      const found = names.filter((name) => name.endsWith(END)).flatMap((name) => fromFileName(name.slice(0, -END.length)) ?? []);
      return Promise.all(
        found.sort().map((of) =>
          change('see the limits of', of, (state, now) => {
            pass(state, now);
            return showLimiter(of, state, Object.keys(state.leases).length, now);
          }),
        ),
      );
    },
  };
}

/** Undefined for what is damaged, too: it is learnt again. */
async function readState(path: string): Promise<LimiterState | undefined> {
  try {
    const found = JSON.parse((await unlessAbsent(readFile(path, 'utf8'))) ?? 'null') as unknown;
    const { buckets, flows, tickets, leases } = isRecord(found) ? found : {};
    return [buckets, flows, tickets, leases].every(isRecord) ? (found as unknown as LimiterState) : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Not synced: what a machine's end takes away is learnt again. */
async function writeState(folder: string, path: string, state: LimiterState): Promise<void> {
  await mkdir(folder, { recursive: true });
  await writeFile(`${path}.new`, JSON.stringify(state));
  await rename(`${path}.new`, path);
}
