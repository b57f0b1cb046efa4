/** What the gateway says beyond its schema, where its answer is open. */
import type { components } from '../../api/schema.js';

export type Chunk = components['schemas']['Chunk'];
export type ContextView = components['schemas']['ContextView'];
export type Change = components['schemas']['ContextChange'] & {
  readonly cause: string | null;
  readonly method: string | null;
  readonly model: string | null;
  readonly episode: string | null;
  readonly messages: { readonly before: number; readonly after: number };
};
export interface WhyAnswer {
  readonly turn: string;
  readonly hasEnded: boolean;
  readonly branch?: number;
  readonly entries: number;
  readonly inPrompt: number;
  readonly shortened: readonly { readonly turn: string; readonly kind: 'message' | 'result'; readonly item: string }[];
  readonly causes: readonly Cause[];
  readonly complete: boolean;
  readonly problems: readonly string[];
}

export interface Cause {
  readonly kind: 'compacted' | 'truncated' | 'trimmed' | 'session-ended' | 'rewound' | 'returned' | 'other';
  readonly at: number;
  readonly epoch: number;
  readonly session: number;
  readonly turns: readonly string[];
  readonly tokens: { readonly before: number; readonly after: number } | null;
  readonly model: string | null;
  readonly method: string | null;
  readonly failure: string | null;
  readonly episode: string | null;
  readonly summary: string | null;
  readonly from: 'history' | 'store';
}

export interface Index {
  readonly epoch: number;
  readonly session: number;
  readonly budget: number;
  readonly compactsAt: number;
  readonly total: number;
  readonly tokenizer?: string;
  readonly reported: number | null;
  readonly compactions: number;
  readonly canUndo: boolean;
}

export interface KnownTurns {
  readonly whole: readonly string[];
  readonly inPart: readonly string[];
  readonly shortened: readonly { readonly turn: string; readonly kind: string }[];
  readonly summarized: readonly { readonly episode: string; readonly turns: readonly string[] }[];
  readonly leftOut: readonly string[];
  readonly earlierSessions: readonly string[];
}

export function numberOf(turn: string): number {
  return Number(turn.replace(/^turn_/, ''));
}

/** "turns 1–4, 7". */
export function spans(turns: readonly string[]): string {
  const numbers = [...new Set(turns.map(numberOf))].sort((a, b) => a - b);
  const found: [number, number][] = [];
  for (const number of numbers) {
    const last = found.at(-1);
    if (last !== undefined && last[1] === number - 1) last[1] = number;
    else found.push([number, number]);
  }
  const text = found.map(([first, last]) => (first === last ? String(first) : `${first}–${last}`)).join(', ');
  return `${numbers.length === 1 ? 'turn' : 'turns'} ${text}`;
}
