/** Somebody who watches a conversation from its beginning, and draws what the feed says. */
import type { Scene } from '../support/scene.js';

export interface Screen {
  /** What stands there of the latest model call. */
  readonly text: string;
  /** How often it had to forget what it had drawn. */
  readonly resets: number;
  /** How the turns ended that it saw the end of. */
  readonly ends: readonly string[];
}

export function startScreen(scene: Scene, id: string): Screen {
  const stop = new AbortController();
  let drawn = '';
  let call = '';
  let resets = 0;
  const ends: string[] = [];
  const watching = (async () => {
    for await (const { event } of scene.client.watch(id, { after: '0', signal: stop.signal })) {
      if (event.kind === 'reset') {
        resets += 1;
        drawn = '';
      } else if (event.kind === 'text') {
        drawn = event.call === call ? drawn + event.text : event.text;
        call = event.call;
      } else if (event.kind === 'turn-finished') ends.push(event.result.stopReason);
    }
  })();
  watching.catch(() => undefined);
  scene.onClose(async () => {
    stop.abort();
    await watching;
  });
  return {
    get text() {
      return drawn;
    },
    get resets() {
      return resets;
    },
    ends,
  };
}
