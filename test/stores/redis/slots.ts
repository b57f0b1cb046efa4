/** Which slots of a cluster the commands touch that reach a Redis: by MONITOR, so also those that scripts and transactions send. */
import { createHash } from 'node:crypto';
import { Command, Redis } from 'ioredis';
import { SCRIPTS } from '../../../src/stores/redis/scripts.js';

export interface SlotWatch {
  /** What touched more than one slot, or a key of no hash tag that a script or a transaction shares with another. */
  readonly violations: readonly string[];
  /** How often each command was sent; scripts of the store by their names, and what was sent by a script as `lua:NAME`. */
  readonly counts: ReadonlyMap<string, number>;
  /** Resolves when everything that was sent before was looked at. */
  end(): Promise<void>;
}

const NAME_OF = new Map(Object.entries(SCRIPTS).map(([name, { lua }]) => [createHash('sha1').update(lua).digest('hex'), name]));
/** Commands that ioredis takes for such with keys, or that have none. */
const WITHOUT_KEYS = new Set([
  'scan',
  'info',
  'ping',
  'hello',
  'client',
  'select',
  'script',
  'multi',
  'exec',
  'monitor',
  'echo',
  'keys',
  'command',
  'quit',
]);

export async function watchSlots(url: string): Promise<SlotWatch> {
  const violations: string[] = [];
  const counts = new Map<string, number>();
  const admin = new Redis(url, { disconnectTimeout: 0 });
  const monitor = await admin.monitor();
  /** The command of which the scripts' ones are. */
  let unit: { name: string; slots: Set<number> } = { name: '', slots: new Set() };
  const transactions = new Map<string, Set<number>>();
  const mark = `the end of ${url}`;
  let ended: (() => void) | undefined;

  monitor.on('monitor', (_time: string, [command = '', ...args]: string[], source: string) => {
    const name = command.toLowerCase();
    if (name === 'echo' && args[0] === mark) return ended?.();
    // How the feeds of one server are followed; those of a cluster are followed in another way (cluster-feed.ts).
    if (name === 'xread' && args.some((arg) => arg.toLowerCase() === 'block')) return;
    const keys = WITHOUT_KEYS.has(name) ? [] : new Command(name, args).getKeys().map(String);
    const slots = keys.map(slotOf);
    if (source === 'lua') {
      counts.set(`lua:${name}`, (counts.get(`lua:${name}`) ?? 0) + 1);
    } else {
      const label = name === 'evalsha' ? (NAME_OF.get(args[0] ?? '') ?? name) : name;
      counts.set(label, (counts.get(label) ?? 0) + 1);
      unit = { name: label, slots: new Set() };
    }
    const joined = [unit.slots, ...(source !== 'lua' && transactions.has(source) ? [transactions.get(source) ?? new Set<number>()] : [])];
    for (const set of joined) {
      slots.forEach((slot) => set.add(slot));
      if (set.size > 1) violations.push(`${unit.name}: ${name} ${keys.join(' ')}`);
    }
    if (name === 'multi') transactions.set(source, new Set());
    if (name === 'exec') transactions.delete(source);
  });
  return {
    violations,
    counts,
    async end() {
      const seen = new Promise<void>((resolve) => (ended = resolve));
      await admin.echo(mark);
      await seen;
      monitor.disconnect();
      admin.disconnect();
    },
  };
}

/** By the specification of Redis Cluster, and by nothing of ours: CRC16 (XMODEM) of what stands between the first braces. */
export function slotOf(key: string): number {
  const tag = /^[^{]*\{([^}]+)\}/.exec(key)?.[1] ?? key;
  let crc = 0;
  for (const byte of Buffer.from(tag)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 0x8000 ? ((crc << 1) ^ 0x1021) & 0xffff : (crc << 1) & 0xffff;
  }
  return crc % 16_384;
}
