/** A conversation's past, moment by moment: pages of it, what each event changed, and what is never shown. */
import fc from 'fast-check';
import { apply } from '../../src/conversation/apply.js';
import { eventName } from '../../src/conversation/views/observation.js';
import {
  changesBetween,
  MAX_PAGE,
  viewMoment,
  pageMoments,
  slotsAt,
  toReplayedPast,
  type ReplayedPast,
} from '../../src/insight/moments.js';
import { listSlots } from '../../src/records/slots.js';
import { manyTurns } from '../support/many-turns.js';
import { userEntry } from '../stores/builders.js';

const run = manyTurns(12);
const half = Math.floor(run.events.length / 2);
const carried = apply(run.events.slice(0, half).reduce(apply, run.opened), { kind: 'run-continued', at: 1 });

function replayed(...runs: Parameters<typeof toReplayedPast>[0]): ReplayedPast {
  const past = toReplayedPast(runs, true, ['a run is missing']);
  if (!past) throw new Error('there is no past');
  return past;
}

const past = replayed(run);
const chain = replayed({ opened: run.opened, events: run.events.slice(0, half) }, { opened: carried, events: run.events.slice(half) });

test('without a run there is no past', () => {
  expect(toReplayedPast([], true, [])).toBeUndefined();
});

test.each([1, 7, 200, MAX_PAGE, 10_000])('pages of %i, one after the other, are all moments once', (limit) => {
  const positions: number[] = [];
  for (let from = 0; from <= past.past.last;) {
    const page = pageMoments(past, from, limit);
    expect(page.moments.length).toBeLessThanOrEqual(Math.min(limit, MAX_PAGE));
    expect(page).toMatchObject({ last: past.past.last, complete: true, problems: ['a run is missing'] });
    positions.push(...page.moments.map(({ position }) => position));
    from = (positions.at(-1) ?? Infinity) + 1;
  }
  expect(positions).toEqual(Array.from({ length: run.events.length + 1 }, (_, n) => n));
});

test('beyond either end a page begins at that end', () => {
  expect(pageMoments(past, -9, 1).moments).toMatchObject([{ position: 0 }]);
  expect(pageMoments(past, 1e9, 5).moments).toMatchObject([{ position: past.past.last }]);
});

test('each moment has its event’s name, time and words; where a run begins it says so; and turns are found', () => {
  const { moments, turns } = pageMoments(chain, 0, MAX_PAGE);
  expect(moments[0]).toMatchObject({ position: 0, event: null, run: 1, words: 'a run begins, with what the one before it carried over' });
  expect(moments[half + 1]).toMatchObject({ event: null, run: 2, at: carried.now });
  const first = run.events[0];
  expect(moments[1]).toMatchObject({
    event: first && eventName(first),
    at: first?.at,
    words: 'message received: message-1 “text of message-1”',
  });
  expect(turns.map(({ turn }) => turn)).toEqual(Array.from({ length: 12 }, (_, n) => `turn_${String(n + 1).padStart(4, '0')}`));
});

test('a moment shows the state before and after it; the first has none before, and a run’s beginning changes nothing', () => {
  expect(viewMoment('c', past, 0, new Map())).toMatchObject({ position: 0, before: null, changes: [], more: false });
  const begins = viewMoment('c', chain, half + 1, new Map());
  expect(begins).toMatchObject({ event: null, changes: [], before: { id: 'c' } });
  const first = viewMoment('c', past, 1, new Map());
  expect([first.before?.status.queued, first.after.status.queued]).toEqual([0, 1]);
  expect(first.changes.map(({ path }) => path)).toContain('queue[0]');
});

test('what a moment is to be given are the slots of both states, and by them its chunks have words', () => {
  const { position } = past.past.at(past.past.last);
  const slots = slotsAt(past, position);
  const both = [position - 1, position].flatMap((at) => listSlots(past.past.at(at).state.context));
  expect(slots).toEqual([...new Set(both)]);
  const entries = new Map(slots.map((slot) => [slot, userEntry(slot)]));
  const { after } = viewMoment('c', past, position, entries);
  expect(after.chunks.filter(({ kind }) => kind === 'WORKING_FLOW').map(({ words }) => words)).toEqual(
    listSlots(past.past.at(position).state.context).map((slot) => `message ${slot}`),
  );
});

test('of a very long context the latest 200 chunks are shown, and of a long queue the first', () => {
  const long = replayed({ ...run, opened: { ...run.opened, context: [[1, 5_000]] }, events: [] });
  const { after } = viewMoment('c', long, 0, new Map());
  expect(after.chunks).toHaveLength(200);
  expect(after.chunks.at(-1)).toMatchObject({ id: 'chunk_5000' });
  expect(slotsAt(long, 0)).toHaveLength(200);
});

describe('what an event changed', () => {
  const json = fc.jsonValue({ maxDepth: 4 });

  test('nothing differs from itself, and what differs is found at a path of it', () => {
    fc.assert(
      fc.property(json, json, (before, after) => {
        expect(changesBetween(before, structuredClone(before))).toEqual([]);
        const found = changesBetween({ field: before }, { field: after });
        const isSame = JSON.stringify(sorted(before)) === JSON.stringify(sorted(after));
        expect(found.length === 0).toBe(isSame);
        for (const change of found) {
          expect(change.path).toMatch(/^field/);
        }
      }),
    );
  });

  /** Where names stand in an object says nothing; nor does the sign of 0. */
  function sorted(value: unknown): unknown {
    if (Array.isArray(value)) return value.map(sorted);
    if (typeof value !== 'object' || value === null) return value === 0 ? 0 : value;
    return Object.fromEntries(
      Object.entries(value)
        .map(([key, inner]) => [key, sorted(inner)])
        .sort(([a], [b]) => (String(a) < String(b) ? -1 : 1)),
    );
  }

  test.each<[what: string, before: unknown, after: unknown, changes: object[]]>([
    ['a field', { a: 1, b: { c: 'x' } }, { a: 1, b: { c: 'y' } }, [{ path: 'b.c', before: '"x"', after: '"y"' }]],
    ['a name that every object has of its own', {}, { toString: 1 }, [{ path: 'toString', before: null, after: '1' }]],
    ['one that came', {}, { a: null }, [{ path: 'a', before: null, after: 'null' }]],
    ['one that went', { a: [1] }, {}, [{ path: 'a', before: '[1]', after: null }]],
    [
      'one of a list',
      [1, 2],
      [1, 3, 4],
      [
        { path: '[1]', before: '2', after: '3' },
        { path: '[2]', before: null, after: '4' },
      ],
    ],
    ['another kind of value', { a: [] }, { a: {} }, [{ path: 'a', before: '[]', after: '{}' }]],
    ['the clock, which each event moves', { now: 1 }, { now: 2 }, []],
    ['a field of that name elsewhere', { a: { now: 1 } }, { a: { now: 2 } }, [{ path: 'a.now', before: '1', after: '2' }]],
  ])('%s', (_what, before, after, changes) => {
    expect(changesBetween(before, after)).toEqual(changes);
  });

  test('by whom a sub-agent is ordered is never shown: who has a capability speaks in its name', () => {
    const state = (capability: string): unknown => ({
      subAgents: { c1: { capability } },
      parent: { link: { capability, id: capability.length } },
    });
    const shown = JSON.stringify([
      changesBetween(state('secret-1'), state('secret-22')),
      changesBetween({}, { list: [{ capability: 'secret-1' }], parent: { capability: 'secret-2' } }),
    ]);
    expect(shown).toContain('parent.link.id');
    expect(shown).toContain('***');
    expect(shown).not.toContain('secret');
  });

  test('a long value is cut and says how long it was; of a great many changes the first are shown', () => {
    const [change] = changesBetween({ a: 'x' }, { a: 'y'.repeat(5_000) });
    expect(change?.after).toMatch(/^"y{299}… \(5002 characters\)$/);
    expect(changesBetween({ a: `${'x'.repeat(999)}1` }, { a: `${'x'.repeat(999)}2` })).toHaveLength(1);
    const many = Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`f${n}`, n]));
    expect(changesBetween({}, many)).toHaveLength(201);
    const wide = replayed({ opened: run.opened, events: run.events.slice(0, 1) });
    expect(viewMoment('c', wide, 1, new Map()).more).toBe(false);
  });

  test('what nests very deep is compared whole, and never without end', () => {
    const deep = (value: number, levels: number): unknown => (levels === 0 ? value : { in: deep(value, levels - 1) });
    const [change, ...more] = changesBetween(deep(1, 40), deep(2, 40));
    expect(more).toEqual([]);
    expect(change?.path.split('.')).toHaveLength(12);
  });
});
