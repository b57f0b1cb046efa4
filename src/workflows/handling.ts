/** What the handlers of all messages share. */
import type { ConversationEvent } from '../conversation/event.js';
import type { Said } from '../conversation/protocol/input.js';
import type { ConversationState } from '../conversation/state.js';
import type { Bell } from './bell.js';

export interface Handling {
  readonly state: () => ConversationState;
  readonly dispatch: (event: ConversationEvent) => void;
  readonly bell: Bell;
  /** True once the run is about to hand over: whoever waits is told `continues`. */
  readonly isHandingOver: () => boolean;
  /** An update after the last hand-over check would be lost with this run's results: it is counted, then served. */
  readonly counted: <Args extends unknown[], Result>(handle: (...args: Args) => Promise<Result>) => (...args: Args) => Promise<Result>;
  /** A message or a reset, under its id. */
  readonly accept: (said: Said, id: string) => void;
  /** A signal cannot be refused: it is told in the status. */
  readonly reject: (name: string, reason: string) => void;
}
