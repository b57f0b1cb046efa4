/** What Redis answers in place of an answer, and what becomes of it: in words, with advice. */
import { types } from 'node:util';
import { KeyMissing } from '../../platform/at-rest.js';
import { errorMessage } from '../../platform/errors.js';
import { StoreUnavailable } from '../store.js';

/** By what it begins with. */
const ADVICE: readonly (readonly [beginning: RegExp, advice: string])[] = [
  [/^WRONGTYPE/, 'a key of this conversation holds something that is not ours: look at it with TYPE, then RENAME or DEL it'],
  [/^MISCONF/, 'redis cannot save to its disk and takes no writes: free space there, or see its log'],
  [/^OOM/, 'redis is full: raise maxmemory or free memory'],
  [/^NOAUTH/, 'it asks for a password: put it into the redis url'],
  [/^WRONGPASS|invalid password/, 'check user and password in the redis url'],
  [/^NOPERM/, 'its ACL does not allow this user the command'],
  [/^READONLY|^it is a replica/, 'point the redis url at the primary'],
  [/^LOADING/, 'it is loading its data: wait'],
  [/^MOVED|^it is one node of a cluster/, 'begin the redis url with redis+cluster:// (with TLS rediss+cluster://)'],
  [
    /^CLUSTERDOWN|slots have no node/,
    'the cluster lacks a node: start it again, or give its slots to others (redis-cli --cluster check HOST:PORT says which)',
  ],
  [/^ERR This instance has cluster support disabled/, 'it is no cluster: begin the redis url with redis:// (with TLS rediss://)'],
  [/invalid reply: null/, 'its Sentinels know no primary of that name: correct ?name= in the redis url (SENTINEL MASTERS lists them)'],
  [/unknown command .?sentinel/i, 'it is no Sentinel: begin the redis url with redis:// or redis+cluster://'],
  [
    /altnames|ERR_TLS_CERT_ALTNAME_INVALID/i,
    'correct the host in the redis url, or add ?servername=NAME with the name that is in the certificate',
  ],
  [
    /self[- ]signed certificate|unable to (?:get|verify)|certificate has expired|UNABLE_TO_/i,
    'add ?ca=FILE to the redis url, with the certificate of the authority that signed it',
  ],
  [
    /wrong version number|packet length too long|SSL routines/i,
    'it does not speak TLS at that port: begin the redis url with redis in place of rediss',
  ],
];

/** Waiting may end these; the other replies of Redis need a person. */
const PASSING = ['LOADING', 'BUSY', 'MASTERDOWN', 'CLUSTERDOWN', 'TRYAGAIN', 'READONLY', 'MISCONF', 'OOM'];
/** What no waiting ends: the address is wrong, or who asks. */
const LASTING =
  /^it is |^(?:NOAUTH|WRONGPASS|NOPERM|ERR This instance has cluster support disabled)|invalid password|invalid reply: null|unknown command|altnames|certificate|SSL routines|wrong version number/i;

/** `lastFault`: what the connection has met lately. */
export function toUnavailable(attempt: string, where: string, error: unknown, lastFault: string | undefined): StoreUnavailable {
  const reason = errorMessage(error);
  // It says what to do itself, and Redis is well.
  if (error instanceof KeyMissing) return new StoreUnavailable(`cannot ${attempt}: ${reason}`, { cause: error });
  const fault = lastFault === undefined || lastFault === reason ? '' : ` (${lastFault})`;
  const advice =
    adviceFor(reason) ??
    (lastFault === undefined ? undefined : adviceFor(lastFault)) ??
    'see that redis runs and can be reached; a write may have been applied, and is safe to repeat';
  // Not the error itself as cause: ioredis hangs the command on it, for AUTH with the password, else with people's texts.
  return new StoreUnavailable(`cannot ${attempt}: redis at ${where}: ${reason}${fault}; ${advice}`, { cause: new Error(reason) });
}

function adviceFor(reason: string): string | undefined {
  return ADVICE.find(([beginning]) => beginning.test(reason))?.[1];
}

/** True when asking again later may give another answer: no reply at all, or one that passes. */
export function mayPass(error: unknown): boolean {
  return !isReply(error) || PASSING.includes(replyCode(error));
}

/** Whether a person has to correct the address, or the server: asking again gives the same answer. */
export function isLasting(reasons: readonly (string | undefined)[]): boolean {
  return reasons.some((reason) => reason !== undefined && LASTING.test(reason));
}

/** Redis itself refused. */
export function isReply(error: unknown): error is Error {
  return types.isNativeError(error) && error.name === 'ReplyError';
}

export function replyCode(error: Error): string {
  return /^[A-Z]+/.exec(error.message)?.[0] ?? '';
}
