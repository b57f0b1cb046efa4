/** The registry of what outside asks for under an id, as a value. */
import { LIMITS } from '../../src/conversation/protocol/limits.js';
import {
  answer,
  isKnown,
  NO_REQUESTS,
  assignTurn,
  outcomeFor,
  pendingRequests,
  request,
  type Requests,
} from '../../src/conversation/requests.js';

interface Registry {
  readonly requests: Requests;
  readonly other: number;
}

const EMPTY: Registry = { requests: NO_REQUESTS, other: 1 };
const NOTHING = { kind: 'nothing-to-compact' } as const;
const UNDONE = { kind: 'undone', epoch: 2 } as const;
const ids = (n: number): string[] => Array.from({ length: n }, (_, i) => `r${i}`);

describe('a request id is answered once (conversation/answered-once)', () => {
  const waiting = request(EMPTY, { kind: 'compact', id: 'a' });

  test('it waits, is answered, and the same id again changes nothing', () => {
    expect(isKnown(waiting, 'compact', 'a')).toBe(true);
    expect(outcomeFor(waiting, 'compact', 'a')).toBeUndefined();
    expect(request(waiting, { kind: 'compact', id: 'a', input: [[1, 2]] })).toBe(waiting);
    const answered = answer(waiting, 'compact', ['a'], NOTHING);
    expect(answered).toEqual({ requests: { pending: [], answered: [{ kind: 'compact', id: 'a', outcome: NOTHING }] }, other: 1 });
    expect(request(answered, { kind: 'compact', id: 'a' })).toBe(answered);
    expect(answer(answered, 'compact', ['a'], { kind: 'failed', message: 'late' })).toBe(answered);
  });

  test('of another kind it is another request', () => {
    const both = request(waiting, { kind: 'undo', id: 'a' });
    const undone = answer(both, 'undo', ['a'], UNDONE);
    expect(pendingRequests(undone, 'compact')).toEqual([{ kind: 'compact', id: 'a' }]);
    expect(outcomeFor(undone, 'undo', 'a')).toEqual(UNDONE);
  });

  test('what is answered at once never waited, and those that wait keep their order', () => {
    const all = ['b', 'c', 'd'].reduce<Registry>((now, id) => request(now, { kind: 'compact', id }), waiting);
    const answered = answer(all, 'compact', ['c', 'new'], NOTHING);
    expect(pendingRequests(answered, 'compact').map(({ id }) => id)).toEqual(['a', 'b', 'd']);
    expect(outcomeFor(answered, 'compact', 'new')).toEqual(NOTHING);
  });
});

describe('only the last answers of a kind are remembered (conversation/answers-bounded)', () => {
  test('whatever comes of other kinds, and what waits is never forgotten', () => {
    const waiting = request(answer(EMPTY, 'undo', ['u'], UNDONE), { kind: 'compact', id: 'open' });
    const full = ids(40).reduce<Registry>((now, id) => answer(now, 'compact', [id], NOTHING), waiting);
    expect(full.requests.answered.filter(({ kind }) => kind === 'compact').map(({ id }) => id)).toEqual(ids(40).slice(-16));
    expect(outcomeFor(full, 'undo', 'u')).toEqual(UNDONE);
    expect(isKnown(full, 'compact', 'open')).toBe(true);
  });

  test('answers that come together are all remembered', () => {
    const together = answer(answer(EMPTY, 'compact', ['before'], NOTHING), 'compact', ids(30), NOTHING);
    expect(together.requests.answered.map(({ id }) => id)).toEqual(ids(30));
  });
});

test('the turn of a message may change, and counts as new then', () => {
  const known = ids(LIMITS.rememberedIds).reduce<Registry>((now, id, i) => answer(now, 'message', [id], i + 1), EMPTY);
  const changed = answer(assignTurn(known, 'r0', 9_000), 'message', ['newest'], 9_001);
  expect(outcomeFor(changed, 'message', 'r0')).toBe(9_000);
  expect(isKnown(changed, 'message', 'r1')).toBe(false);
  expect(changed.requests.answered).toHaveLength(LIMITS.rememberedIds);
  expect(assignTurn(request(EMPTY, { kind: 'message', id: 'steering' }), 'steering', 3).requests.pending).toEqual([]);
});
