/**
 * Redis, Temporal or both die while conversations stand at every point of a model step that carries two messages, a fence and three quick
 * tools; the steps go on without them, and they come back with what they have on disk: after seconds, with PERDURA_LONG=1 after a minute.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { latestResults, resultText, saidIn } from '../support/echo-model.js';
import { replayProblems } from '../support/replays.js';
import { figure, LONG, outage, sceneTest, seconds } from '../support/scene.js';
import {
  AGENT,
  attemptsOf,
  CALLS,
  createModel,
  FIRST,
  MESSAGE_SLOT,
  RESULT_SLOT,
  runsOf,
  SECOND,
  tell,
  upToThePoints,
  type At,
} from './at-points.js';

const AWAY_MS = LONG ? 60_000 : 4_000;

interface Point {
  readonly name: string;
  readonly at?: At;
  /** What has been committed when the server goes: it is not done again. */
  readonly committed?: readonly ('first' | 'second' | 'c1' | 'c2' | 'c3')[];
}

const POINTS: readonly Point[] = [
  { name: 'never', committed: ['first', 'second', 'c1', 'c2', 'c3'] },
  { name: 'before the step that fences writes', at: ['write', FIRST, 'before', 'thaws'] },
  { name: 'after the step that fences has written', at: ['write', FIRST, 'after', 'thaws'] },
  { name: 'before the request of that step', at: ['read', MESSAGE_SLOT, 'before', 'thaws'] },
  { name: 'before the commit of the call that asks for tools', at: ['commit', FIRST, 'before', 'thaws'] },
  { name: 'after the commit of the call that asks for tools', at: ['commit', FIRST, 'after', 'thaws'], committed: ['first'] },
  { name: 'before the write of the step that tools ride on', at: ['write', SECOND, 'before', 'thaws'], committed: ['first'] },
  { name: 'after the write of the step that tools ride on', at: ['write', SECOND, 'after', 'thaws'], committed: ['first'] },
  ...CALLS.flatMap((call, n): Point[] => {
    const own = (['c1', 'c2', 'c3'] as const).slice(n, n + 1);
    return [
      { name: `before the commit of tool ${n + 1}`, at: ['commit', call, 'before', 'thaws'], committed: ['first'] },
      { name: `after the commit of tool ${n + 1}`, at: ['commit', call, 'after', 'thaws'], committed: ['first', ...own] },
    ];
  }),
  { name: 'before the call', at: ['read', RESULT_SLOT, 'before', 'thaws'], committed: ['first', 'c1', 'c2', 'c3'] },
  { name: 'before the commit of the answer', at: ['commit', SECOND, 'before', 'thaws'], committed: ['first', 'c1', 'c2', 'c3'] },
  { name: 'after the commit of the answer', at: ['commit', SECOND, 'after', 'thaws'], committed: ['first', 'second', 'c1', 'c2', 'c3'] },
];

for (const dying of ['Redis', 'Temporal', 'Redis and Temporal'] as const) {
  const [redis, temporal] = [dying.includes('Redis'), dying.includes('Temporal')];
  const model = createModel();
  sceneTest(
    `kill -9 of ${dying} at ${POINTS.length - 1} points of a step with messages, a fence and quick tools, back ${AWAY_MS / 1000} s later: nothing is lost, done twice or paid twice`,
    { redis: true, ownTemporal: temporal, agent: AGENT, answer: model.answer },
    async (scene) => {
      const lives = POINTS.map((point) => ({ ...point, id: scene.id() }));
      const sent = await upToThePoints(
        scene,
        model,
        lives.map(({ id, at }) => ({ id, at })),
      );
      const undisturbed = lives[0]?.id ?? '';
      await sent.get(undisturbed)?.[0];
      const told = await tell(scene, undisturbed);

      const timesOf = (id: string) => {
        const [c1 = 0, c2 = 0, c3 = 0] = CALLS.map((callId) => runsOf(scene, id, callId));
        return { first: model.requests(id).first.length, second: model.requests(id).second.length, c1, c2, c3 };
      };
      // A busy machine loses a heartbeat, and so tries a step again before anything is killed.
      const before = new Map(lives.map(({ id }) => [id, timesOf(id)]));
      if (redis) await scene.redis.kill();
      if (temporal) await scene.killTemporal();
      writeFileSync(join(scene.dir, 'ledger.thaw'), '');
      await outage(AWAY_MS);
      if (redis) await scene.restartRedis();
      if (temporal) await scene.restartTemporal();
      const backAt = Date.now();

      for (const { id, name } of lives) {
        const answered = { turnId: 'turn_0002', text: 'All jotted.', stopReason: 'end', toolCalls: 3 };
        expect([name, await Promise.all(sent.get(id) ?? [])]).toMatchObject([name, [answered, answered, answered]]);
      }
      const took = Date.now() - backAt;
      const again: string[] = [];
      const wrong: unknown[] = [];
      for (const { id, name, committed = [] } of lives) {
        const { second } = model.requests(id);
        const times = timesOf(id);
        const tried = await attemptsOf(scene, id);
        if (committed.some((what) => times[what] !== before.get(id)?.[what])) wrong.push([name, 'after its commit', before.get(id), times]);
        if (Object.values(times).some((n) => n !== 1)) again.push(`${name}: ${JSON.stringify(times)}`);
        if (Object.values(times).some((n) => n < 1 || n > tried)) wrong.push([name, `tried ${tried} times`, times]);
        expect([name, await tell(scene, id)]).toEqual([name, told]);
        for (const request of second) {
          expect([name, latestResults(request).map(resultText)]).toEqual([name, ['jotted a', 'jotted b', 'jotted c']]);
          const said = saidIn(request).filter((words) => words.startsWith(id));
          expect([name, said]).toEqual([name, ['wait', 'do it', 'one more', 'and one'].map((words) => `${id} ${words}`)]);
        }
        expect(await scene.client.send(id, `${id} and now?`)).toMatchObject({ turnId: 'turn_0003', stopReason: 'end' });
      }
      figure(
        `${dying} killed at ${POINTS.length - 1} points of a step for ${seconds(AWAY_MS)}: all answered ${seconds(took)} after that; again: ${again.join(', ') || 'nothing'}`,
      );
      expect(wrong).toEqual([]);
      expect(scene.api.problems).toEqual([]);
      expect(await replayProblems(scene)).toEqual([]);
    },
    LONG ? 600_000 : 400_000,
  );
}
