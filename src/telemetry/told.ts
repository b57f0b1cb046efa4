/** What was told of late, so that a workflow task that is done again on this worker tells nothing twice. */
export interface Told {
  /** False for a mark that this run has told already. */
  isNew(runId: string, mark: string): boolean;
}

/** Of one run: more than a workflow task tells. */
const MARKS = 256;
const RUNS = 1_000;

export function createTold(): Told {
  const runs = new Map<string, Set<string>>();
  return {
    isNew(runId, mark) {
      const marks = runs.get(runId) ?? new Set<string>();
      // Last in the map: told of latest.
      runs.delete(runId);
      runs.set(runId, marks);
      if (runs.size > RUNS) dropFirst(runs);
      if (marks.has(mark)) return false;
      marks.add(mark);
      if (marks.size > MARKS) dropFirst(marks);
      return true;
    },
  };
}

function dropFirst(of: Map<string, unknown> | Set<string>): void {
  const [first] = of.keys();
  if (first !== undefined) of.delete(first);
}
