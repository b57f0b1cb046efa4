import { blame, diffMemory, versionAt } from '../../../src/memory/documents/memory-diff.js';
import { type LineSource, type MemoryChange, newLines } from '../../../src/records/memory/documents.js';

const USER: LineSource = { trust: 'user', conversation: 'conv_8', turn_ids: ['turn_0001'] };
const TOOL: LineSource = { trust: 'tool:read_file', conversation: 'conv_9' };

function change(n: number, source: LineSource, ...lines: string[]): MemoryChange {
  return {
    id: `w${n}`,
    ts: n * 10,
    cause: 'consolidation',
    from: `v${n - 1}`,
    version: `v${n}`,
    lines: lines.map((line) => ({ line, source })),
  };
}

describe('blame', () => {
  test('names for each line the newest change that brought exactly it; spaces do not count', () => {
    const changes = [change(1, USER, '- likes tea', '- has a cat'), change(2, TOOL, '-  likes   tea ', '- gone')];
    expect(blame('# Me\n\n- likes tea\r\n   - has a cat\n- Likes tea\n', changes)).toEqual([
      { line: '# Me', number: 1, source: { trust: 'person' } },
      { line: '- likes tea', number: 3, source: TOOL, change: { id: 'w2', ts: 20, cause: 'consolidation' } },
      { line: '   - has a cat', number: 4, source: USER, change: { id: 'w1', ts: 10, cause: 'consolidation' } },
      { line: '- Likes tea', number: 5, source: { trust: 'person' } },
    ]);
  });

  test('of an empty text is empty', () => {
    expect(blame('', [change(1, USER, '')])).toEqual([]);
  });
});

describe('the difference of two texts', () => {
  const marks = { added: '+', removed: '-', kept: ' ' };
  const shown = (before: string, after: string) => diffMemory(before, after).map(({ kind, line }) => `${marks[kind]}${line}`);

  test('is reported in the order of reading', () => {
    expect(shown('a\nb\nc\n', 'a\nB\nc\nd\n')).toEqual([' a', '-b', '+B', ' c', '+d']);
    expect(shown('', 'a\n')).toEqual(['+a']);
    expect(shown('a', '')).toEqual(['-a']);
    expect(shown('a\r\nb\r\n', 'a\nb')).toEqual([' a', ' b']);
    expect(shown('', '')).toEqual([]);
  });

  test('of texts that share nothing is all of both, soon', () => {
    const text = (mark: string) => Array.from({ length: 20_000 }, (_, i) => `${mark}${i}`).join('\n');
    const lines = diffMemory(text('a'), text('b'));
    expect([lines.length, lines[0], lines.at(-1)]).toEqual([40_000, { kind: 'removed', line: 'a0' }, { kind: 'added', line: 'b19999' }]);
  });

  test('a line that was moved or spaced otherwise is not new', () => {
    expect(newLines('- a\n- b\n', '-  b\n- a\n\n- c\n- c\n')).toEqual(['- c', '- c']);
  });
});

test('the version at a time is that of the last change until then', () => {
  const changes = [change(1, USER), change(2, USER)];
  expect([9, 10, 19.5, 20, 99].map((ts) => versionAt(changes, ts))).toEqual(['empty', 'v1', 'v1', 'v2', 'v2']);
});
