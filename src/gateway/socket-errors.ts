/** What Node refuses before there is a request, in the shape of all other refusals. */
import { STATUS_CODES, type Server, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Problem } from './core/errors.js';

type Refusal = Pick<Problem, 'status' | 'type' | 'message'>;

const REFUSALS: Readonly<Record<string, Refusal>> = {
  HPE_HEADER_OVERFLOW: { status: 431, type: 'too-large', message: 'the headers of a request may have 16 KiB' },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: { status: 413, type: 'too-large', message: 'the extensions of the chunks of this body are too long' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, type: 'timeout', message: 'the request did not arrive in time' },
};
const UNREADABLE: Refusal = { status: 400, type: 'invalid', message: 'this is not a request of HTTP/1.1' };

export function answerSocketErrors(server: Server): void {
  const answering = new WeakMap<Duplex, ServerResponse>();
  server.prependListener('request', (request, response) => answering.set(request.socket, response));
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const response = answering.get(socket);
    // In the middle of another answer it would be read as a part of that.
    const isBusy = response !== undefined && response.headersSent && !response.writableFinished;
    if (error.code === 'ECONNRESET' || !socket.writable || isBusy) {
      socket.destroy();
      return;
    }
    socket.end(answerOf(REFUSALS[error.code ?? ''] ?? UNREADABLE), () => socket.destroy());
  });
}

function answerOf({ status, type, message }: Refusal): string {
  const body = JSON.stringify({ type: `urn:perdura:${type}`, title: type, status, detail: message });
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'content-type: application/problem+json',
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
    '',
    body,
  ].join('\r\n');
}
