/**
 * Rung whenever something has happened, for all who wait for it. Looking is cheap and a promise is not (the SDK keeps the stack
 * trace of each, and a replay makes them all again): each waiting caller has one, and its condition is checked when it is notified.
 */
export interface ChangeNotifier {
  notify(): void;
  /** Resolves when it is so; looks at once, and then at each notification. */
  until(isSo: () => boolean): Promise<void>;
}

interface Waiter {
  readonly isSo: () => boolean;
  readonly go: () => void;
}

export function createChangeNotifier(): ChangeNotifier {
  let waiting: Waiter[] = [];
  return {
    notify() {
      if (waiting.length === 0) return;
      const all = waiting;
      waiting = [];
      for (const waiter of all) {
        if (waiter.isSo()) waiter.go();
        else waiting.push(waiter);
      }
    },
    until: (isSo) => new Promise((go) => (isSo() ? go() : waiting.push({ isSo, go }))),
  };
}
