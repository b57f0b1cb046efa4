/** Says a reply over HTTP: the pace, the hold and the faults. */
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiError } from './api-error.js';
import { htmlPage } from './faults.js';
import type { Frame, Landmark, OddFrame, Protocol } from './protocol.js';
import type { Hold, Reply, Cut, Fault } from './reply.js';

/** Which side ended it: `cut` is a fault that was asked for, `left` means the client was gone first. */
export type Ending = 'sent' | 'cut' | 'left';

/** A fault on the way, of an answer that began well. */
type Blow = Exclude<Fault, { kind: 'status' | 'html' }>;

/** Where a reply goes, and in which words. */
export interface Outlet<Request> {
  readonly protocol: Protocol<Request>;
  readonly response: ServerResponse;
  readonly requestId: string;
}

/** What a fault on the way needs of it: the words, and a word for the client's leaving. */
interface Way {
  readonly response: ServerResponse;
  readonly contentType: string;
  readonly gone: AbortSignal;
  readonly odd: (frame: OddFrame) => string | Uint8Array;
  readonly errorOf: (blow: Extract<Blow, { kind: 'error-event' }>) => ApiError;
}

export function sendReply<Request>(outlet: Outlet<Request>, reply: Reply, request: Request): Promise<Ending> {
  const { protocol, response } = outlet;
  const { fault } = reply;
  if (fault?.kind === 'status') return sendStatus(outlet, fault);
  if (fault?.kind === 'html') return sendBody(response, 200, htmlPage('Welcome to the guest network'), 'text/html; charset=utf-8');
  const way: Way = {
    response,
    contentType: protocol.contentType,
    gone: whenGone(response),
    odd: (frame) => protocol.toOddFrame(frame),
    errorOf: ({ type, message }) => protocol.error(type === 'api_error' ? 500 : 529, message, isUsual(type) ? undefined : type),
  };
  if (fault?.at === 'before-headers' && isWordless(fault)) return strike(way, fault).then((ending) => ending ?? 'cut');
  return protocol.wantsStream(request)
    ? sendStream(way, reply, protocol.toFrames(reply, request), fault)
    : sendWhole(way, reply, JSON.stringify(protocol.toWhole(reply, request)), fault, (error) => sendError(outlet, error));
}

export function sendError<Request>({ protocol, response, requestId }: Outlet<Request>, error: ApiError): Promise<Ending> {
  return sendBody(response, error.status, JSON.stringify(protocol.errorBody(error, requestId)), 'application/json');
}

export function sendJson(response: ServerResponse, body: unknown): Promise<Ending> {
  return sendBody(response, 200, JSON.stringify(body), 'application/json');
}

/** The two that a status stands for. */
function isUsual(type: string | undefined): boolean {
  return type === undefined || type === 'overloaded_error' || type === 'api_error';
}

async function sendStream(way: Way, reply: Reply, frames: readonly Frame[], blow: Blow | undefined): Promise<Ending> {
  const { response, gone } = way;
  beginStream(way);
  const strikeAt = blow && indexOf(blow.at, frames);
  const hold = holdOf(reply);
  const delayMs = typeof reply.chunks === 'object' ? reply.chunks.delayMs : 0;
  let chars = 0;
  let held = false;
  for (const [index, { bytes, chars: more, landmarks }] of frames.entries()) {
    if (blow && index === strikeAt) {
      if (blow.at === 'in-event') response.write(bytes.slice(0, Math.floor(bytes.length / 2)));
      const ending = await strike(way, blow);
      if (ending) return ending;
    }
    if (delayMs > 0 && landmarks.includes('content')) await pause(delayMs, gone);
    if (gone.aborted) return 'left';
    response.write(bytes);
    chars += more;
    if (hold && !held && (index + 1 >= (hold.events ?? Infinity) || chars >= (hold.chars ?? Infinity))) {
      held = true;
      await standStill(hold, gone);
    }
  }
  if (gone.aborted) return 'left';
  return (blow && strikeAt === frames.length && (await strike(way, blow))) || end(response);
}

/** Without a stream a fault strikes in the middle of the body. */
async function sendWhole(
  way: Way,
  reply: Reply,
  body: string,
  blow: Blow | undefined,
  refuse: (error: ApiError) => Promise<Ending>,
): Promise<Ending> {
  const { response, gone } = way;
  const hold = holdOf(reply);
  if (hold) await standStill(hold, gone);
  if (gone.aborted) return 'left';
  if (!blow || blow.kind === 'unknown-event') return sendBody(response, 200, body, 'application/json');
  if (blow.kind === 'error-event') return refuse(way.errorOf(blow));
  const half = body.slice(0, Math.floor(body.length / 2));
  if (blow.kind === 'malformed-json') return sendBody(response, 200, half, 'application/json');
  response.writeHead(200, { 'content-type': 'application/json' });
  response.write(half);
  return (await strike(way, blow)) ?? 'cut';
}

/** Needs no headers to happen; the other faults say something, and headers come before what is said. */
function isWordless({ kind }: Blow): boolean {
  return kind === 'half-close' || kind === 'fin' || kind === 'reset' || kind === 'silence';
}

/** Does what the fault says. Undefined where the stream goes on after it. */
async function strike(way: Way, blow: Blow): Promise<Ending | undefined> {
  const { response, gone, odd } = way;
  const { socket } = response;
  switch (blow.kind) {
    case 'error-event':
      beginStream(way);
      response.write(odd({ kind: 'error', error: way.errorOf(blow) }));
      return end(response);
    case 'malformed-json':
      beginStream(way);
      response.write(odd({ kind: 'malformed' }));
      return undefined;
    case 'unknown-event':
      beginStream(way);
      response.write(odd({ kind: 'unknown' }));
      return undefined;
    case 'half-close':
      if (response.headersSent) return end(response);
      socket?.end();
      await whenAborted(gone);
      return 'cut';
    case 'fin':
      // Written bytes go first: only then is it a FIN in the middle of a body, not a reset.
      socket?.end();
      await whenAborted(gone);
      return 'cut';
    case 'reset':
      // A reset overtakes what the client has not read yet; let the events before it arrive.
      await pause(10, gone);
      socket?.resetAndDestroy();
      return 'cut';
    case 'silence':
      await whenAborted(gone);
      return 'left';
    case 'drip':
      beginStream(way);
      if (blow.what === 'byte') response.write(odd({ kind: 'half' }));
      while (!gone.aborted) {
        await pause(blow.everyMs, gone);
        response.write(blow.what === 'byte' ? ' ' : odd({ kind: 'ping' }));
      }
      return 'left';
    default:
      return blow satisfies never;
  }
}

function sendStatus<Request>(
  { protocol, response, requestId }: Outlet<Request>,
  fault: Extract<Fault, { kind: 'status' }>,
): Promise<Ending> {
  const error = protocol.error(fault.status, fault.message, fault.type);
  const body = fault.body ?? JSON.stringify(protocol.errorBody(error, requestId));
  return sendBody(response, fault.status, body, fault.contentType ?? 'application/json', fault.headers);
}

function sendBody(
  response: ServerResponse,
  status: number,
  body: string,
  contentType: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Ending> {
  response.writeHead(status, { 'content-type': contentType, 'content-length': Buffer.byteLength(body), ...headers });
  return end(response, body);
}

function end(response: ServerResponse, body = ''): Promise<Ending> {
  return new Promise((resolve) => {
    if (response.destroyed) return resolve('left');
    response.once('close', () => resolve(response.writableFinished ? 'sent' : 'left'));
    response.end(body);
  });
}

function beginStream({ response, contentType }: Way): void {
  if (response.headersSent) return;
  response.writeHead(200, { 'content-type': contentType, 'cache-control': 'no-cache' });
  response.flushHeaders();
}

/** The index of the event before which it happens; past the end means before the last. */
function indexOf(at: Cut, frames: readonly Frame[]): number {
  const before = (landmark: Landmark): number => {
    const index = frames.findIndex(({ landmarks }) => landmarks.includes(landmark));
    return index < 0 ? frames.length - 1 : index;
  };
  switch (at) {
    case 'before-headers':
      return 0;
    case 'in-event':
      return before('content');
    case 'before-block-stop':
      return before('block-stop');
    case 'before-message-delta':
      return before('message-delta');
    case 'before-message-stop':
      return before('message-stop');
    case 'after-message-stop':
      return frames.length;
    default:
      return Math.min(at, frames.length - 1);
  }
}

function holdOf(reply: Reply): Hold | undefined {
  if (reply.holdAfter) return reply.holdAfter;
  if (!reply.hold) return undefined;
  return 'until' in reply.hold ? reply.hold : { chars: 1, until: reply.hold };
}

async function standStill(hold: Hold, gone: AbortSignal): Promise<void> {
  hold.onReached?.();
  await Promise.race([hold.until, whenAborted(gone)]);
}

/** Aborted when the connection or the response is over, whoever ended it. */
function whenGone(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  if (response.destroyed) gone.abort();
  return gone.signal;
}

function whenAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

async function pause(ms: number, gone: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal: gone }).catch(() => undefined);
}
