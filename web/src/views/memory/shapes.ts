/** What the gateway says of a scope's memory, where its answer is open. */
export interface Source {
  readonly trust: string;
  readonly conversation?: string;
  readonly turn_ids?: readonly string[];
  readonly tools?: readonly string[];
}

export interface BlamedLine {
  readonly line: string;
  readonly number: number;
  readonly source: Source;
  readonly change?: { readonly id: string; readonly ts: number; readonly cause: string };
}

export interface Version {
  readonly id: string;
  readonly ts: number;
  readonly cause: string;
  readonly from: string;
  readonly version: string;
  readonly lines: readonly { readonly line: string; readonly source: Source }[];
  readonly added: number;
  readonly removed: number;
}

export interface Proposal {
  readonly id: string;
  readonly ts: number;
  readonly state: 'open' | 'accepted' | 'rejected';
  readonly line: string;
  readonly source: Source;
}

export interface Fact {
  readonly id: string;
  readonly ts: number;
  readonly fact: string;
  readonly tags: readonly string[];
  readonly confidence: number;
  readonly salience: number;
  readonly source: Source | null;
  readonly replaced?: { readonly by: string | null; readonly ts: number };
}

export interface Episode {
  readonly id: string;
  readonly ts: number;
  readonly turn_ids: readonly string[];
  readonly summary: string;
  readonly tags: readonly string[];
  readonly session: number;
  readonly supersedes?: readonly string[];
  readonly fold?: { readonly text: string; readonly through: string };
  readonly made?: { readonly method: string; readonly model: string; readonly tokensBefore: number; readonly tokensAfter: number };
}

export interface HistoryEntry {
  readonly id: string;
  readonly kind: 'summary' | 'raw-fallback';
  readonly ts: number;
  readonly text: string;
}

const CAUSES: Readonly<Record<string, string>> = {
  consolidation: 'consolidated',
  hand: 'written by hand',
  accepted: 'accepted by a person',
  forgotten: 'forgotten',
  care: 'tidied up',
};

export function causeInWords(cause: string): string {
  return CAUSES[cause] ?? cause;
}

/** Who stands behind a line. */
export function trustInWords({ trust, tools }: Source): string {
  if (trust.startsWith('tool:')) return `from the tool ${trust.slice(5)}`;
  const who = { user: 'a user said it', person: 'a person wrote it', model: 'the model concluded it' }[trust] ?? trust;
  return tools === undefined ? who : `${who} after ${tools.join(', ')}`;
}
