/** What a conversation's state knows of other lives and of turns taken back (lineage.ts, rewinding.ts). */
import type { TurnError } from '../protocol/contract.js';
import type { ConversationEvent } from '../event.js';
import type { Opened, Origin, RewindResult } from '../protocol/lineage.js';

export interface LineageState {
  readonly origin: Origin;
  readonly isOpen: boolean;
  /** What came before it was opened: numbered, in its order, once it is known from which numbers on. */
  readonly held: readonly ConversationEvent[];
  /** It cannot be opened, and the conversation with it. */
  readonly refused: TurnError | null;
  readonly opened: Opened | null;
}

export interface RewindState {
  /** Branches cut so far. */
  readonly branches: number;
  readonly asked: readonly AskedRewind[];
  readonly outcomes: readonly { readonly requestId: string; readonly outcome: RewindOutcome }[];
}

export interface AskedRewind {
  readonly requestId: string;
  readonly to: string;
  /** True: that turn goes too. */
  readonly before?: true;
  /** Said in place of what goes: it is taken back where the rewind fails. */
  readonly messageId?: string;
}

export type RewindOutcome =
  | { readonly kind: 'rewound'; readonly result: RewindResult }
  | { readonly kind: 'failed'; readonly type: string; readonly message: string };
