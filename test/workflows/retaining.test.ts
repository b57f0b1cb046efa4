/** What is deleted by itself: what was over or idle for long enough, of those for whom it is so, and nothing that is in use. */
import { deleteExpired, findExpired } from '../../src/client/erasure/retention.js';
import type { ErasureAccess } from '../../src/client/erasure/find.js';
import { parseRetention, type Retention } from '../../src/records/time-in-words.js';
import { gate, text } from '../support/provider-apis/reply.js';
import { createStage, say } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

const DAY_MS = 86_400_000;

describe('with files', () => {
  const stage = createStage();
  let world: World;
  beforeAll(async () => void (world = await startWorld({ answer: stage.answer })));
  afterAll(() => world.close());

  const access = (): ErasureAccess => {
    const { temporal: client, taskQueue, store } = world;
    return { client, namespace: 'default', taskQueue, store };
  };
  const rules = (given: string): Retention => parseRetention(given) as Retention;
  /** As if so many days had passed. */
  const later = (days: number): number => world.now() + days * DAY_MS;
  const dueOf = async (given: string, now: number, ids: readonly string[]): Promise<string[]> =>
    (await findExpired(access(), rules(given), now)).map(({ id }) => id).filter((id) => ids.includes(id));
  const begin = async (start: { scope: string; tenant?: string }, ends = false): Promise<string> => {
    const id = world.id();
    await world.client.send(id, say(id, 'good morning'), { start });
    if (ends) {
      await world.client.closeConversation(id, { memory: false });
      await world.client.outcome(id);
    }
    return id;
  };
  const isThere = (id: string): Promise<boolean> =>
    world.client.describe(id).then(
      () => true,
      () => false,
    );

  /**
   * As the schedule does, again and again: what Temporal does not list as running yet, or what is not idle yet, stays until the next time.
   * Temporal deletes in the background. Answers the ids that it was told of.
   */
  const deleteUntilGone = async (given: string, days: number, ...ids: readonly string[]): Promise<ReadonlySet<string>> => {
    const deleted = new Set<string>();
    await waitFor(
      async () => {
        await deleteExpired(access(), rules(given), { now: () => later(days), onDeleted: ({ id }) => deleted.add(id) });
        return Promise.all(ids.map(isThere));
      },
      (there) => !there.includes(true),
    );
    return deleted;
  };

  test('each tenant has its days, and those of no tenant theirs; nothing is due before, and one whose days are off never', async () => {
    const none = await begin({ scope: 'ada' }, true);
    const acme = await begin({ scope: 'ada', tenant: 'acme' });
    const globex = await begin({ scope: 'ada', tenant: 'globex' }, true);
    const all = [none, acme, globex];
    const given = '90d,acme=30d,globex=off';
    expect(await dueOf(given, later(29), all)).toEqual([]);
    expect(await dueOf(given, later(31), all)).toEqual([acme]);
    expect(new Set(await dueOf(given, later(91), all))).toEqual(new Set([none, acme]));
    expect(await dueOf('acme=30d', later(1_000), all)).toEqual([acme]);

    const deleted = await deleteUntilGone(given, 91, none, acme);
    expect([deleted.has(none), deleted.has(acme)]).toEqual([true, true]);
    expect(await isThere(globex)).toBe(true);
    expect(await world.store.scopes.lives({ namespace: 'default', scope: 'acme.ada' })).toEqual([]);
    expect(await world.store.scopes.lives({ namespace: 'default', scope: 'globex.ada' })).toHaveLength(1);
  });

  test('what counts is the last message, and one that is at work stays', async () => {
    const id = world.id();
    const held = gate();
    await world.client.send(id, say(id, 'good morning'), { start: { scope: 'busy' } });
    // Not before: a call that is made again takes the next line.
    stage.play(id, { ...text('I am thinking.'), hold: held });
    const answer = world.client.send(id, say(id, 'and how are you?'));
    await held.reached;
    await waitFor(
      () => world.client.list({ limit: 500 }),
      (listed) => listed.some((one) => one.id === id),
    );
    const kept: string[] = [];
    await deleteExpired(access(), rules('1d'), {
      now: () => later(2),
      onKept: (one, why) => (one.id === id ? kept.push(why) : 0),
    });
    expect(kept).toEqual(['it runs, and is thinking']);
    held.release();
    expect(await answer).toMatchObject({ stopReason: 'end' });
    expect(await dueOf('1d', later(2), [id])).toEqual([id]);
    await deleteUntilGone('1d', 2, id);
  });

  test("another installation's conversations in the same namespace stay", async () => {
    const id = await begin({ scope: 'ada', tenant: 'shared' }, true);
    const other = {
      ...access(),
      taskQueue: 'of another installation',
      store: { ...world.store, scopes: { ...world.store.scopes, list: async () => [] } },
    };
    await waitFor(
      () => findExpired(access(), rules('shared=1d'), later(2)),
      (due) => due.some((one) => one.id === id),
    );
    expect(await findExpired(other, rules('shared=1d'), later(2))).toEqual([]);
  });

  test('what a fork reads stays for as long as the fork; when both are due both go, whichever is older', async () => {
    const id = await begin({ scope: 'forked', tenant: 'parents' }, true);
    const fork = world.id();
    await world.client.fork(id, { at: 'turn_0001', id: fork });
    await world.client.send(fork, say(fork, 'on we go'));
    // Held back by what the server would not say of it.
    const kept: string[] = [];
    const busy = {
      ...access(),
      store: { ...world.store, lives: { ...world.store.lives, forks: async () => [{ conversation: 'c-other', life: 'l' }] } },
    };
    await deleteExpired(busy, rules('parents=1d'), { now: () => later(2), onKept: (_, why) => kept.push(why) });
    expect(kept.every((why) => why.includes('c-other')) && kept.length > 0).toBe(true);
    expect(await isThere(id)).toBe(true);
    await deleteUntilGone('parents=1d', 2, id, fork);
  });
});
