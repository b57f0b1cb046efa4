/** What is left of a person who is erased: nothing in the store's bytes, nothing in Temporal, and no way back. */
import { setTimeout as delay } from 'node:timers/promises';
import { erase, type Erased, type ErasureOptions } from '../../src/client/erasure/erase.js';
import { createKnown, findPerson, type ErasureAccess, type Whose } from '../../src/client/erasure/find.js';
import { gate, text } from '../support/provider-apis/reply.js';
import { LIVED, livePerson, newCanaries, startPlace, type Canaries, type Place } from '../support/person.js';
import { say } from '../support/stage.js';
import { waitFor, waitUntilGone } from '../support/wait-for.js';

describe.each(['files', 'redis'] as const)('with %s', (kind) => {
  let place: Place;
  beforeAll(async () => void (place = await startPlace(kind)));
  afterAll(() => place.close());

  const access = (): ErasureAccess => {
    const { temporal: client, taskQueue, store } = place.world;
    return { client, namespace: 'default', taskQueue, store };
  };
  const eraseNow = (whose: Whose, options: ErasureOptions = {}, of = access()): Promise<Erased> =>
    erase(of, whose, { pauseMs: place.world.engine === 'memory' ? 1 : 1_000, ...options });
  const ofScope = (name: string): Whose => ({ kind: 'scope', name });

  /** Files have a late write for the moment until its writer looks for the tombstone. */
  const expectGone = async (canaries: Canaries, runs: Awaited<ReturnType<Place['runs']>>): Promise<void> => {
    const left = await waitFor(
      () => place.find(canaries, runs),
      ({ store, temporal }) => store.length + temporal.length === 0,
    );
    expect(left).toEqual({ store: [], temporal: [] });
  };
  /** One turn, and what is known of it. */
  const talk = async (scope: string, canaries: Canaries, answer: string): Promise<string> => {
    const { world, stage, people } = place;
    if (!people.includes(canaries)) people.push(canaries);
    const id = world.id();
    stage.play(id, text(answer));
    const [, tenant = undefined, short = scope] = /^(.*)\.(.*)$/.exec(scope) ?? [];
    await world.client.send(id, say(id, `${canaries.userMessage}, they said`), { start: { scope: short, tenant } });
    return id;
  };

  test('a scope is gone with all of its conversations, one in the middle of a turn; another loses nothing; its name begins anew', async () => {
    const { world, stage } = place;
    const [name, other] = [`ada-${kind}`, `bob-${kind}`];
    const [ada, bob] = [newCanaries(), newCanaries()];
    const friend = await talk(other, bob, `They like ${bob.modelAnswer}.`);
    await world.client.closeConversation(friend);
    await world.client.outcome(friend);
    const { first, second } = await livePerson(place, { scope: name, canaries: ada });
    const runs = await place.runs();
    const before = await place.find(ada, runs);
    expect(new Set([...before.store, ...before.temporal])).toEqual(new Set(LIVED));
    const bobBefore = await place.find(bob, runs);

    const { counts, notYetGone, scopes, conversations } = await eraseNow(ofScope(name));
    place.letEnd();
    expect({ notYetGone, scopes }).toEqual({ notYetGone: 0, scopes: [name] });
    expect(conversations).toEqual(expect.arrayContaining([first, second]));
    expect(counts).toMatchObject({ conversations: 2, subAgents: 1, lives: 4, memoryRuns: 1, facts: 1, signIns: 1, forgottenTexts: 1 });
    expect(Math.min(counts.runs, counts.stopped, counts.deliveries, counts.historyEntries, counts.indexParts)).toBeGreaterThan(0);
    await expectGone(ada, runs);
    expect(await world.client.scopes()).not.toContain(name);
    await expect(world.client.resume(first)).rejects.toThrow(/was deleted on/);
    // Again there is nothing to do.
    expect((await eraseNow(ofScope(name))).counts).toMatchObject({ lives: 0, runs: 0, memoryVersions: 0, facts: 0 });

    expect(await place.find(bob, runs)).toEqual(bobBefore);
    await world.client.resume(friend);
    stage.play(friend, text('Welcome back.'));
    await world.client.send(friend, say(friend, 'and on it goes'));
    expect(JSON.stringify(stage.requests(friend).at(-1)?.messages)).toContain(bob.modelAnswer);

    const fresh = await talk(name, newCanaries(), 'Good morning.');
    const seen = JSON.stringify(stage.requests(fresh));
    for (const canary of Object.values(ada)) expect(seen).not.toContain(canary);
    await world.client.closeConversation(fresh);
    await world.client.outcome(fresh);
    expect((await world.client.scope(name).text()).text).not.toBe('');
    expect(await world.client.scope(name).search('what did they say?')).not.toEqual([]);
  });

  test.each(['consolidation', 'summary'] as const)('a %s that a model is at work on leaves nothing behind', async (what) => {
    const { world, gates, stage } = place;
    const name = `late-${what}-${kind}`;
    const canaries = newCanaries();
    const held = gate();
    gates[what] = held;
    const id = await talk(name, canaries, 'I see.');
    for (const n of [1, 2, 3, 4, 5]) {
      stage.play(id, text(`Yes, ${n}.`));
      await world.client.send(id, say(id, `and so on, ${n}`));
    }
    const working = what === 'summary' ? world.client.compact(id) : world.client.closeConversation(id);
    const over = working.catch((error: unknown) => error);
    await held.reached;
    const runs = await place.runs();
    await eraseNow(ofScope(name));
    held.release();
    delete gates[what];
    // The worker has what it was waiting for, and whatever it makes of it is refused.
    await over;
    await delay(500);
    await expectGone(canaries, await place.runs().then((now) => [...runs, ...now]));
    const key = { namespace: 'default', scope: name };
    expect(await world.store.facts.list(key, { all: true })).toMatchObject({ facts: [] });
    expect(await world.store.documents.memory(key)).toMatchObject({ text: '' });
  });

  test('cut short again and again, each time a step later, it comes to its end, and nothing is left', async () => {
    const { world } = place;
    const name = `cut-${kind}`;
    const canaries = newCanaries();
    const id = await talk(name, canaries, canaries.modelAnswer);
    await world.client.closeConversation(id);
    await world.client.outcome(id);
    await world.client.resume(id);
    await talk(name, canaries, canaries.modelAnswer);
    const runs = await place.runs();
    const { temporal, store } = world;
    let step = 0;
    const dying = (at: number): ErasureAccess => {
      step = 0;
      const unlessNow = <T extends object>(target: T, names: readonly string[]): T =>
        new Proxy(target, {
          get: (of, property) => {
            const value = (of as Record<string | symbol, unknown>)[property];
            if (!names.includes(String(property)) || typeof value !== 'function') return value;
            return (...given: unknown[]) => (++step === at ? Promise.reject(new Error('killed')) : (value.apply(of, given) as unknown));
          },
        });
      const workflowService = unlessNow(temporal.workflowService, ['deleteWorkflowExecution']);
      const client = new Proxy(temporal, {
        get: (of, property) =>
          property === 'workflowService' ? workflowService : (of as unknown as Record<string | symbol, unknown>)[property],
      });
      return {
        ...access(),
        client,
        store: {
          ...store,
          lives: unlessNow(store.lives, ['markDeleted', 'delete']),
          scopes: unlessNow(store.scopes, ['erase']),
          signIns: unlessNow(store.signIns, ['removeAll']),
          uploads: unlessNow(store.uploads, ['erase']),
        },
      };
    };
    let cuts = 0;
    for (let at = 1; ; at += 1) {
      const isOver = await eraseNow(ofScope(name), {}, dying(at)).then(
        () => true,
        (error: unknown) => {
          expect(String(error)).toContain('killed');
          cuts += 1;
          return false;
        },
      );
      if (isOver) break;
    }
    expect(cuts).toBeGreaterThan(5);
    await expectGone(canaries, runs);
  });

  test('a fork of another scope reads its turns: nothing is erased, or all of it', async () => {
    const { world } = place;
    const [name, other] = [`forked-${kind}`, `forking-${kind}`];
    const canaries = newCanaries();
    const id = await talk(name, canaries, canaries.modelAnswer);
    const [fork, again, mine] = [world.id(), world.id(), world.id()];
    await world.client.fork(id, { at: 'turn_0001', id: mine });
    await world.client.fork(id, { at: 'turn_0001', id: fork, scope: other });
    await world.client.fork(fork, { at: 'turn_0001', id: again, scope: other });
    await expect(eraseNow(ofScope(name))).rejects.toThrow(
      new RegExp(`conversations of others began with turns of it and read them: ${[again, fork].sort().join(', ')}`),
    );
    expect((await world.client.history(again)).length).toBe(2);
    const runs = await place.runs();
    await eraseNow(ofScope(name), { withForks: true });
    await expectGone(canaries, runs);
    for (const gone of [id, fork, again, mine]) await waitUntilGone(world.client, gone);
  });

  test('of a tenant all scopes go, what it has sent and where it has signed in; those of others stay', async () => {
    const { world } = place;
    const tenant = `acme-${kind}`;
    const [mine, others, none] = [newCanaries(), newCanaries(), newCanaries()];
    await talk(`${tenant}.ada`, mine, mine.modelAnswer);
    await talk(`${tenant}.bob`, mine, mine.modelAnswer);
    await talk(`${tenant}-2.ada`, others, others.modelAnswer);
    await talk(`${tenant}`, none, none.modelAnswer);
    const { store, client } = world;
    for (const [of, canaries] of [
      [tenant, mine],
      [`${tenant}-2`, others],
    ] as const) {
      await client.upload(
        (async function* () {
          yield Buffer.from(`waits for ${canaries.upload}`);
        })(),
        { tenant: of },
      );
      await store.signIns.change({ namespace: 'default', owner: `${of}.` }, 'calendar', () => canaries.signIn);
    }
    const runs = await place.runs();
    const before = [await place.find(others, runs), await place.find(none, runs)];
    expect((await place.find(mine, runs)).store).toEqual(expect.arrayContaining(['upload', 'signIn', 'userMessage']));
    const { counts, scopes } = await eraseNow({ kind: 'tenant', name: tenant });
    expect(scopes).toEqual([`${tenant}.ada`, `${tenant}.bob`]);
    expect(counts).toMatchObject({ conversations: 2, uploads: 1, signIns: 1 });
    await expectGone(mine, runs);
    expect([await place.find(others, runs), await place.find(none, runs)]).toEqual(before);
  });

  test('a look changes nothing', async () => {
    const name = `looked-${kind}`;
    const canaries = newCanaries();
    const id = await talk(name, canaries, canaries.modelAnswer);
    const found = await findPerson(access(), ofScope(name), createKnown(ofScope(name)));
    expect(found).toMatchObject({ scopes: [name], conversations: [{ id, isRunning: true }], lives: [{ conversation: id }], schedules: [] });
    expect(await place.world.client.history(id)).toHaveLength(2);
  });
});
