/** Redis and files make the same requests of one long conversation. 60 turns; with PERDURA_LONG=1 2,000 on Redis. */
import { startRedis } from '../support/redis-server.js';
import { runsOf } from '../support/run-chain.js';
import { figure, LONG } from '../support/scene.js';
import { startWorld } from '../support/world.js';
import { AGENT, BUDGET, createAnswer, talkAtLength } from './long-talk.js';

const FEW = 60;
const TURNS = LONG ? 2_000 : FEW;

test(
  `${TURNS} turns on a model of ${BUDGET} tokens, on Redis as on files`,
  async () => {
    const redis = await startRedis();
    const onRedis = await startWorld({ agent: AGENT, answer: createAnswer(), redisUrl: redis.url });
    const onFiles = await startWorld({ agent: AGENT, answer: createAnswer() });
    try {
      const long = await talkAtLength(onRedis, TURNS);
      figure(`${TURNS} turns: ${long.compactions} compactions, ${(await runsOf(onRedis, long.id)).length} runs`);
      const few = await talkAtLength(onFiles, FEW);
      const words = ({ asked }: typeof few): string[] => asked.slice(0, FEW).map(({ messages }) => JSON.stringify(messages));
      expect(words(few)).toEqual(words(long));
    } finally {
      await onRedis.close();
      await onFiles.close();
      await redis.stop();
    }
  },
  LONG ? 1_200_000 : 900_000,
);
