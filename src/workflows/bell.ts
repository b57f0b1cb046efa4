/**
 * Rung whenever something has happened, for all who wait for it. The SDK's `condition` looks at every condition after every
 * task of every activation, which a replay of a long history pays for.
 */
export interface Bell {
  ring(): void;
  /** Resolves at the next ring. */
  rung(): Promise<void>;
  /** Resolves when it is so, looking again at each ring. */
  until(isSo: () => boolean): Promise<void>;
}

export function createBell(): Bell {
  let ringIt: () => void = () => undefined;
  let next: Promise<void> | undefined;
  const rung = (): Promise<void> => (next ??= new Promise((resolve) => (ringIt = resolve)));
  return {
    ring() {
      if (!next) return;
      next = undefined;
      ringIt();
    },
    rung,
    async until(isSo) {
      while (!isSo()) await rung();
    },
  };
}
