/** A TCP proxy with a switch: the server behind it goes away at a moment that the test names, and comes back. */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export interface SwitchedProxy {
  readonly port: number;
  /** Cuts what is open and refuses what comes, until `back`. */
  away(): void;
  /** As `away`, when a request comes in that contains `text`: the server never sees that request. Resolves when it has come. */
  awayBefore(text: string): Promise<void>;
  back(): void;
  close(): Promise<void>;
}

export async function startSwitchedProxy(targetPort: number): Promise<SwitchedProxy> {
  const sockets = new Set<Socket>();
  let isAway = false;
  let trap: { readonly text: string; readonly sprung: () => void } | undefined;

  const away = (): void => {
    isAway = true;
    for (const socket of sockets) socket.destroy();
  };
  const server = createServer((client) => {
    if (isAway) return void client.destroy();
    const upstream = connect(targetPort, '127.0.0.1');
    const drop = (): void => {
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
      if (trap && bytes.includes(trap.text)) {
        const { sprung } = trap;
        trap = undefined;
        away();
        return sprung();
      }
      upstream.write(bytes);
    });
    upstream.on('data', (bytes) => client.write(bytes));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  return {
    port: (server.address() as AddressInfo).port,
    away,
    awayBefore: (text) => new Promise((sprung) => (trap = { text, sprung })),
    back: () => (isAway = false),
    async close() {
      away();
      server.close();
      await once(server, 'close');
    },
  };
}
