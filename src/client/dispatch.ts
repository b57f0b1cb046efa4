/** An event of the application, handed to a conversation for its reducer (seed 004). */
import { randomUUID } from 'node:crypto';
import type { DispatchedEvent } from '../conversation/protocol/stepping.js';
import type { SteppingAccess } from './stepping.js';
import { readAppEvent } from '../conversation/protocol/stepping.js';
import type { JsonValue } from '../records/message.js';
import { dispatchUpdate } from '../workflows/messages.js';
import { ClientError } from './errors.js';

/** An event of the application. */
export interface AppEventToDispatch {
  /** The same twice is one event; one is made where there is none. */
  readonly id?: string;
  readonly type: string;
  readonly payload?: JsonValue;
}

/** A receipt for an event, with what its reducer has made of it where that was waited for. */
export type Dispatched = DispatchedEvent;

/** `wait`: for what its reducer makes of it, which is the `result`. */
export type Dispatch = (id: string, event: AppEventToDispatch, options?: DispatchOptions) => Promise<Dispatched>;

/** How an event is handed over. */
export interface DispatchOptions {
  readonly wait?: boolean;
  readonly signal?: AbortSignal;
}

/** Resolves once it is queued, durably, or with `wait` once it is reduced: over hand-overs too, since the same id is one event. */
export function createDispatch({ handleOf, askWorker }: SteppingAccess): Dispatch {
  return async (id, event, { wait, signal } = {}) => {
    const attempt = `cannot dispatch ${event.type} to ${id}`;
    const read = readAppEvent(event);
    if (!read.ok) throw new ClientError('invalid', `${attempt}: ${read.reason}`);
    const outgoing = { ...event, id: event.id ?? randomUUID() };
    const without = `dispatch it again with the same id (${outgoing.id}) once one does: it is one event`;
    if (!wait)
      return askWorker({ id, attempt, without }, () =>
        handleOf(id).executeUpdate(dispatchUpdate, { args: [outgoing], updateId: `dispatch-${outgoing.id}` }),
      );
    // A new id each time: a run that hands over answers so once.
    return askWorker({ id, attempt, signal, without }, () =>
      handleOf(id).executeUpdate(dispatchUpdate, { args: [{ ...outgoing, wait }], updateId: `dispatch-${outgoing.id}-${randomUUID()}` }),
    );
  };
}
