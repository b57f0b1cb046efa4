/** What changes a conversation in its turn, behind what runs and what is queued: it is accepted at once, and done when its turn comes. */
import type { Client } from '@temporalio/client';
import { randomUUID } from 'node:crypto';
import type { UpdateDefinition } from '@temporalio/common';
import type { AskWorker } from './patience.js';

/** How long one waits for it. */
export interface ChangeOptions {
  /** Ends the waiting; what was accepted is done all the same. */
  readonly signal?: AbortSignal | undefined;
  /** The conversation has it. */
  readonly onAccepted?: () => void;
}

export type AskChange = <Result>(
  request: { readonly id: string; readonly attempt: string } & ChangeOptions,
  update: UpdateDefinition<Result, [{ id?: string }]>,
) => Promise<Result>;

/** The request has an id, so that saying it again, to the next run if need be, asks once. */
export function createAskChange(handleOf: (id: string) => ReturnType<Client['workflow']['getHandle']>, askWorker: AskWorker): AskChange {
  return ({ id, attempt, signal, onAccepted }, update) => {
    const requestId = randomUUID();
    return askWorker({ id, attempt, signal }, async () => {
      const asked = await handleOf(id).startUpdate(update, {
        args: [{ id: requestId }],
        updateId: `${update.name}-${requestId}`,
        waitForStage: 'ACCEPTED',
      });
      onAccepted?.();
      return asked.result();
    });
  };
}
