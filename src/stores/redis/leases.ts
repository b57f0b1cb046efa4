/**
 * Leases in Redis, of one task queue, by their ids: `perdura:{w:<namespace>:<queue>}:<what>`, where `<what>` is
 *
 *   beats       hash, id -> "beat card"
 *   announced   hash, id -> what it runs, as JSON
 *   taken:<id>  who has claimed it; kept for as long as a worker may stand still
 *
 * Nothing of it is needed once its workers have ended.
 */
import { decodeAnnounced, decodeCard, encodeAnnounced, encodeCard, type Leases, type SeenLease } from '../leases.js';
import { escapedForKey } from './keys.js';
import { openRedisLink } from './link.js';

/** Seconds: longer than any process stands still. */
const TAKEN_FOR = 30 * 24 * 3_600;
/** A beat that takes longer is lost; the next one counts. */
const COMMAND_MS = 1_000;

/** KEYS: beats, announced, taken:<id>. ARGV: id, beat and card, what is announced or ''. 0: taken. 2: nothing is announced there. */
const BEAT = `
if redis.call('EXISTS', KEYS[3]) == 1 then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
if ARGV[3] ~= '' then redis.call('HSET', KEYS[2], ARGV[1], ARGV[3]) end
return redis.call('HEXISTS', KEYS[2], ARGV[1]) == 1 and 1 or 2
`;

/** KEYS: as above. ARGV: id, its beat as it was seen, who claims, seconds. Twice by the same is once: a reply may have been lost. */
const CLAIM = `
if redis.call('GET', KEYS[3]) ~= ARGV[3] then
  local value = redis.call('HGET', KEYS[1], ARGV[1])
  if not value or string.match(value, '^[^ ]*') ~= ARGV[2] then return false end
  if not redis.call('SET', KEYS[3], ARGV[3], 'EX', ARGV[4], 'NX') then return false end
end
redis.call('HDEL', KEYS[1], ARGV[1])
return redis.call('HGET', KEYS[2], ARGV[1]) or ''
`;

export interface LeasePlace {
  readonly namespace: string;
  readonly taskQueue: string;
}

export function createRedisLeases(url: string, { namespace, taskQueue }: LeasePlace): Leases {
  const link = openRedisLink({ url, commandTimeoutMs: COMMAND_MS });
  const prefix = `perdura:{w:${escapedForKey(namespace)}:${escapedForKey(taskQueue)}}:`;
  const [beats, announced] = [`${prefix}beats`, `${prefix}announced`];
  const keys = (id: string): [string, string, string] => [beats, announced, `${prefix}taken:${id}`];
  return {
    beat: (id, { number, card, announced: now }) =>
      link.ask('renew the lease of a worker', async (redis) => {
        const answer = await redis.eval(BEAT, 3, ...keys(id), id, `${number} ${encodeCard(card)}`, now ? encodeAnnounced(now) : '');
        return answer === 0 ? 'taken' : answer === 2 ? 'again' : 'held';
      }),

    list: () =>
      link.ask('see which workers live', async (redis) =>
        Object.entries(await redis.hgetall(beats)).map(([id, value]) => toSeen(id, value)),
      ),

    claim: ({ id, beat }, by) =>
      link.ask('claim the lease of a worker', async (redis) => {
        const answer = await redis.eval(CLAIM, 3, ...keys(id), id, beat, by, TAKEN_FOR);
        return typeof answer === 'string' ? decodeAnnounced(answer) : undefined;
      }),

    remove: (id) =>
      link.ask('end the lease of a worker', async (redis) => {
        await redis.multi().hdel(beats, id).hdel(announced, id).exec();
      }),

    close: () => link.close(),
  };
}

function toSeen(id: string, value: string): SeenLease {
  const [beat = ''] = value.split(' ', 1);
  return { id, beat, card: decodeCard(value.slice(beat.length + 1)) };
}
