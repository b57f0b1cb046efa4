/** Says a reply over HTTP: the pace, the hold and the faults. */
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { apiError, errorBody, type ApiError } from './api-error.js';
import type { ApiRequest } from './api-request.js';
import { htmlPage, type Cut, type Fault } from './faults.js';
import type { Hold, Reply } from './reply.js';
import { charsOf, freshId, toEvents, toMessage, type StreamEvent } from './to-events.js';

/** Which side ended it: `cut` is a fault that was asked for, `left` means the client was gone first. */
export type Ending = 'sent' | 'cut' | 'left';

/** A fault on the way, of an answer that began well. */
type Blow = Exclude<Fault, { kind: 'status' | 'html' }>;

export function sendReply(response: ServerResponse, reply: Reply, request: ApiRequest, requestId: string): Promise<Ending> {
  const { fault } = reply;
  if (fault?.kind === 'status') return sendStatus(response, fault, requestId);
  if (fault?.kind === 'html') return sendBody(response, 200, htmlPage('Welcome to the guest network'), 'text/html; charset=utf-8');
  const gone = whenGone(response);
  if (fault?.at === 'before-headers' && isWordless(fault)) return strike(response, fault, gone).then((ending) => ending ?? 'cut');
  return request.stream === true
    ? sendStream(response, reply, toEvents(reply, request), fault, gone)
    : sendWhole(response, reply, JSON.stringify(toMessage(reply, request)), fault, gone, requestId);
}

export function sendError(response: ServerResponse, error: ApiError, requestId: string): Promise<Ending> {
  return sendBody(response, error.status, JSON.stringify(errorBody(error, requestId)), 'application/json');
}

export function sendJson(response: ServerResponse, body: unknown): Promise<Ending> {
  return sendBody(response, 200, JSON.stringify(body), 'application/json');
}

async function sendStream(
  response: ServerResponse,
  reply: Reply,
  events: readonly StreamEvent[],
  blow: Blow | undefined,
  gone: AbortSignal,
): Promise<Ending> {
  beginStream(response);
  const strikeAt = blow && indexOf(blow.at, events);
  const hold = holdOf(reply);
  const delayMs = typeof reply.chunks === 'object' ? reply.chunks.delayMs : 0;
  let chars = 0;
  let held = false;
  for (const [index, event] of events.entries()) {
    if (blow && index === strikeAt) {
      if (blow.at === 'in-event') response.write(toSse(event).slice(0, Math.floor(toSse(event).length / 2)));
      const ending = await strike(response, blow, gone);
      if (ending) return ending;
    }
    if (delayMs > 0 && event.type === 'content_block_delta') await pause(delayMs, gone);
    if (gone.aborted) return 'left';
    response.write(toSse(event));
    chars += charsOf(event);
    if (hold && !held && (index + 1 >= (hold.events ?? Infinity) || chars >= (hold.chars ?? Infinity))) {
      held = true;
      await standStill(hold, gone);
    }
  }
  return gone.aborted ? 'left' : end(response);
}

/** Without a stream a fault strikes in the middle of the body. */
async function sendWhole(
  response: ServerResponse,
  reply: Reply,
  body: string,
  blow: Blow | undefined,
  gone: AbortSignal,
  requestId: string,
): Promise<Ending> {
  const hold = holdOf(reply);
  if (hold) await standStill(hold, gone);
  if (gone.aborted) return 'left';
  if (!blow || blow.kind === 'unknown-event') return sendBody(response, 200, body, 'application/json');
  if (blow.kind === 'error-event') {
    return sendError(response, apiError(blow.type === 'api_error' ? 500 : 529, blow.message), requestId);
  }
  const half = body.slice(0, Math.floor(body.length / 2));
  if (blow.kind === 'malformed-json') return sendBody(response, 200, half, 'application/json');
  response.writeHead(200, { 'content-type': 'application/json' });
  response.write(half);
  return (await strike(response, blow, gone)) ?? 'cut';
}

/** Needs no headers to happen; the other faults say something, and headers come before what is said. */
function isWordless({ kind }: Blow): boolean {
  return kind === 'half-close' || kind === 'fin' || kind === 'reset' || kind === 'silence';
}

/** Does what the fault says. Undefined where the stream goes on after it. */
async function strike(response: ServerResponse, blow: Blow, gone: AbortSignal): Promise<Ending | undefined> {
  const { socket } = response;
  switch (blow.kind) {
    case 'error-event': {
      const error = apiError(blow.type === 'api_error' ? 500 : 529, blow.message, blow.type);
      beginStream(response);
      response.write(toSse({ type: 'error', error: { type: error.type, message: error.message }, request_id: freshId('req') }));
      return end(response);
    }
    case 'malformed-json':
      beginStream(response);
      response.write('event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","te\n\n');
      return undefined;
    case 'unknown-event':
      beginStream(response);
      response.write(toSse({ type: 'content_block_sparkle', index: 0, sparkle: { shade: 'blue' } }));
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
      beginStream(response);
      if (blow.what === 'byte') response.write('event: ping\ndata: ');
      while (!gone.aborted) {
        await pause(blow.everyMs, gone);
        response.write(blow.what === 'byte' ? ' ' : toSse({ type: 'ping' }));
      }
      return 'left';
    default:
      return blow satisfies never;
  }
}

function sendStatus(response: ServerResponse, fault: Extract<Fault, { kind: 'status' }>, requestId: string): Promise<Ending> {
  const error = apiError(fault.status, fault.message, fault.type);
  const body = fault.body ?? JSON.stringify(errorBody(error, requestId));
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

function beginStream(response: ServerResponse): void {
  if (response.headersSent) return;
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' });
  response.flushHeaders();
}

function toSse(event: StreamEvent): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}

/** The index of the event before which it happens; past the end means before the last. */
function indexOf(at: Cut, events: readonly StreamEvent[]): number {
  const before = (type: string): number => {
    const index = events.findIndex((event) => event.type === type);
    return index < 0 ? events.length - 1 : index;
  };
  switch (at) {
    case 'before-headers':
      return 0;
    case 'in-event':
      return before('content_block_delta');
    case 'before-block-stop':
      return before('content_block_stop');
    case 'before-message-delta':
      return before('message_delta');
    case 'before-message-stop':
      return before('message_stop');
    default:
      return Math.min(at, events.length - 1);
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
