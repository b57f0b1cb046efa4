/** What the gateway says of a conversation's states, where its answer is open. */
import type { components } from '../../api/schema.js';
import { count, dollars } from '../../ui/words.js';

export type Moments = components['schemas']['Moments'];
export type Moment = components['schemas']['Moment'];
export type MomentView = Omit<components['schemas']['MomentView'], 'before' | 'after'> & {
  readonly before: Scene | null;
  readonly after: Scene;
};

export interface Scene {
  readonly status: {
    readonly phase: string;
    readonly turn: number;
    readonly turns: number;
    readonly session: number;
    readonly epoch: number;
    readonly mode: string;
    readonly queued: number;
    readonly waitingFor?: string;
    readonly pendingApprovals: number;
    readonly usage: { readonly costUsd: number | null };
  };
  readonly index: { readonly total: number };
  readonly control: Control | null;
  readonly chunks: readonly SceneChunk[];
  readonly queue: readonly Queued[];
}

export interface SceneChunk {
  readonly id: string;
  readonly tokens: number;
  readonly turn: string;
  readonly role: string;
  readonly words: string;
}

export interface Control {
  readonly mode: 'auto' | 'stepping';
  readonly stepLock: string | null;
  readonly running: string | null;
  readonly pausedBy: string | null;
  readonly next: string | null;
  readonly breakpoints: Breakpoints;
  readonly turn: {
    readonly id: string;
    readonly calls: readonly { readonly id: string; readonly name: string; readonly target: string; readonly status: string }[];
  } | null;
  readonly subAgents?: readonly { readonly conversation: string; readonly mode: string; readonly next: string | null }[];
}

export interface Breakpoints {
  readonly tools?: readonly string[];
  readonly events?: readonly string[];
  readonly onError?: boolean;
  readonly costUsd?: number;
}

export interface Queued {
  readonly id: string;
  readonly queuedAt: number;
  readonly event:
    | { readonly kind: 'message'; readonly turnId: string; readonly bytes: number; readonly delivery: string; readonly preview?: string }
    | { readonly kind: 'reset' }
    | { readonly kind: 'app'; readonly type: string }
    | { readonly kind: 'more'; readonly count: number };
}

/** Of a state, what a person compares first. */
export function factsOf({ status, index, control, queue }: Scene): readonly (readonly [name: string, value: string])[] {
  return [
    ['Phase', status.phase],
    ['Turn', `${status.turn} (${status.turns} ended)`],
    ['Session', String(status.session)],
    ['Epoch', String(status.epoch)],
    ['Mode', status.mode],
    ['Context', `${count(index.total)} tokens`],
    ['Queue', String(queue.length)],
    ['Waits for people', String(status.pendingApprovals)],
    ['Cost', dollars(status.usage.costUsd)],
    ['Next', control?.next ?? '—'],
  ];
}
