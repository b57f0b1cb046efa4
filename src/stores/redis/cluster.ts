/**
 * Redis Cluster. ioredis sends each command to the node that has its keys' slot, follows MOVED and ASK, and repeats what a failover
 * interrupts; what is not in it is here: that every command settles in time, what trouble there was, who has which slot now, and reading
 * through all nodes.
 *
 * - A command settles within `commandTimeoutMs`, whatever it waits for: nodes, slots, redirections. The outcome is then unknown
 *   (stores/rejected-is-unknown).
 * - A node that refuses a write because it is no primary any more, or loads, gets the command again after a look at who has the slot.
 * - Replication is asynchronous: what a failover promotes may lack the last writes. `onDoubt` hears each sign of one, before the answer
 *   of the command that has met it, so that what was answered before is relied on no more.
 */
import { Cluster, Command, Redis, type RedisOptions } from 'ioredis';
import { errorMessage } from '../../platform/errors.js';
import { isReply } from './replies.js';

const SLOTS = 16_384;
const RETRY_MS = 100;
/** A sign of trouble explains a command that failed for so long. */
const FRESH_MS = 10_000;
/** What a cluster says while its nodes change places. */
const DOUBTFUL = /^(?:MOVED|ASK|TRYAGAIN|CLUSTERDOWN|READONLY|MASTERDOWN|LOADING)\b|^Connection is closed/;
/** Refusals of a node, and not of the cluster, that ioredis knows no remedy for. */
const OF_NODE = /^(?:READONLY|MASTERDOWN|LOADING)\b/;
/** A scan is begun again where keys may have changed their nodes under it; of a slot that moves each key moves once. */
const MAX_PASSES = 5;

interface ClusterOptions {
  readonly hosts: readonly { readonly host: string; readonly port: number }[];
  readonly commandTimeoutMs: number;
  /** Of each connection. */
  readonly redisOptions: RedisOptions & { readonly replyMapping?: 'legacy' };
  readonly scripts: Record<string, { lua: string; numberOfKeys?: number }>;
}

const CLOSED = /^Connection is closed/;

/** Why a server cannot be reached: of the connections of others ioredis only says that they are closed. */
export async function explain(options: RedisOptions): Promise<string | undefined> {
  const redis = new Redis({ ...options, lazyConnect: true, retryStrategy: () => null, enableReadyCheck: false });
  let reason: string | undefined;
  redis.on('error', (error) => (reason ??= errorMessage(error)));
  try {
    await redis.connect();
    await redis.ping();
  } catch (error) {
    if (isReply(error)) reason ??= error.message;
  } finally {
    redis.disconnect();
  }
  return reason;
}

export class RedisCluster extends Cluster {
  readonly #commandTimeoutMs: number;
  readonly #inDoubt = new Set<() => void>();
  readonly #onMoved = new Set<() => void>();
  #fault: { readonly message: string; readonly at: number } | undefined;
  #owners: readonly (string | undefined)[] = [];
  #isClosed = false;
  #isExplaining = false;

  constructor({ hosts, commandTimeoutMs, redisOptions, scripts }: ClusterOptions) {
    super([...hosts], {
      lazyConnect: true,
      scripts,
      redisOptions,
      // A cluster that lacks slots still has the others; commands for those are told so, instead of waiting for nothing.
      enableReadyCheck: false,
      // Names are resolved with each connection, and TLS checks the name.
      dnsLookup: (host, done) => done(null, host),
      // As often as it takes: the time of the command ends it.
      maxRedirections: Math.max(16, Math.ceil((4 * commandTimeoutMs) / RETRY_MS)),
      ...{ retryDelayOnFailover: RETRY_MS, retryDelayOnClusterDown: RETRY_MS, retryDelayOnTryAgain: RETRY_MS },
      slotsRefreshTimeout: commandTimeoutMs,
      // Now and then its queue is flushed, so that a long outage does not fill the memory; the next command connects anew.
      clusterRetryStrategy: (attempt) => (attempt % 20 === 0 ? null : Math.min(50 * attempt, 250)),
    });
    this.#commandTimeoutMs = commandTimeoutMs;
    this.on('node error', (error: Error, node: string) => this.#noteNodeFault(errorMessage(error), node));
    this.on('error', (error: Error & { lastNodeError?: Error }) => this.#noteFault(errorMessage(error.lastNodeError ?? error)));
    this.on('+node', (node: Redis) => {
      node.on('close', () => this.#doubt());
      // What ioredis asks of a replica when it knows no primary, that answers with MOVED, and not with what it has as yet.
      Object.assign(node, { readonly: () => Promise.resolve('OK') });
    });
    this.on('refresh', () => this.#compareOwners());
  }

  override sendCommand(...[command, stream, node]: Parameters<Cluster['sendCommand']>): unknown {
    if (this.status === 'end' && !this.#isClosed) this.connect().catch(() => undefined);
    command.setTimeout(this.#commandTimeoutMs);
    return super.sendCommand(command, stream, node);
  }

  override handleError(...[error, left, handlers]: Parameters<Cluster['handleError']>): void {
    if (DOUBTFUL.test(error.message)) {
      if (!/^(?:MOVED|ASK)\b/.test(error.message)) this.#noteFault(error.message);
      this.#doubt();
    }
    // ioredis waits, looks who has the slots now, and asks again, for this code alone.
    super.handleError(OF_NODE.test(error.message) ? new Error(`CLUSTERDOWN ${error.message}`) : error, left, handlers);
  }

  close(): void {
    this.#isClosed = true;
    this.disconnect();
  }

  /** Why a command has failed lately. */
  fault(): string | undefined {
    // clock: an old fault explains nothing
    return this.#fault !== undefined && Date.now() - this.#fault.at < FRESH_MS ? this.#fault.message : undefined;
  }

  /** Told at each sign that a node may have another content than it had. */
  onDoubt(listener: () => void): void {
    this.#inDoubt.add(listener);
  }

  /** Told when a slot has another node than before. Answers the way to be told no more. */
  onMoved(listener: () => void): () => void {
    this.#onMoved.add(listener);
    return () => void this.#onMoved.delete(listener);
  }

  /** The address of the node that has the slot of this key, as far as it is known. */
  ownerOf(key: string): string | undefined {
    const slot = new Command('get', [key]).getSlot();
    return slot === null ? undefined : this.slots[slot]?.[0];
  }

  /** A further connection to a node. */
  connectTo(address: string, options: Partial<RedisOptions>): Redis | undefined {
    return this.#node(address)?.duplicate({ ...options, readOnly: false });
  }

  /** Looks anew who has which slot. */
  refresh(): Promise<void> {
    return new Promise((resolve, reject) => this.refreshSlotsCache((error) => (error ? reject(error) : resolve())));
  }

  /** The primaries, which have all slots between them. */
  async masters(): Promise<Redis[]> {
    await this.#connected();
    // clock: the bound of a command
    for (const until = Date.now() + this.#commandTimeoutMs; ;) {
      const addresses = [...new Set(this.slots.map((keys) => keys?.[0]))];
      const nodes = addresses.map((address) => (address === undefined ? undefined : this.#node(address)));
      const missing = SLOTS - this.slots.filter((keys) => keys?.[0] !== undefined).length;
      if (missing === 0 && nodes.every((node) => node !== undefined)) return nodes;
      if (Date.now() > until) {
        if (missing > 0) throw new Error(`CLUSTERDOWN ${missing} of its ${SLOTS} slots have no node`);
        throw new Error(`its node ${addresses.find((_, i) => nodes[i] === undefined)} cannot be reached`);
      }
      await this.refresh().catch(() => undefined);
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }

  /** Names of keys of all nodes, some maybe twice. */
  async *scanAll(pattern: string, count: number): AsyncGenerator<readonly string[]> {
    for (let pass = 1; ; pass += 1) {
      const before = await this.#picture();
      for (const node of before.nodes) {
        let cursor = '0';
        do {
          const [next, names] = await node.scan(cursor, 'MATCH', pattern, 'COUNT', count);
          yield names;
          cursor = next;
        } while (cursor !== '0');
      }
      const after = await this.#picture();
      if (after.slots === before.slots && !before.isMoving && !after.isMoving) return;
      // Of a slot that was under way all the time, what the first pass missed the second one has seen.
      if (after.slots === before.slots && pass > 1) return;
      if (pass === MAX_PASSES) throw new Error('its slots change their nodes all the time: wait until they stay where they are');
    }
  }

  /** Which slots each of them says it has, and whether some are on their way. */
  async #picture(): Promise<{ readonly nodes: readonly Redis[]; readonly slots: string; readonly isMoving: boolean }> {
    const nodes = await this.masters();
    const views = await Promise.all(nodes.map(async (node) => selfIn((await node.cluster('NODES')) as string)));
    const covered = views.reduce((sum, { slots }) => sum + countSlots(slots), 0);
    if (covered < SLOTS) throw new Error(`CLUSTERDOWN ${SLOTS - covered} of its ${SLOTS} slots have no node`);
    return {
      nodes,
      slots: views
        .map(({ id, slots }) => [id, ...slots].join(' '))
        .sort()
        .join('\n'),
      isMoving: views.some(({ moving }) => moving),
    };
  }

  async #connected(): Promise<void> {
    if (this.status !== 'ready') await this.ping();
  }

  #node(address: string): Redis | undefined {
    return this.nodes('all').find(({ options: { host, port } }) => `${host}:${port}` === address);
  }

  #noteFault(message: string): void {
    if (!CLOSED.test(message) || this.fault() === undefined) this.#fault = { message, at: Date.now() };
  }

  #noteNodeFault(message: string, node: string): void {
    this.#noteFault(message);
    if (!CLOSED.test(message) || this.#isExplaining || this.#isClosed) return;
    this.#isExplaining = true;
    const [, host = '', port] = /^(.*):(\d+)$/.exec(node) ?? [];
    void explain({ ...this.options.redisOptions, host, port: Number(port) }).then((reason) => {
      this.#isExplaining = false;
      if (reason !== undefined) this.#noteFault(reason);
    });
  }

  #doubt(): void {
    for (const listener of this.#inDoubt) listener();
  }

  #compareOwners(): void {
    const owners = Array.from({ length: SLOTS }, (_, slot) => this.slots[slot]?.[0]);
    const isChanged = this.#owners.length > 0 && owners.some((owner, slot) => owner !== this.#owners[slot]);
    this.#owners = owners;
    if (!isChanged) return;
    this.#doubt();
    for (const listener of this.#onMoved) listener();
  }
}

/** What a node says of itself in its CLUSTER NODES. */
function selfIn(text: string): { readonly id: string; readonly slots: readonly string[]; readonly moving: boolean } {
  const line = text.split('\n').find((one) => /^\S+ \S+ \S*\bmyself\b/.test(one)) ?? '';
  const [id = '', , flags = '', , , , , , ...held] = line.trim().split(' ');
  const slots = flags.includes('master') ? held.filter((range) => !range.startsWith('[')) : [];
  return { id, slots, moving: held.some((range) => range.startsWith('[')) };
}

function countSlots(ranges: readonly string[]): number {
  return ranges.reduce((sum, range) => {
    const [first = 0, last = first] = range.split('-').map(Number);
    return sum + last - first + 1;
  }, 0);
}
