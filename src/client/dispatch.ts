/** An event of the application's own, handed to a conversation for its reducer (seed 004). */
import { randomUUID } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import { readAppEvent } from '../conversation/protocol/control-input.js';
import type { JsonValue } from '../records/message.js';
import { dispatchUpdate } from '../workflows/messages.js';
import { ClientError } from './errors.js';
import { withRetries } from './with-retries.js';

export interface AppEventToDispatch {
  /** The same twice is one event; one is made where there is none. */
  readonly id?: string;
  readonly type: string;
  readonly payload?: JsonValue;
}

export interface Dispatched {
  readonly id: string;
  /** How many come before it. */
  readonly position: number;
}

export type Dispatch = (id: string, event: AppEventToDispatch) => Promise<Dispatched>;

/** Resolves once it is queued, durably; what its reducer makes of it shows in the status. */
export function createDispatch(handleOf: (id: string) => WorkflowHandle): Dispatch {
  return async (id, event) => {
    const attempt = `cannot dispatch ${event.type} to ${id}`;
    const read = readAppEvent(event);
    if (!read.ok) throw new ClientError('invalid', `${attempt}: ${read.reason}`);
    const own = { ...event, id: event.id ?? randomUUID() };
    return withRetries({ attempt }, () => handleOf(id).executeUpdate(dispatchUpdate, { args: [own], updateId: `dispatch-${own.id}` }));
  };
}
