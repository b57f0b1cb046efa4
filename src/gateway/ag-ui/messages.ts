/** The messages that a client has, as they must be where it has some that do not stand. Pure. */
import type { ClientMessage } from './request.js';

export interface Messages {
  /** The client has messages of this run's turn, which begins anew. */
  readonly hasLost: boolean;
  add(message: ClientMessage): void;
  addCall(parent: string, call: { readonly id: string; readonly name: string; readonly arguments: string }): void;
  grow(id: string, text: string): void;
  remove(ids: readonly string[]): void;
  all(): readonly ClientMessage[];
}

export function createMessages(given: readonly ClientMessage[], prefix: string, continues: boolean): Messages {
  // What the client has answered to a call of the turn is of the turn too.
  const isOwn = ({ id, role, toolCallId }: ClientMessage): boolean =>
    !continues && (id.startsWith(prefix) || (role === 'tool' && typeof toolCallId === 'string' && toolCallId.startsWith(prefix)));
  const hasLost = given.some(isOwn);
  const before = given.filter((one) => !isOwn(one));
  // A client keeps thinking that no snapshot has: as an empty one it can be filled again.
  const emptied = given.filter((one) => isOwn(one) && one.role === 'reasoning').map((one) => ({ ...one, content: '' }));
  const own = new Map<string, Record<string, unknown> & ClientMessage>(emptied.map((one) => [one.id, one]));
  return {
    hasLost,
    add: (message) => void own.set(message.id, { ...message }),
    addCall(parent, { id, ...called }) {
      const message = own.get(parent) ?? { id: parent, role: 'assistant' };
      const calls = (message['toolCalls'] ?? []) as readonly unknown[];
      own.set(parent, { ...message, toolCalls: [...calls, { id, type: 'function', function: called }] });
    },
    grow(id, text) {
      const message = own.get(id);
      if (message) message['content'] = `${String(message['content'])}${text}`;
    },
    remove(ids) {
      for (const id of ids) own.delete(id);
    },
    all: () => [...before.filter(({ id }) => !own.has(id)), ...own.values()].map((one) => ({ ...one })),
  };
}
