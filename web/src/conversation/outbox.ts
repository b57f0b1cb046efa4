/**
 * What this page has sent and no turn has taken yet. The id of a message makes sending it again harmless, so it is sent until the gateway
 * has said something of it; it outlives a reload of the tab.
 */
import { signal, type Signal } from '@preact/signals';
import { request, RequestError } from '../api/request.js';
import { describeError } from '../ui/words.js';
import type { Media, NamedMedia } from './turns.js';

export type Delivery = 'queue' | 'steer' | 'interrupt';

export interface Sent {
  readonly id: string;
  readonly text: string;
  readonly delivery: Delivery;
  readonly images: readonly Media[];
  readonly documents?: readonly NamedMedia[];
  readonly start?: { readonly agent?: string };
  readonly state: 'sending' | 'accepted' | 'refused';
  /** What became of it, in words. */
  readonly receipt?: string;
  readonly turn?: string;
}

export type Message = Pick<Sent, 'text' | 'delivery' | 'images' | 'documents' | 'start'>;

export interface Outbox {
  readonly all: Signal<readonly Sent[]>;
  send(message: Message): void;
  /** Its turn has begun. */
  taken(messageId: string): Sent | undefined;
  remove(messageId: string): void;
  again(messageId: string): void;
  close(): void;
}

const RETRY_MS = 2_000;

export function createOutbox(
  conversation: string,
  { onReset, onSent }: { readonly onReset: () => void; readonly onSent: () => void },
): Outbox {
  const storageKey = `perdura.outbox.${conversation}`;
  const all = signal<readonly Sent[]>(readKept(storageKey));
  const leaving = new AbortController();
  const change = (messages: readonly Sent[]): void => {
    all.value = messages;
    try {
      if (messages.length === 0) sessionStorage.removeItem(storageKey);
      else sessionStorage.setItem(storageKey, JSON.stringify(messages));
    } catch {
      // A browser that keeps nothing still sends.
    }
  };
  const update = (id: string, what: Partial<Sent>): void => change(all.value.map((one) => (one.id === id ? { ...one, ...what } : one)));
  const remove = (id: string): void => change(all.value.filter((one) => one.id !== id));

  const deliver = async ({ id, text, delivery, images, documents = [], start }: Sent): Promise<void> => {
    const body = {
      ...{ id, text, delivery },
      ...(images.length > 0 && { images: [...images] }),
      ...(documents.length > 0 && { documents: [...documents] }),
      ...(start && { start }),
    };
    while (!leaving.signal.aborted && all.value.some((one) => one.id === id)) {
      try {
        const taken = await request('post', '/v1/conversations/{id}/messages', {
          path: { id: conversation },
          query: { mode: 'enqueue' },
          body,
          signal: leaving.signal,
        });
        if (!('acceptedAs' in taken) || taken.turn === null) {
          remove(id);
          onReset();
        } else update(id, { state: 'accepted', receipt: describeReceipt(taken), turn: taken.turn });
        onSent();
        return;
      } catch (error) {
        if (leaving.signal.aborted) return;
        const isOurs = error instanceof RequestError && error.status > 0 && error.status < 500 && error.status !== 429;
        if (isOurs) return update(id, { state: 'refused', receipt: describeError(error) });
        update(id, { receipt: `Not sent yet: ${describeError(error)}. It is tried again.` });
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  };

  for (const one of all.value) if (one.state === 'sending') void deliver(one);
  return {
    all,
    send(message) {
      const sent: Sent = { ...message, id: `page-${crypto.randomUUID()}`, state: 'sending' };
      change([...all.value, sent]);
      void deliver(sent);
    },
    taken(messageId) {
      const found = all.value.find(({ id }) => id === messageId);
      if (found !== undefined) remove(messageId);
      return found;
    },
    remove,
    again(messageId) {
      const found = all.value.find(({ id }) => id === messageId);
      if (found === undefined) return;
      update(messageId, { state: 'sending', receipt: undefined });
      void deliver(found);
    },
    close: () => leaving.abort(),
  };
}

function describeReceipt({ acceptedAs, position }: { readonly acceptedAs: string; readonly position: number }): string {
  if (acceptedAs === 'steer') return 'Joins the running turn at its next step';
  if (acceptedAs === 'interrupt') return 'Stops the running turn, and is answered next';
  if (position === 0) return 'Queued: it is answered next';
  return `Queued: ${position === 1 ? 'one other comes' : `${position} others come`} before it`;
}

function readKept(name: string): Sent[] {
  try {
    const found: unknown = JSON.parse(sessionStorage.getItem(name) ?? '[]');
    return Array.isArray(found)
      ? (found as Sent[]).filter(({ id, text, images }) => typeof id === 'string' && typeof text === 'string' && Array.isArray(images))
      : [];
  } catch {
    return [];
  }
}

/** What was said before there was a conversation: it is taken along to the view of the new one. */
const first = new Map<string, Message>();

export function leaveFirst(id: string, message: Message): void {
  first.set(id, message);
}

export function takeFirst(id: string): Message | undefined {
  const found = first.get(id);
  first.delete(id);
  return found;
}
