/** One turn as it happens: from the feed while that speaks, to an end that comes once. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { PerduraClient, WatchEvent } from '../../src/client.js';
import { ClientError } from '../../src/client/errors.js';
import type { FeedEvent, TurnResult } from '../../src/conversation/protocol/contract.js';
import { followSubmitted, followTurn, type TurnEventAt, createTurnEnds, type TurnEnds } from '../../src/client/turns/follow-turn.js';
import { NO_USAGE } from '../../src/records/message.js';

const turn = 'turn_0001';
const resultOf = (text: string): TurnResult => ({ turnId: turn, text, stopReason: 'end', usage: NO_USAGE, toolCalls: 0 });
const delta = (text: string, of = turn): FeedEvent => ({ kind: 'text', turn: of, call: 'c', attempt: 'a', text });
const end = (text: string): FeedEvent => ({ kind: 'turn-finished', turn, result: resultOf(text) });

type Live = readonly (FeedEvent | Error | 'silence')[];
let isReading = 0;

/** A feed that brings these; after the last it is silent, or ends with an error. */
function feedOf(events: Live): Pick<PerduraClient, 'watch'> {
  return {
    async *watch(_id, { signal } = {}): AsyncGenerator<WatchEvent> {
      isReading += 1;
      try {
        let at = 0;
        for (const event of [...events, 'silence' as const]) {
          if (event instanceof Error) throw event;
          if (event !== 'silence') yield { cursor: `1-${(at += 1)}`, event };
          else await sleep(60_000, undefined, { signal }).catch(() => undefined);
        }
      } finally {
        isReading -= 1;
      }
    },
  };
}

const endsWith = (end: TurnEnds['end']): TurnEnds => ({ end, whole: (_id, result) => Promise.resolve(result) });
const never: TurnEnds['end'] = (_id, _turn, signal) => sleep(60_000, undefined, { signal }).then(() => resultOf('never'));

async function read(events: Live, ends: TurnEnds, signal = new AbortController().signal, each?: () => void): Promise<TurnEventAt[]> {
  const seen: TurnEventAt[] = [];
  for await (const one of followTurn({ client: feedOf(events), ends }, { id: 'c', turn, after: '0', signal })) {
    seen.push(one);
    each?.();
  }
  return seen;
}

afterEach(async () => {
  for (let at = 0; at < 100 && isReading > 0; at += 1) await sleep(10);
  expect(isReading).toBe(0);
});

test('the feed brings the turn, without what belongs to others, and its end once', async () => {
  const events = [delta('Hel'), delta('not ours', 'turn_0002'), delta('lo'), end('Hello'), delta('late')];
  const seen = await read(events, endsWith(never));
  expect(seen.map(({ event, cursor }) => [cursor, event.kind])).toEqual([
    ['1-1', 'text'],
    ['1-3', 'text'],
    ['1-4', 'turn-finished'],
  ]);
});

test.each([
  ['is silent', [delta('Hel')]],
  ['fails', [delta('Hel'), new Error('redis closed')]],
])('where the feed %s, Temporal has the end', async (_what, events) => {
  const seen = await read(
    events,
    endsWith(() => sleep(20, resultOf('Hello'))),
  );
  expect(seen).toMatchObject([
    { event: { kind: 'text' } },
    { cursor: null, event: { kind: 'turn-finished', turn, result: { text: 'Hello' } } },
  ]);
});

test('an end that Temporal has before the feed leaves the feed a second to bring the rest', async () => {
  const seen = await read(
    [delta('Hel'), delta('lo'), end('Hello')],
    endsWith(() => Promise.resolve(resultOf('Hello'))),
  );
  expect(seen.map(({ event }) => event.kind)).toEqual(['text', 'text', 'turn-finished']);
  expect(seen.at(-1)?.cursor).toBe('1-3');
});

test('a gap shows where it is', async () => {
  const seen = await read([{ kind: 'resync' }, delta('lo'), end('Hello')], endsWith(never));
  expect(seen.map(({ event }) => event.kind)).toEqual(['resync', 'text', 'turn-finished']);
});

test('a turn that there is not is refused', async () => {
  const missing = endsWith(() => Promise.reject(new ClientError('not-found', 'c has no turn_0001')));
  await expect(read([], missing)).rejects.toMatchObject({ kind: 'not-found' });
});

test('a reader that leaves ends everything', async () => {
  const leaving = new AbortController();
  await expect(read([delta('Hel')], endsWith(never), leaving.signal, () => leaving.abort())).rejects.toThrow();
});

describe('ends', () => {
  type Asked = Parameters<typeof createTurnEnds>[0];
  const clientWith = (of: Partial<Asked>): Asked => ({
    turn: () => Promise.reject(new Error('not asked')),
    history: () => Promise.resolve([]),
    turnEnds: () => Promise.resolve([]),
    ...of,
  });

  test('any number of readers share one wait, which ends with the last of them', async () => {
    const waits: AbortSignal[] = [];
    const ends = createTurnEnds(
      clientWith({
        turn: (_id, _turn, { signal } = {}) => {
          if (signal) waits.push(signal);
          return sleep(60_000, resultOf('late'), { signal });
        },
      }),
    );
    const readers = Array.from({ length: 12 }, () => new AbortController());
    const left = readers.map(({ signal }) => ends.end('c', turn, signal).catch(() => 'left'));
    for (const reader of readers.slice(1)) reader.abort();
    await Promise.all(left.slice(1));
    expect(waits).toHaveLength(1);
    expect(waits[0]?.aborted).toBe(false);
    readers[0]?.abort();
    expect(await left[0]).toBe('left');
    expect(waits[0]?.aborted).toBe(true);
    // One that comes afterwards does not get the wait that was given up.
    const next = new AbortController();
    const again = ends.end('c', turn, next.signal).catch(() => 'left');
    expect(waits).toHaveLength(2);
    next.abort();
    await again;
  });

  test('no worker is waited out', async () => {
    let asked = 0;
    const ends = createTurnEnds(
      clientWith({
        turn: () =>
          (asked += 1) < 2 ? Promise.reject(new ClientError('no-worker', 'no worker takes work')) : Promise.resolve(resultOf('Hello')),
      }),
    );
    expect(await ends.end('c', turn, new AbortController().signal)).toMatchObject({ text: 'Hello' });
    expect(asked).toBe(2);
  });

  test('what Temporal no longer knows has ended as the store says, and what neither knows is refused', async () => {
    const gone = (): Promise<never> => Promise.reject(new ClientError('not-found', 'gone'));
    const message = { role: 'assistant', blocks: [{ kind: 'text', text: 'Hello' }] };
    const entry = { slot: 1, session: 1, turn, seq: 1, ts: 1, message };
    const known = createTurnEnds(clientWith({ turn: gone, history: () => Promise.resolve([entry] as never) }));
    expect(await known.end('c', turn, new AbortController().signal)).toMatchObject({ text: 'Hello', stopReason: 'end' });
    const unknown = createTurnEnds(clientWith({ turn: gone }));
    await expect(unknown.end('c', turn, new AbortController().signal)).rejects.toMatchObject({ kind: 'not-found' });
  });
});

// Its reader of the feed stood at the second event for ever, with a connection that waits in Redis.
test('a message that was submitted before is followed from its beginning, and the first look at it is left', async () => {
  const attach = (wanted: Parameters<typeof followTurn>[1]): AsyncGenerator<TurnEventAt, void> =>
    followTurn({ client: feedOf([delta('Hel'), delta('lo'), end('Hello')]), ends: endsWith(never) }, wanted);
  const signal = new AbortController().signal;
  const kinds: string[] = [];
  for await (const { event } of followSubmitted(attach, { conversation: 'c', turn, after: '1-0' }, signal)) kinds.push(event.kind);
  expect(kinds).toEqual(['text', 'text', 'turn-finished']);
});
