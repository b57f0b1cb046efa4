/** What a search in all scopes makes of what is found in each. */
import type { Recalled } from '../../src/client.js';
import { searchScopes } from '../../src/client/search-scopes.js';

const hit = (address: string, confidence: number, score = 1): Recalled => ({
  ...{ address, confidence, score, kind: 'user', ts: 1, speaker: 'user', trust: 'user', text: address, marks: [] },
});

/** Scores grow from scope to scope: they do not compare. */
const FOUND: Readonly<Record<string, readonly Recalled[]>> = {
  ada: [hit('a1', 0.5, 9), hit('a2', 0.4, 8)],
  ben: [hit('b1', 0.9, 0.2), hit('b2', 0.1, 0.1)],
  cleo: [],
};

function access(found: Readonly<Record<string, readonly Recalled[] | Error>>, limits: number[] = []): Parameters<typeof searchScopes>[0] {
  return {
    scopes: () => Promise.resolve(Object.keys(found)),
    scope: (name) => ({
      async search(_question, { limit, onNote } = {}) {
        limits.push(limit ?? 0);
        onNote?.('without vectors');
        const hits = found[name] ?? [];
        if (hits instanceof Error) throw hits;
        return Promise.resolve(hits);
      },
    }),
  };
}

const named = (hits: readonly { readonly scope: string; readonly address: string }[]): string[] =>
  hits.map(({ scope, address }) => `${scope} ${address}`);

test('what was found stands by scope, that with the best find first, as many as were wanted in all', async () => {
  const limits: number[] = [];
  expect(named(await searchScopes(access(FOUND, limits), 'harbour'))).toEqual(['ben b1', 'ben b2', 'ada a1', 'ada a2']);
  expect(named(await searchScopes(access(FOUND, limits), 'harbour', { limit: 3 }))).toEqual(['ben b1', 'ada a1', 'ada a2']);
  expect(limits).toEqual([20, 20, 20, 3, 3, 3]);
});

test('a scope that cannot be searched is told, once, and the others are searched; where none can be, that is an error', async () => {
  const notes: string[] = [];
  const onNote = (note: string): unknown => notes.push(note);
  expect(named(await searchScopes(access({ ...FOUND, dora: new Error('its index is too large') }), 'harbour', { onNote }))).toHaveLength(4);
  expect(notes).toEqual(['without vectors', 'dora could not be searched: its index is too large']);
  await expect(searchScopes(access({ dora: new Error('its index is too large') }), 'harbour')).rejects.toThrow('its index is too large');
  expect(await searchScopes(access({}), 'harbour')).toEqual([]);
});

test('more scopes than a search takes are told', async () => {
  const notes: string[] = [];
  const many = Object.fromEntries(Array.from({ length: 201 }, (_, n) => [`s${n}`, [hit(`h${n}`, 0.5)]]));
  const found = await searchScopes(access(many), 'harbour', { onNote: (note) => notes.push(note) });
  expect(found).toHaveLength(20);
  expect(notes).toContain('200 of 201 scopes were searched; name the one that you mean');
});
