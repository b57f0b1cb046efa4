/**
 * Connections that harm where they can, in a separate process, so that what they cost is the gateway's alone. Each that is closed is opened
 * again.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Hostility {
  readonly port: number;
  readonly connections: number;
}

const DRIP_MS = 500;
const AGAIN_MS = 100;
const CHUNK = `10000\r\n${' '.repeat(65_536)}\r\n`;
const HEAD = 'POST /v1/messages HTTP/1.1\r\nhost: localhost\r\n';

/** What each does until the gateway closes it: nothing, headers that never end, a body without a token, or wrong tokens. */
const ATTACKS: readonly ((socket: Socket) => Promise<void>)[] = [
  async (socket) => void (await once(socket, 'close')),
  async (socket) => {
    socket.write(HEAD);
    while (!socket.destroyed) {
      await sleep(DRIP_MS);
      socket.write('x-slow: 1\r\n');
    }
  },
  async (socket) => {
    socket.write(`${HEAD}transfer-encoding: chunked\r\n\r\n`);
    while (!socket.destroyed) if (!socket.write(CHUNK)) await Promise.race([once(socket, 'drain'), once(socket, 'close')]);
  },
  async (socket) => {
    while (!socket.destroyed) {
      socket.write(`GET /v1/agents HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer wrong-${Math.random()}\r\n\r\n`);
      await sleep(DRIP_MS);
    }
  },
];

async function attack(port: number, number: number, opened: () => void): Promise<never> {
  for (;;) {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => undefined).resume();
    try {
      await once(socket, 'connect');
      opened();
      await ATTACKS[number % ATTACKS.length]?.(socket);
    } catch {
      // Closed on us: the next one.
    }
    socket.destroy();
    await sleep(AGAIN_MS);
  }
}

function main(): void {
  const { port, connections } = JSON.parse(process.argv[2] ?? '') as Hostility;
  let open = 0;
  const opened = (): void => void ((open += 1) === connections && process.send?.('open'));
  for (let number = 0; number < connections; number += 1) void attack(port, number, opened);
  process.on('disconnect', () => process.exit(0));
}

main();
