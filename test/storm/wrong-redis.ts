/**
 * A TCP proxy before Redis that is wrong in every way that a network and a server in trouble can be: slow, cut off, silent, with errors in
 * place of answers, and with answers lost after the write was made.
 */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { pick, type Random } from './random.js';

export type Wrong = 'right' | 'slow' | 'cut' | 'loses answers' | 'errors' | 'silent';

export interface WrongRedis {
  readonly port: number;
  /** From now on; `right` passes everything on. */
  be(how: Wrong): void;
  /** Answers that were lost after Redis had made them. */
  lost(): number;
  close(): Promise<void>;
}

const ERRORS = [
  'LOADING Redis is loading the dataset in memory',
  "OOM command not allowed when used memory > 'maxmemory'.",
  'MISCONF Errors writing to the AOF file: No space left on device',
  "READONLY You can't write against a read only replica.",
  'BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.',
];
/** What a client asks before its first command. */
const GREETING = /^(INFO|CLIENT|SELECT|HELLO|READONLY)$/i;

export async function startWrongRedis(targetPort: number, random: Random): Promise<WrongRedis> {
  const sockets = new Set<Socket>();
  let how: Wrong = 'right';
  let lost = 0;
  const cutAll = (): void => sockets.forEach((socket) => socket.destroy());

  const server = createServer((client) => {
    const mode = how;
    const upstream = mode === 'errors' ? undefined : connect(targetPort, '127.0.0.1');
    const pair = [client, ...(upstream ? [upstream] : [])];
    // What was swallowed once stays so: TCP never loses a piece and goes on.
    let isDead = mode === 'silent';
    const drop = (): void => pair.forEach((socket) => void socket.destroy());
    for (const socket of pair) {
      sockets.add(socket);
      socket.on('error', drop).on('close', () => {
        sockets.delete(socket);
        drop();
      });
    }
    let queue = Promise.resolve();
    /** In their order, and later when it is slow. */
    const pass = (to: Socket, bytes: Buffer): void => {
      const ms = how === 'slow' ? 20 + 280 * random() : 0;
      queue = queue.then(() => (ms === 0 ? undefined : new Promise((resolve) => setTimeout(resolve, ms)))).then(() => void to.write(bytes));
    };
    let text = '';
    client.on('data', (bytes) => {
      isDead ||= how === 'silent';
      if (isDead) return;
      if (upstream) return void pass(upstream, bytes);
      text += bytes.toString('latin1');
      const { commands, rest } = readCommands(text);
      text = rest;
      client.write(commands.map((name) => refuse(name, random)).join(''));
    });
    upstream?.on('data', (bytes) => {
      isDead ||= how === 'silent';
      if (isDead) return;
      if ((how === 'loses answers' && random() < 0.2) || (how === 'cut' && random() < 0.1)) {
        lost += 1;
        return void drop();
      }
      pass(client, bytes);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    lost: () => lost,
    be(next) {
      // One connection answers in one way, or its answers would come out of turn.
      if (how === 'errors' || next === 'errors' || next === 'cut') cutAll();
      how = next;
    },
    async close() {
      server.close();
      cutAll();
      await once(server, 'close');
    },
  };
}

function refuse(command: string, random: Random): string {
  if (/^INFO$/i.test(command)) {
    const info = 'redis_version:7.0.15\r\nloading:0\r\n';
    return `$${info.length}\r\n${info}\r\n`;
  }
  return GREETING.test(command) ? '+OK\r\n' : `-${pick(random, ERRORS)}\r\n`;
}

/** The names of the whole commands in it (RESP arrays of bulk strings), and what is left. */
function readCommands(text: string): { readonly commands: readonly string[]; readonly rest: string } {
  const commands: string[] = [];
  let rest = text;
  for (;;) {
    const head = /^\*(\d+)\r\n/.exec(rest);
    if (!head) return { commands, rest };
    let at = head[0].length;
    let name: string | undefined;
    for (let n = Number(head[1]); n > 0; n--) {
      const part = /^\$(\d+)\r\n/.exec(rest.slice(at, at + 20));
      const begin = at + (part?.[0].length ?? 0);
      if (!part || rest.length < begin + Number(part[1]) + 2) return { commands, rest };
      name ??= rest.slice(begin, begin + Number(part[1]));
      at = begin + Number(part[1]) + 2;
    }
    commands.push(name ?? '');
    rest = rest.slice(at);
  }
}
