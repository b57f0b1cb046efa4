/** What speaks TLS before a Temporal server that does not, as a proxy at the edge of a network: with certificates, and asking for those of clients. */
import { readFileSync } from 'node:fs';
import { connect, type AddressInfo } from 'node:net';
import { createServer, type TLSSocket } from 'node:tls';
import type { Authority, Certificate } from './certificates.js';

export interface TlsFront {
  readonly address: string;
  close(): void;
}

/** `clients`: the authority whose clients alone come in. */
export async function startTlsFront(target: number, { cert, key }: Certificate, clients?: Authority): Promise<TlsFront> {
  const sockets = new Set<TLSSocket>();
  const server = createServer({
    ...{ cert: readFileSync(cert), key: readFileSync(key), ALPNProtocols: ['h2'] },
    ...(clients && { ca: readFileSync(clients.ca), requestCert: true, rejectUnauthorized: true }),
  });
  server.on('tlsClientError', () => undefined);
  server.on('secureConnection', (client) => {
    sockets.add(client);
    const upstream = connect(target, '127.0.0.1');
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      one.on('error', () => undefined);
      one.once('close', () => other.destroy());
      one.pipe(other);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.close();
      sockets.forEach((socket) => socket.destroy());
    },
  };
}
