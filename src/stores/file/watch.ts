/** Waiting for news in a folder. */
import { watch, type FSWatcher } from 'node:fs';

/** Waiting never lasts longer, as not every file system tells of changes, and a folder that is not there yet cannot. */
const POLL_MS = 15;

export interface FolderWatch {
  /** Resolves when something may have changed since the last call, at the latest after 15 ms or when `signal` aborts. */
  changed(signal: AbortSignal): Promise<void>;
  close(): void;
}

export function watchFolder(folder: string, isOurs: (file: string) => boolean): FolderWatch {
  let watcher: FSWatcher | undefined;
  let news = false;
  let wake: (() => void) | undefined;

  function begin(): void {
    try {
      watcher = watch(folder, (_, file) => {
        if (file !== null && !isOurs(file)) return;
        news = true;
        wake?.();
      });
      // The folder is gone, or watching ended: polling goes on, and watching begins again when it can.
      watcher.on('error', end);
    } catch {
      watcher = undefined;
    }
  }

  function end(): void {
    watcher?.close();
    watcher = undefined;
  }

  return {
    async changed(signal) {
      if (watcher === undefined) begin();
      if (!news && !signal.aborted) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(done, POLL_MS);
          function done(): void {
            clearTimeout(timer);
            signal.removeEventListener('abort', done);
            wake = undefined;
            resolve();
          }
          wake = done;
          signal.addEventListener('abort', done, { once: true });
        });
      }
      news = false;
    },
    close: end,
  };
}
