/** A TCP proxy that loses replies: what goes to the server arrives there, what comes back may not. */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export interface CuttingProxy {
  readonly port: number;
  /** How many replies were lost so far. */
  cuts(): number;
  /** The next answer to a request that contains `text` is not passed on: the socket is cut instead. */
  cutReplyTo(text: string): void;
  /** Passes nothing on in either direction, and leaves the sockets open: those that there are, and new ones until `open`. */
  blackHole(): void;
  /** New sockets work again; the swallowed ones stay dead, as TCP never loses a piece and goes on. */
  open(): void;
  close(): Promise<void>;
}

export async function startCuttingProxy(targetPort: number): Promise<CuttingProxy> {
  const sockets = new Set<Socket>();
  let cutting: string | undefined;
  let swallowing = false;
  let cuts = 0;

  const server = createServer((client) => {
    const upstream = connect(targetPort, '127.0.0.1');
    let armed = false;
    let dead = swallowing;
    const isDead = () => (dead ||= swallowing);
    const drop = () => {
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', drop);
      socket.on('close', () => {
        sockets.delete(socket);
        drop();
      });
    }
    client.on('data', (bytes) => {
      if (isDead()) return;
      if (cutting !== undefined && bytes.includes(cutting)) {
        cutting = undefined;
        armed = true;
      }
      upstream.write(bytes);
    });
    upstream.on('data', (bytes) => {
      if (isDead()) return;
      if (!armed) {
        client.write(bytes);
        return;
      }
      // The server has answered, so it has applied the command; nobody will hear of it.
      cuts += 1;
      drop();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  return {
    port: (server.address() as AddressInfo).port,
    cuts: () => cuts,
    cutReplyTo: (text) => (cutting = text),
    blackHole: () => (swallowing = true),
    open: () => (swallowing = false),
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
