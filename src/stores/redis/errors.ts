/** Redis' failures in words: what was attempted, on what, what to do. Never a password. */
import { types } from 'node:util';
import { StoreUnavailable } from '../store.js';
import { errorMessage } from '../../platform/errors.js';

/** Without user, password and query (which may carry options such as `password=`). */
export function withoutSecrets(url: string): string {
  return url.replace(/\?.*$/s, '').replace(/^([a-z+]+:\/\/)?.*@/is, '$1');
}

/** By the first word of Redis' reply. */
const ADVICE: { readonly [code: string]: string } = {
  WRONGTYPE: 'a key of this conversation holds something that is not ours: look at it with TYPE, then RENAME or DEL it',
  MISCONF: 'redis cannot save to its disk and takes no writes: free space there, or see its log',
  OOM: 'redis is full: raise maxmemory or free memory',
  NOAUTH: 'it asks for a password: put it into the redis url',
  WRONGPASS: 'check user and password in the redis url',
  NOPERM: 'its ACL does not allow this user the command',
  READONLY: 'this is a replica: point the redis url at the primary',
  LOADING: 'it is loading its data: wait',
  MOVED: 'this is a node of a cluster, which is not supported: use a single redis or one behind a proxy',
};

/** Waiting may end these; the other replies of Redis need a person. */
const PASSING = ['LOADING', 'BUSY', 'MASTERDOWN', 'CLUSTERDOWN', 'TRYAGAIN', 'READONLY', 'MISCONF', 'OOM'];

export function toUnavailable(attempt: string, where: string, error: unknown, lastFault: string | undefined): StoreUnavailable {
  const reason = errorMessage(error);
  const advice =
    (isReply(error) ? ADVICE[replyCode(error)] : undefined) ??
    'see that redis runs and can be reached; a write may have been applied, and is safe to repeat';
  const fault = lastFault === undefined || lastFault === reason ? '' : ` (${lastFault})`;
  // Not the error itself as cause: ioredis hangs the command on it, for AUTH with the password, else with people's texts.
  return new StoreUnavailable(`cannot ${attempt}: redis at ${where}: ${reason}${fault}; ${advice}`, { cause: new Error(reason) });
}

/** True when asking again later may give another answer: no reply at all, or one that passes. */
export function mayPass(error: unknown): boolean {
  return !isReply(error) || PASSING.includes(replyCode(error));
}

/** Redis itself said no. */
export function isReply(error: unknown): error is Error {
  return types.isNativeError(error) && error.name === 'ReplyError';
}

export function replyCode(error: Error): string {
  return /^[A-Z]+/.exec(error.message)?.[0] ?? '';
}
