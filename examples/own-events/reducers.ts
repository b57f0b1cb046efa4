import type { Reducers } from 'perdura/workflows';

interface Ticket {
  readonly id: number;
  readonly title?: string;
  readonly state?: string;
}

/** What a chunk says begins with the ticket, so that a later event finds it again by what the chunk is about. */
export const reducers: Reducers = {
  // ADD: a chunk of a type of our own. The model reads it as `[TICKET] …`.
  'ticket.opened': ({ payload }) => {
    const { id, title } = payload as unknown as Ticket;
    return [{ kind: 'ADD', chunk: { type: 'TICKET', text: `Ticket ${id}: ${title ?? 'untitled'} (open)` } }];
  },

  // UPDATE: the newest chunk of that type gets another text, in the same place.
  'ticket.changed': ({ payload }, { chunks }) => {
    const { id, title, state } = payload as unknown as Ticket;
    const newest = chunks.filter(({ type }) => type === 'TICKET').at(-1);
    return newest && [{ kind: 'UPDATE', id: newest.id, text: `Ticket ${id}: ${title ?? 'untitled'} (${state ?? 'changed'})` }];
  },

  // DELETE: it leaves the context; the trace of it stays.
  'ticket.closed': (_event, { chunks }) =>
    chunks
      .filter(({ type }) => type === 'TICKET')
      .slice(-1)
      .map(({ id }) => ({ kind: 'DELETE', id })),

  // BATCH_REPLACE: many for one, and a new epoch begins.
  'tickets.summed-up': ({ payload }, { chunks }) => [
    {
      kind: 'BATCH_REPLACE',
      ids: chunks.filter(({ type }) => type === 'TICKET').map(({ id }) => id),
      chunks: [{ type: 'TICKET_SUMMARY', text: String(payload) }],
    },
  ],

  // No operations: nothing changes.
  'ticket.viewed': () => undefined,

  // It is parked with its error, and the conversation goes on.
  'ticket.broken': () => {
    throw new Error('this reducer has a mistake');
  },
};
