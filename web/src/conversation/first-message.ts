/** What was said before there was a conversation: it is taken along to the view of the new one. */
import type { Sent } from './outbox.js';

type First = Pick<Sent, 'text' | 'delivery' | 'images' | 'documents' | 'start'>;

const left = new Map<string, First>();

export function leaveFirst(id: string, message: First): void {
  left.set(id, message);
}

export function takeFirst(id: string): First | undefined {
  const found = left.get(id);
  left.delete(id);
  return found;
}
