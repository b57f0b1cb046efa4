/** What beginning with turns of another life, and taking turns back, ask of activities, and what these answer. */
import type { Episode, EpisodeLinks, Task } from '../../records/episodes.js';
import type { AppChunk } from '../context/reducers.js';
import type { WindowTurn } from '../state/compaction-state.js';
import type { Origin } from '../protocol/input.js';
import type { ConversationIdentity } from '../../records/identity.js';
import type { Beginning, Cut, SlotRange } from '../../records/slots.js';

/** What a life goes on with after another one's turns, or after a rewind. */
export interface Resumption {
  /** What a model call sees word for word. */
  readonly context: readonly SlotRange[];
  /** What stands before it: summaries of the turns that are not in it, the goal and the open tasks, and what the scope knows. */
  readonly base?: { readonly ref: string; readonly text: string };
  /** As a tool has set it. */
  readonly task: Task | null;
  /** Written for it, because those that there are belong to another life or session. */
  readonly episodes: readonly CarriedEpisode[];
  /** Highest number of an episode. */
  readonly compactions: number;
  /** Estimate of the context and the base. */
  readonly tokens: number;
  /** Of the application, with its estimates of tokens. Absent: in a history of an earlier version. */
  readonly chunks?: readonly AppChunk[];
  /** When its session began, in epoch milliseconds (seed 001, Session Metadata Preservation). Absent: with this life, or as it was. */
  readonly since?: number;
}

export interface CarriedEpisode {
  readonly episode: Episode & EpisodeLinks;
  readonly session: number;
  readonly slots: readonly SlotRange[];
}

/** `open-origin`: a new life begins with turns of another one. Done again it gives the same. */
export interface OpenOriginInput {
  readonly identity: ConversationIdentity;
  readonly origin: Origin;
}

export interface OpenedOrigin extends Resumption {
  readonly life: string;
  readonly beginning: Beginning;
  /** The highest that it shares. */
  readonly slot: number;
  readonly session: number;
  /** How many turns it shares, and how many of them are in the context. */
  readonly turns: number;
  readonly inContext: number;
  /** Turns of its session that no request to long-term memory has (memory/turn-claimed-once), summarized ones too. */
  readonly window: readonly WindowTurn[];
  readonly attributes: 'registered' | 'missing';
}

/** `rewind`: turns after `to`, or from it on, are cut out, and kept as a branch. */
export interface RewindInput {
  readonly identity: ConversationIdentity;
  readonly requestId: string;
  /** Numbers what archives and restores in this life: a late attempt of an earlier one changes nothing. */
  readonly move: number;
  readonly branch: number;
  readonly to: string;
  /** True: that turn goes too, and what stays is what it came after. */
  readonly before?: true;
  /** The highest slot given out, and of messages that wait: these are not cut. */
  readonly slot: number;
  readonly waiting: readonly SlotRange[];
  readonly session: number;
  /** Epoch seconds. */
  readonly at: number;
  readonly compactions: number;
  /** Tokens at which a compaction is due: what stands before the messages is kept small beside it. Absent: no turn has begun yet. */
  readonly line?: number;
}

export interface Rewound extends Resumption {
  readonly life: string;
  /** null when nothing came after that turn. */
  readonly cut: Cut | null;
  readonly turns: number;
  readonly session: number;
  /** As in `OpenedOrigin`; absent in a history of an earlier version. */
  readonly window?: readonly WindowTurn[];
}
