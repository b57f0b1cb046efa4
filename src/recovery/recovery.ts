/**
 * What a worker does so that a conversation does not wait when a worker ends: it holds a lease and announces what it runs (lease-thread.ts),
 * takes over what others ran that have ended, and calls no model and runs no tool under a lease that has ended.
 *
 * @rule recovery/fenced-calls-nothing: A worker that was away for longer than its lease lasts (stopped, or without a network) finds out
 *   whether another one has gone on with what it ran before it calls a model or runs a tool for it. What runs already hears of it with its
 *   heartbeat; and what it brings all the same is the ledger's to judge. (test: test/chaos/stopped.slow.test.ts)
 * @rule recovery/store-away-goes-on: Where the store does not answer, no lease can be claimed, and none is missed: what runs goes on. (test:
 *   test/recovery/recovery.test.ts)
 */
import type { Worker as Thread } from 'node:worker_threads';
import { asyncLocalStorage } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { ConnectionLike } from '@temporalio/client';
import type { ActivityInterceptorsFactory, Logger } from '@temporalio/worker';
import { isAwaited, takeOver } from '../client/temporal/take-over.js';
import type { Models } from '../models/known-models.js';
import { withStream } from '../models/model.js';
import { errorMessage } from '../platform/errors.js';
import { orUndefinedAfter } from '../platform/promises.js';
import { LEASE_ENDED, WORKER_LOST } from '../records/turn-end.js';
import { HELD_MS } from '../stores/leases.js';
import type { FromLease, LeaseThreadData, ToLease } from './lease-thread.js';

export interface Recovery {
  /** The lease's thread knows each activity while it runs. */
  readonly activities: ActivityInterceptorsFactory;
  /**
   * Before what is paid for, or has an effect (recovery/fenced-calls-nothing). Undefined: the lease holds. Rejects where the running activity
   * is another worker's by now.
   */
  confirmLease(): Promise<void> | undefined;
  /** The same models, each call of which is confirmed. */
  guard(models: Models): Models;
  /** No one takes over what this worker leaves: it has ended it. */
  close(): Promise<void>;
}

export interface RecoveryOptions extends Omit<LeaseThreadData, 'beaten'> {
  readonly connection: Pick<ConnectionLike, 'workflowService' | 'withDeadline'>;
  readonly log: () => Pick<Logger, 'warn' | 'info'>;
}

/** How long a store that does not answer holds up a call. */
const CONFIRM_MS = 1_500;
const WITHDRAW_MS = 2_000;
const NANOS_OF_A_MS = 1_000_000n;
/** What Temporal has sent to a process that stood still arrives when it goes on, and may be another worker's by then: each call is confirmed. */
const DOUBT = 5_000n * NANOS_OF_A_MS;

/** `start`: begins the program of lease-thread.ts. */
export async function startRecovery(
  { connection, log, ...settings }: RecoveryOptions,
  start: (workerData: LeaseThreadData) => Promise<Thread>,
): Promise<Recovery> {
  const { namespace, identity } = settings;
  const beaten = new SharedArrayBuffer(BigInt64Array.BYTES_PER_ELEMENT);
  const heldSince = new BigInt64Array(beaten);
  const thread = await start({ ...settings, beaten });
  thread.unref();
  /** By token; true once another worker has gone on with it. */
  const running = new Map<string, boolean>();
  const confirming = new Map<number, () => void>();
  let confirmed = 0;
  let doubtUntil = 0n;
  let withdrawn = (): void => undefined;
  const send = (message: ToLease): void => thread.postMessage(message);

  const goOnWith = async ({ lease, why, announced }: Extract<FromLease, { kind: 'claimed' }>): Promise<void> => {
    const warn = (message: string, fields: object): void => log().warn(message, { ...fields });
    const taken = await takeOver(connection, announced, { namespace, identity, warn });
    const ended = why === 'gone' ? 'has ended' : 'gives no sign of life';
    log().info(`worker ${lease} ${ended}: its conversations go on`, { attempts: taken });
    send({ kind: 'settled', lease });
  };
  const fence = (lease: string): void => {
    const lost = running.size;
    doubtUntil = process.hrtime.bigint() + DOUBT;
    for (const token of running.keys()) running.set(token, true);
    log().warn(`fenced: the lease of worker ${lease} ended while this process stood still, and another worker has gone on`, {
      calls: lost,
    });
  };
  thread.on('message', (message: FromLease) => {
    switch (message.kind) {
      case 'claimed':
        return void goOnWith(message).catch((error: unknown) =>
          log().warn('what a worker ran that has ended is not taken over', { error: errorMessage(error) }),
        );
      case 'fenced':
        return fence(message.lease);
      case 'confirmed':
        confirming.get(message.number)?.();
        return void confirming.delete(message.number);
      case 'withdrawn':
        return withdrawn();
    }
  });

  const now = (): bigint => process.hrtime.bigint();
  const isHeld = (): boolean => now() > doubtUntil && now() - Atomics.load(heldSince, 0) < BigInt(HELD_MS) * NANOS_OF_A_MS;
  const refuse = (): never => {
    throw ApplicationFailure.retryable(LEASE_ENDED, WORKER_LOST);
  };
  const confirmNow = async (token: string): Promise<void> => {
    const number = (confirmed += 1);
    const answer = new Promise<void>((resolve) => confirming.set(number, resolve));
    send({ kind: 'confirm', number });
    await orUndefinedAfter(CONFIRM_MS, answer);
    confirming.delete(number);
    // Where neither answers it goes on (recovery/store-away-goes-on).
    if (running.get(token) === true || (await isAwaited(connection, { namespace, identity, token })) === false) refuse();
  };
  const confirmLease = (): Promise<void> | undefined => {
    const token = asyncLocalStorage.getStore()?.info.base64TaskToken;
    if (token === undefined) return undefined;
    if (running.get(token) === true) refuse();
    return isHeld() ? undefined : confirmNow(token);
  };

  return {
    confirmLease,
    guard: (models) =>
      Object.assign(
        (name: string) => {
          const model = models(name);
          return withStream(model, async (request, options) => {
            await confirmLease();
            return model.stream(request, options);
          });
        },
        { limits: models.limits },
      ),
    activities: ({ info }) => ({
      inbound: {
        async execute(input, next) {
          const { base64TaskToken: token, attempt, activityType } = info;
          const { workflowId = '', runId = '' } = info.workflowExecution ?? {};
          running.set(token, false);
          send({ kind: 'began', attempt: { token, workflowId, runId, attempt, what: activityType } });
          try {
            return await next(input);
          } finally {
            running.delete(token);
            send({ kind: 'ended', token });
          }
        },
      },
    }),
    async close() {
      const done = new Promise<void>((resolve) => (withdrawn = resolve));
      send({ kind: 'withdraw' });
      await orUndefinedAfter(WITHDRAW_MS, done);
      await thread.terminate();
    },
  };
}
