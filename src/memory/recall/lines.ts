/** What is called how in the index of a scope, and by which address people and models open it. */
import { hashText } from '../../search/numbers.js';
import type { ConversationKey, ScopeKey } from '../../stores/store.js';

/** What a life has beside its messages. */
export type Beside = 'episode' | 'item';

export function lineName({ conversation, life }: Pick<ConversationKey, 'conversation' | 'life'>, beside?: Beside): string {
  return JSON.stringify(beside === undefined ? [conversation, life] : [conversation, life, beside]);
}

export interface LifeLine {
  readonly key: ConversationKey;
  /** Absent: its messages. */
  readonly beside?: Beside;
}

/** Undefined for a document's. */
export function readLine(scope: ScopeKey, line: string): LifeLine | undefined {
  if (!line.startsWith('[')) return undefined;
  const [conversation = '', life = '', beside] = JSON.parse(line) as [string, string, Beside?];
  const key = { namespace: scope.namespace, scope: scope.scope, conversation, life };
  return beside === undefined ? { key } : { key, beside };
}

/**
 * A life in an address: 12 hexadecimal digits that say nothing. A conversation's id would show a tenant's model how the installation
 * calls it.
 */
export function lifeMark({ conversation, life }: Pick<ConversationKey, 'conversation' | 'life'>): string {
  const name = `${conversation}\0${life}`;
  return `${digits(hashText(name, 0x2f0b4d1), 8)}${digits(hashText(name, 0x9e3779b1), 4)}`;
}

/** `3f2a9c1d52b0/12`, `3f2a9c1d52b0/ep_0003`. */
export function addressIn(key: Pick<ConversationKey, 'conversation' | 'life'>, place: number | string): string {
  return `${lifeMark(key)}/${place}`;
}

/** `fact/sem_0003`. */
export function addressOfDocument(kind: string, name: string): string {
  return `${kind}/${name}`;
}

function digits(hash: number, count: number): string {
  return (hash >>> 0).toString(16).padStart(8, '0').slice(-count);
}
