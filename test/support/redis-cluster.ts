/** A real Redis Cluster of processes, each with a folder of its own in a temp dir. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { steadyPort } from './temporal-cluster.js';
import { askRedis, startRedis, untilDone, type RedisServer } from './redis-server.js';

const SLOTS = 16_384;
const HOST = '127.0.0.1';

export interface ClusterNode {
  readonly port: number;
  readonly address: string;
  readonly server: RedisServer;
  isUp: boolean;
}

export interface RedisClusterServers {
  readonly url: string;
  readonly nodes: readonly ClusterNode[];
  /** As the others see it. */
  masters(): Promise<readonly ClusterNode[]>;
  /** The one that has the slot of a key. */
  ownerOf(key: string): Promise<ClusterNode>;
  replicaOf(master: ClusterNode): Promise<ClusterNode>;
  /** This replica is the master of its slots from now on, whoever else is. */
  takeOver(replica: ClusterNode): Promise<void>;
  /** SIGKILL; its folder stays. */
  kill(node: ClusterNode): Promise<void>;
  restart(node: ClusterNode): Promise<void>;
  /** Until all slots have a node that answers, and all nodes that are up agree. */
  whole(): Promise<void>;
  /** One command on one node. */
  ask<T = unknown>(node: ClusterNode, ...command: string[]): Promise<T>;
  stop(): Promise<void>;
}

interface RedisClusterOptions {
  readonly masters?: number;
  /** Of each master. */
  readonly replicas?: number;
  /** Milliseconds without a word after which a node counts as dead. */
  readonly nodeTimeoutMs?: number;
  readonly args?: readonly string[];
  /** Told of each process; what it answers is called when that has ended. */
  readonly onStart?: (server: RedisServer) => () => void;
}

export async function startRedisCluster(options: RedisClusterOptions = {}): Promise<RedisClusterServers> {
  const { masters = 3, replicas = 1, nodeTimeoutMs = 1_000, args = [], onStart } = options;
  const dir = await mkdtemp(join(tmpdir(), 'perdura-cluster-'));
  const nodes: (ClusterNode & { server: RedisServer; readonly bus: number; readonly start: () => Promise<RedisServer> })[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(nodes.map(({ server }) => server.kill()));
    await rm(dir, { recursive: true, force: true, maxRetries: 3 });
  };
  const ask = <T>({ port }: Pick<ClusterNode, 'port'>, ...command: string[]): Promise<T> => askRedis<T>(port, ...command);
  const up = (): typeof nodes => nodes.filter(({ isUp }) => isUp);
  const table = async (): Promise<Line[]> => {
    for (const node of up()) {
      const text = await ask<string>(node, 'CLUSTER', 'NODES').catch(() => undefined);
      if (text !== undefined) return readTable(text);
    }
    throw new Error('no node of the cluster answers');
  };
  const nodeAt = (port: number): ClusterNode => {
    const found = nodes.find((node) => node.port === port);
    if (!found) throw new Error(`no node has the port ${port}`);
    return found;
  };
  const find = (attempt: string, look: () => Promise<boolean>): Promise<void> => untilDone(`the cluster does not ${attempt}`, look);
  const whole = (): Promise<void> =>
    find('become whole', async () => {
      const states = await Promise.all(up().map((node) => ask<string>(node, 'CLUSTER', 'INFO')));
      const owners = (await table()).filter(({ flags, slots }) => flags.includes('master') && slots.length > 0);
      return states.every((state) => state.includes('cluster_state:ok')) && owners.every(({ port }) => nodeAt(port).isUp);
    });
  try {
    await Promise.all(
      Array.from({ length: masters * (1 + replicas) }, async (_, i) => {
        const [port, bus, folder] = [await steadyPort(), await steadyPort(), join(dir, String(i))];
        await mkdir(folder);
        const start = async (): Promise<RedisServer> => {
          const cluster = ['--cluster-enabled', 'yes', '--cluster-node-timeout', String(nodeTimeoutMs), '--cluster-port', String(bus)];
          // Replicas come at once, and are elected however long they were away.
          const quick = ['--repl-diskless-sync-delay', '0', '--cluster-replica-validity-factor', '0'];
          const server = await startRedis({ dir: folder, port, appendonly: true, args: [...cluster, ...quick, ...args] });
          const ended = onStart?.(server);
          return { ...server, kill: () => server.kill().then(ended) };
        };
        nodes[i] = { port, bus, address: `${HOST}:${port}`, isUp: true, server: await start(), start };
      }),
    );
    const [first, ...others] = nodes;
    if (!first) throw new Error('a cluster has nodes');
    await Promise.all(
      nodes.slice(0, masters).map(async (node, i) => {
        await ask(node, 'CLUSTER', 'SET-CONFIG-EPOCH', String(i + 1));
        const [from, to] = [i, i + 1].map((at) => Math.floor((at * SLOTS) / masters)) as [number, number];
        await ask(node, 'CLUSTER', 'ADDSLOTSRANGE', String(from), String(to - 1));
      }),
    );
    for (const { port, bus } of others) await ask(first, 'CLUSTER', 'MEET', HOST, String(port), String(bus));
    await find('meet', async () => {
      const texts = await Promise.all(nodes.map((node) => ask<string>(node, 'CLUSTER', 'NODES')));
      return texts.every((text) => readTable(text).filter(({ flags }) => !flags.includes('handshake')).length === nodes.length);
    });
    const ids = await Promise.all(nodes.map((node) => ask<string>(node, 'CLUSTER', 'MYID')));
    await Promise.all(nodes.slice(masters).map((node, i) => ask(node, 'CLUSTER', 'REPLICATE', ids[i % masters] ?? '')));
    await find('replicate', async () => {
      const infos = await Promise.all(nodes.slice(masters).map((node) => ask<string>(node, 'INFO', 'replication')));
      return infos.every((info) => info.includes('master_link_status:up'));
    });
    await whole();
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    url: `redis+cluster://${nodes
      .slice(0, 3)
      .map(({ address }) => address)
      .join(',')}`,
    nodes,
    masters: async () =>
      (await table()).filter(({ flags, slots }) => flags.includes('master') && slots.length > 0).map(({ port }) => nodeAt(port)),
    async ownerOf(key) {
      const [node] = up();
      if (!node) throw new Error('no node of the cluster is up');
      const slot = await ask<number>(node, 'CLUSTER', 'KEYSLOT', key);
      const owner = (await table()).find(
        ({ flags, slots }) => flags.includes('master') && slots.some(([from, to]) => slot >= from && slot <= to),
      );
      return nodeAt(owner?.port ?? 0);
    },
    async replicaOf({ port }) {
      const lines = await table();
      const id = lines.find((line) => line.port === port)?.id;
      return nodeAt(lines.find(({ primary }) => primary === id)?.port ?? 0);
    },
    async takeOver(replica) {
      await ask(replica, 'CLUSTER', 'FAILOVER', 'TAKEOVER');
      await find('follow', async () => (await ask<unknown[]>(replica, 'ROLE'))[0] === 'master');
      await whole();
    },
    async kill(node) {
      node.isUp = false;
      await node.server.kill();
    },
    async restart(node) {
      const own = nodes.find(({ port }) => port === node.port);
      if (!own) throw new Error(`no node has the port ${node.port}`);
      own.server = await own.start();
      own.isUp = true;
    },
    whole,
    ask,
    stop,
  };
}

interface Line {
  readonly id: string;
  readonly port: number;
  readonly primary: string;
  readonly flags: string;
  readonly slots: readonly (readonly [from: number, to: number])[];
}

/** CLUSTER NODES: id, address, flags, primary, ping, pong, epoch, link, slots. */
function readTable(text: string): Line[] {
  return text
    .trim()
    .split('\n')
    .map((line) => {
      const [id = '', address = '', flags = '', primary = '', , , , , ...ranges] = line.split(' ');
      const slots = ranges
        .filter((range) => !range.startsWith('['))
        .map((range): [number, number] => {
          const [from = 0, to = from] = range.split('-').map(Number);
          return [from, to];
        });
      return { id, primary, port: Number(/:(\d+)/.exec(address)?.[1] ?? 0), flags, slots };
    });
}
