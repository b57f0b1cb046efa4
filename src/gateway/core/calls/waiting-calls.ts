/**
 * Calls that wait for a person, in protocols whose clients answer them with a request of their own: those requests come once a stream has
 * ended, so it ends where nothing but a person is waited for. Pure.
 */
import type { CallEvent } from './tool-calls.js';

export type AskedCall = Extract<CallEvent, { readonly kind: 'asked' }>;

/** A call that the client has answered. One that a person had to allow may wait once more, then for the client that runs it. */
export interface AnsweredCall {
  readonly callId: string;
  readonly isApproval: boolean;
}

export interface WaitingCalls {
  take(event: CallEvent): void;
  /** Those that wait, while nothing else goes on; otherwise empty. */
  all(): readonly AskedCall[];
}

/** `answered`: calls that the client has just answered. They are waited for no longer, whatever the live events still say. */
export function createWaitingCalls(answered: readonly AnsweredCall[] = []): WaitingCalls {
  const justAnswered = new Set(answered.map(keyOf));
  const running = new Set<string>();
  const asked = new Map<string, AskedCall>();
  return {
    take(event) {
      switch (event.kind) {
        case 'asked':
          if (!justAnswered.delete(askKey(event))) asked.set(event.callId, event);
          return;
        case 'tool-started':
          running.add(event.callId);
          asked.delete(event.callId);
          return;
        case 'tool-finished':
          running.delete(event.callId);
          asked.delete(event.callId);
          return;
        case 'decided':
          asked.delete(event.callId);
          return;
        default:
      }
    },
    all: () => (running.size === 0 ? [...asked.values()] : []),
  };
}

/**
 * True up to where the last of these calls was asked for: a client that answers them has all that came before. Of what the feed no longer
 * has, the next sign of them ends it.
 */
export function createKnownUpTo(answered: readonly AnsweredCall[]): (event: CallEvent) => boolean {
  const open = new Map(answered.map((one) => [keyOf(one), one.callId]));
  let isOver = open.size === 0;
  return (event) => {
    if (isOver) return false;
    if (event.kind === 'asked' && open.delete(askKey(event))) {
      isOver = open.size === 0;
      return true;
    }
    // An approval is no sign of what its client answers then.
    const isSign =
      (event.kind === 'tool-started' || event.kind === 'tool-finished' || (event.kind === 'decided' && event.decision !== 'approve')) &&
      [...open.values()].includes(event.callId);
    isOver = isSign || event.kind === 'finished';
    return !isOver;
  };
}

function keyOf({ callId, isApproval }: AnsweredCall): string {
  return `${callId} ${isApproval}`;
}

function askKey({ callId, what }: AskedCall): string {
  return keyOf({ callId, isApproval: what === 'approval' });
}
