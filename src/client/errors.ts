/** What can go wrong on the way to a conversation, in the words that decide what a program or a person does next. */
import { isGrpcServiceError, QueryNotRegisteredError, WorkflowNotFoundError, WorkflowUpdateFailedError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';

/** What went wrong, by what a program does next. */
export type ClientErrorKind =
  /** No conversation of that id runs. */
  | 'not-found'
  /** The message was refused; the text names the field and the limit. */
  | 'invalid'
  /** More bytes than are taken. */
  | 'too-large'
  /** By its content the file is of no type that is taken. */
  | 'media-type'
  /** It cannot be done as the conversation stands now: it runs, nothing is in it yet, … */
  | 'conflict'
  /** The conversation is closing, or its workflow has ended. */
  | 'closed'
  /** Another step runs, or the conversation runs by itself. */
  | 'cannot-step'
  /** As many events as may wait do so. */
  | 'queue-full'
  /** Nothing of that name waits for a decision, or not with these arguments. */
  | 'not-waiting'
  /**
   * No worker takes work where the conversation is. A message is kept and answered once one does; of anything else the text says what is
   * known.
   */
  | 'no-worker'
  /** Temporal or the store does not answer. */
  | 'unreachable'
  /** The caller's signal. A sent request stays sent. */
  | 'aborted'
  /** This client was made without what it takes. */
  | 'unavailable'
  | 'failed';

/** What a client could not do. `kind` is for programs; the message says what was attempted, on what, and what to do. */
export class ClientError extends Error {
  override readonly name = 'ClientError';
  constructor(
    readonly kind: ClientErrorKind,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

const GRPC = {
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  resourceExhausted: 8,
  failedPrecondition: 9,
  aborted: 10,
  unimplemented: 12,
  unavailable: 14,
  cancelled: 1,
};

/**
 * Whether to retry with the same id. An update that races a hand-over can fail undelivered (measured, 2-3 %), and one
 * that was accepted by a run which then handed over has no answer there: message ids make both harmless.
 */
export function isWorthAnotherTry(error: unknown): boolean {
  const failure = failureIn(error);
  if (failure) return failure.type === 'Continues' || failure.type === 'AcceptedUpdateCompletedWorkflow';
  if (isForgottenUpdate(error) || isUnprocessed(error)) return true;
  const code = grpcCode(error);
  if (code === undefined) return nameError(error) === 'WorkflowUpdateRPCTimeoutOrCancelledError';
  return [GRPC.unavailable, GRPC.failedPrecondition, GRPC.resourceExhausted, GRPC.aborted, GRPC.deadlineExceeded].includes(code);
}

/** One that a run had not taken yet when it handed over: its waiting caller gets the error that there is no such update. */
function isForgottenUpdate(error: unknown): boolean {
  return error instanceof WorkflowNotFoundError && /^update .* not found/.test(error.message);
}

/** A task may be done without the update that it should have brought: nothing has happened to it then. */
function isUnprocessed(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) if (UNPROCESSED.test(at.message)) return true;
  return false;
}

const UNPROCESSED = /^Workflow Update is rejected because it wasn't processed by worker/;

/** The server has no such call. */
export function isUnimplemented(error: unknown): boolean {
  return grpcCode(error) === GRPC.unimplemented;
}

/** No worker is there to answer. */
export function isAway(error: unknown): boolean {
  return grpcCode(error) === GRPC.unavailable;
}

/** Temporal holds back a run whose predecessor lived less than a second, for longer each time that this happens in a row. */
export const BETWEEN_RUNS_MS = 30_000;

/** A moment in which a conversation cannot answer: the next run has not begun, or the question came before its task (early-questions.ts). */
export function isBetweenRuns(error: unknown): boolean {
  if (error instanceof QueryNotRegisteredError && error.message.includes('ask again')) return true;
  return grpcCode(error) === GRPC.failedPrecondition && messageWithCause(error).includes('not scheduled');
}

/** Temporal takes 10,000 signals a run; a worker that is there hands over long before. */
const TOO_MANY_SIGNALS =
  'ten thousand signals wait for it and no worker has taken them; what was sent before is safe. Start a worker (`perdura worker`), then send this again';

/** Each `send` that waits for its turn's end is one of them. */
const TOO_MANY_UPDATES =
  'as many calls as the server allows wait for an answer from this conversation (history.maxInFlightUpdates, docs/operations/deploying.md); ' +
  'nothing was sent. Wait for one to end or abort it, or use `enqueue`, which answers at once';

export function toClientError(error: unknown, attempt: string): ClientError {
  if (error instanceof ClientError) return error;
  const failure = failureIn(error);
  const options = { cause: error };
  if (failure) return new ClientError(KINDS[failure.type ?? ''] ?? 'failed', `${attempt}: ${failure.message}`, options);
  const code = grpcCode(error);
  // A server that has just begun, or is very busy, says so of one that there is too.
  if (nameError(error) === 'NamespaceNotFoundError') {
    return new ClientError(
      'unreachable',
      `${attempt}: Temporal has no such namespace now (${messageWithCause(error)}); see TEMPORAL_NAMESPACE`,
      options,
    );
  }
  if (error instanceof WorkflowNotFoundError || code === GRPC.notFound) {
    return new ClientError('not-found', `${attempt}: no such conversation is running`, options);
  }
  if (code === GRPC.invalidArgument && messageWithCause(error).includes('limit for signal'))
    return new ClientError('queue-full', `${attempt}: ${TOO_MANY_SIGNALS}`, options);
  if (code === GRPC.resourceExhausted && messageWithCause(error).includes('in-flight updates'))
    return new ClientError('queue-full', `${attempt}: ${TOO_MANY_UPDATES}`, options);
  if (code === GRPC.resourceExhausted) {
    return new ClientError('unreachable', `${attempt}: Temporal takes no more of such calls now (${messageWithCause(error)})`, options);
  }
  if (code === GRPC.invalidArgument) return new ClientError('invalid', `${attempt}: ${messageWithCause(error)}`, options);
  if (code === GRPC.unavailable || code === GRPC.deadlineExceeded || code === GRPC.cancelled) {
    return new ClientError(
      'unreachable',
      `${attempt}: Temporal, or a worker for it, does not answer (${messageWithCause(error)})`,
      options,
    );
  }
  if (code === GRPC.failedPrecondition && messageWithCause(error).includes('no poller')) {
    return new ClientError('no-worker', `${attempt}: no worker takes work there; start one (\`perdura worker\`)`, options);
  }
  return new ClientError('failed', `${attempt}: ${messageWithCause(error)}`, options);
}

const KINDS: Readonly<Record<string, ClientErrorKind>> = {
  InvalidMessage: 'invalid',
  InvalidStart: 'invalid',
  UnknownTurn: 'not-found',
  UnknownProposal: 'not-found',
  ConversationClosing: 'closed',
  CannotStep: 'cannot-step',
  QueueFull: 'queue-full',
  NotWaiting: 'not-waiting',
  Withdrawn: 'conflict',
};

function failureIn(error: unknown): ApplicationFailure | undefined {
  const cause = error instanceof WorkflowUpdateFailedError ? error.cause : error;
  return cause instanceof ApplicationFailure ? cause : undefined;
}

function grpcCode(error: unknown): number | undefined {
  for (let at = error; at instanceof Error; at = at.cause) if (isGrpcServiceError(at)) return at.code;
  return undefined;
}

function nameError(error: unknown): string {
  return error instanceof Error ? error.name : '';
}

function messageWithCause(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}
