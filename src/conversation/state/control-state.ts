/** Stepping, as it lies in the state (control.ts). */
import type { Breakpoints, ControlMode, StepKind, StepResult } from '../protocol/stepping.js';

export interface Control {
  readonly mode: ControlMode;
  readonly lock: StepLock | null;
  /** The last ones, for whoever asked before a hand-over. */
  readonly results: readonly StepResult[];
  readonly breakpoints: Breakpoints;
  /** Why it stopped by itself. */
  readonly pausedBy: string | null;
  /** What a breakpoint has stopped before already. */
  readonly passed: string | null;
}

export interface StepLock {
  readonly id: string;
  readonly did: Exclude<StepKind, 'nothing'>;
  readonly target: string;
  readonly words: string;
  /** How the world was before it. */
  readonly before: { readonly slots: readonly number[]; readonly count: number; readonly contextTokens: number };
}

export const AUTO: Control = { mode: 'auto', lock: null, results: [], breakpoints: {}, pausedBy: null, passed: null };
