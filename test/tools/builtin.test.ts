import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonObject } from '../../src/records/message.js';
import { getTime } from '../../src/tools/builtin/index.js';
import { listFiles } from '../../src/tools/builtin/files/list-files.js';
import { readFile } from '../../src/tools/builtin/files/read-file.js';
import { searchFiles } from '../../src/tools/builtin/files/search-files.js';
import { readEpisode } from '../../src/tools/builtin/memory-tools.js';
import { setTask } from '../../src/tools/builtin/conversation-tools.js';
import { RESULT_BYTES } from '../../src/tools/result-text.js';
import type { Tool, ToolContext } from '../../src/tools/tool.js';
import { createPlace, toolContext, type Place } from './tool-context.js';

let place: Place;

beforeEach(() => {
  place = createPlace();
});

afterEach(() => {
  place.remove();
});

async function run(tool: Tool, input: JsonObject, given: Partial<ToolContext> = {}): Promise<string> {
  const result = await tool.run(input, toolContext({ workspace: place.workspace, ...given }));
  return result.ok ? result.content : `error: ${result.error}`;
}

const aborted = (): AbortSignal => AbortSignal.abort(new Error('interrupted by a person'));

describe('set_task', () => {
  it('pins a goal and open tasks, and says what is pinned now', async () => {
    const task = { goal: 'Move the library', openTasks: ['count the books', 'find a van'] };
    expect(await setTask.run(task, toolContext({ workspace: place.workspace }))).toEqual({
      ok: true,
      content: 'Pinned now.\nGoal: Move the library\nOpen tasks:\n- count the books\n- find a van',
      task,
    });
  });

  it('says what holds where nothing is given', async () => {
    expect(await setTask.run({}, toolContext({ workspace: place.workspace }))).toEqual({
      ok: true,
      content: 'Pinned now.\nGoal: as before\nOpen tasks: none',
      task: { goal: '', openTasks: [] },
    });
  });

  it.each<[string, JsonObject]>([
    ['a goal of 501 characters', { goal: 'x'.repeat(501) }],
    ['21 tasks', { openTasks: Array(21).fill('one') }],
    ['a task of 201 characters', { openTasks: ['x'.repeat(201)] }],
    ['an empty task', { openTasks: [''] }],
    ['a list of goals', { goal: ['a'] }],
  ])('refuses %s', async (_, input) => {
    expect(await run(setTask, input)).toMatch(/^error: set_task did not run/);
  });
});

describe('get_time', () => {
  it.each([
    [{}, '2026-11-21T14:45:00.000Z'],
    [{ timeZone: 'UTC' }, '2026-11-21T14:45:00+00:00'],
    [{ timeZone: 'Europe/Berlin' }, '2026-11-21T15:45:00+01:00'],
    [{ timeZone: 'Asia/Kathmandu' }, '2026-11-21T20:30:00+05:45'],
    [{ timeZone: 'America/St_Johns' }, '2026-11-21T11:15:00-03:30'],
    [{ timeZone: 'Pacific/Kiritimati' }, '2026-11-22T04:45:00+14:00'],
  ])('answers %j with %s', async (input, iso) => {
    expect(await run(getTime, input)).toBe(iso);
  });

  it('knows summer time and midnight', async () => {
    const now = (): Date => new Date('2026-07-01T22:00:00.000Z');

    expect(await run(getTime, { timeZone: 'Europe/Berlin' }, { now })).toBe('2026-07-02T00:00:00+02:00');
  });

  it('says which names it takes for one that it does not know', async () => {
    expect(await run(getTime, { timeZone: 'Mars/Olympus' })).toMatch(
      /no time zone "Mars\/Olympus"; use an IANA name such as "Europe\/Berlin"/,
    );
  });
});

describe('read_file', () => {
  it('reads a short file as it is', async () => {
    place.write('a.txt', 'one\ntwo\n\nfour');

    expect(await run(readFile, { path: 'a.txt' })).toBe('one\ntwo\n\nfour');
  });

  it.each([
    [{ offset: 2 }, 'two\nthree\n'],
    [{ offset: 2, limit: 2 }, 'two\nthree\n'],
    [{ limit: 1 }, 'one\n\n[lines 1 to 1 of a file of 14 bytes; read on with offset 2]'],
    [{ offset: 2, limit: 1 }, 'two\n\n[lines 2 to 2 of a file of 14 bytes; read on with offset 3]'],
    [{ offset: 3, limit: 9 }, 'three\n'],
    [{ offset: 4 }, '[there is no line 4: a.txt has 3]'],
  ])('reads the lines asked for: %j', async (lines, content) => {
    place.write('a.txt', 'one\ntwo\nthree\n');

    expect(await run(readFile, { path: 'a.txt', ...lines })).toBe(content);
  });

  it('reads a long file whole when read on as its notes say', async () => {
    const whole = Array.from({ length: 60_000 }, (_, n) => `line ${n + 1} äöü\n`).join('');
    place.write('long.txt', whole);

    let read = '';
    for (let offset: number | undefined = 1; offset !== undefined;) {
      const part = await run(readFile, { path: 'long.txt', offset });
      expect(Buffer.byteLength(part)).toBeLessThanOrEqual(RESULT_BYTES);
      const note: RegExpExecArray | null = /\n\[lines \d+ to \d+ of a file of \d+ bytes; read on with offset (\d+)\]$/.exec(part);
      read += note ? part.slice(0, note.index) : part;
      offset = note ? Number(note[1]) : undefined;
    }

    expect(read).toBe(whole);
  });

  it('cuts a line that is too long between characters, and names the next line', async () => {
    place.write('wide.txt', `x${'📝'.repeat(200_000)}\nsecond\n`);

    const first = await run(readFile, { path: 'wide.txt' });

    expect(first).toMatch(/📝\n\[line 1 is too long for one read: .*; offset 2 is the next line/);
    expect(first).not.toContain('\ufffd');
    expect(await run(readFile, { path: 'wide.txt', offset: 2 })).toBe('second\n');
  });

  it('describes what is binary, replaces what is not UTF-8, and says that an empty file is empty', async () => {
    place.write('image.png', Buffer.from('89504e470d0a1a0a0000000d', 'hex'));
    place.write('latin1.txt', Buffer.from('caf\xe9 \xfc', 'latin1'));
    place.write('empty.txt', '');
    place.write('marked.txt', '\ufeffmarked');

    expect(await run(readFile, { path: 'image.png' })).toBe(
      '[image.png is a binary file of 12 bytes and not shown; it begins with the bytes 89504e470d0a1a0a0000000d]',
    );
    expect(await run(readFile, { path: 'latin1.txt' })).toMatch(/^caf\ufffd \ufffd\n\[some bytes above are not UTF-8/);
    expect(await run(readFile, { path: 'empty.txt' })).toBe('[the file is empty]');
    expect(await run(readFile, { path: 'marked.txt' })).toBe('marked');
  });

  it('keeps within its size where replacing makes the text longer', async () => {
    place.write('noise.txt', Buffer.alloc(250_000, 0xff));

    expect(Buffer.byteLength(await run(readFile, { path: 'noise.txt' }))).toBeLessThanOrEqual(RESULT_BYTES);
  });

  it('stops when it is interrupted', async () => {
    place.write('a.txt', 'one');

    expect(await run(readFile, { path: 'a.txt' }, { signal: aborted() })).toBe('error: interrupted by a person');
  });
});

describe('list_files', () => {
  beforeEach(() => {
    place.write('b.txt', 'four');
    place.write('a/x.txt', '');
    place.write('a/deep/er/y.txt', 'y');
    place.write('node_modules/left-pad/index.js', '');
    place.write('.git/config', '');
    symlinkSync(place.outside, join(place.workspace, 'out'));
    symlinkSync('a', join(place.workspace, 'in'));
  });

  it('lists one folder, sorted, with kinds and sizes', async () => {
    expect(await run(listFiles, {})).toBe(
      [
        '.git/  [contents passed over; list it by its path]',
        'a/',
        'b.txt  4 bytes',
        'in  [link, not followed]',
        'node_modules/  [contents passed over; list it by its path]',
        'out  [link, not followed]',
      ].join('\n'),
    );
  });

  it('goes down as deep as asked, but through no link and into no passed-over folder', async () => {
    expect(await run(listFiles, { depth: 3 })).toBe(
      [
        '.git/  [contents passed over; list it by its path]',
        'a/',
        'a/deep/',
        'a/deep/er/',
        'a/x.txt  0 bytes',
        'b.txt  4 bytes',
        'in  [link, not followed]',
        'node_modules/  [contents passed over; list it by its path]',
        'out  [link, not followed]',
      ].join('\n'),
    );
  });

  it('lists a passed-over folder, and a link inside the workspace, when named', async () => {
    expect(await run(listFiles, { path: 'node_modules' })).toBe('node_modules/left-pad/');
    expect(await run(listFiles, { path: 'in' })).toBe('a/deep/\na/x.txt  0 bytes');
  });

  it('says how many entries a limit left out', async () => {
    expect(await run(listFiles, { limit: 2, depth: 2 })).toBe(
      '.git/  [contents passed over; list it by its path]\na/\n[6 more are not listed: raise limit, or list one of the folders]',
    );
  });

  it('writes a name with a line break on one line, and says that an empty folder is empty', async () => {
    place.write('odd/x\nforged  1 bytes', '');
    mkdirSync(join(place.workspace, 'void'));

    expect(await run(listFiles, { path: 'odd' })).toBe('"odd/x\\nforged  1 bytes"  0 bytes');
    expect(await run(listFiles, { path: 'void' })).toBe('[void is an empty folder]');
  });

  it('refuses a file, and a depth over 5, in words', async () => {
    expect(await run(listFiles, { path: 'b.txt' })).toMatch(/a folder is a file/);
    expect(await run(listFiles, { depth: 6 })).toMatch(/- depth: Too big/);
  });

  it('stops when it is interrupted', async () => {
    expect(await run(listFiles, {}, { signal: aborted() })).toBe('error: interrupted by a person');
  });
});

describe('search_files', () => {
  it('answers path, line and text, sorted, and searches one file as well as all', async () => {
    place.write('b/two.txt', 'nothing\r\nthe Plan\r\n');
    place.write('a.txt', 'a plan\nno\nplan and plan');

    expect(await run(searchFiles, { query: 'plan' })).toBe('a.txt:1: a plan\na.txt:3: plan and plan');
    expect(await run(searchFiles, { query: 'PLAN', ignoreCase: true })).toBe(
      'a.txt:1: a plan\na.txt:3: plan and plan\nb/two.txt:2: the Plan',
    );
    expect(await run(searchFiles, { query: 'Plan', path: 'b' })).toBe('b/two.txt:2: the Plan');
    expect(await run(searchFiles, { query: 'Plan', path: 'b/two.txt' })).toBe('b/two.txt:2: the Plan');
    expect(await run(searchFiles, { query: 'nowhere' })).toBe('[found nowhere in .]');
  });

  it('takes a pattern literally', async () => {
    place.write('a.txt', 'aaaa\n(a+)+$\n.*');

    expect(await run(searchFiles, { query: '(a+)+$' })).toBe('a.txt:2: (a+)+$');
    expect(await run(searchFiles, { query: '.*' })).toBe('a.txt:3: .*');
  });

  it('comes to an end for the worst of queries', async () => {
    place.write('worst.txt', 'a'.repeat(8_000_000));
    for (const query of [`${'a'.repeat(499)}b`, `b${'a'.repeat(499)}`, `${'a'.repeat(250)}b${'a'.repeat(249)}`]) {
      for (const ignoreCase of [true, false]) expect(await run(searchFiles, { query, ignoreCase })).toContain('found nowhere');
    }
  });

  it('cuts long lines around the match', async () => {
    place.write('long.txt', `${'x'.repeat(5_000)}needle${'y'.repeat(5_000)}`);

    const answer = await run(searchFiles, { query: 'needle' });

    expect(answer).toMatch(/^long\.txt:1: …x{100}needley{194}…$/);
  });

  it('says what it did not search', async () => {
    place.write('node_modules/a/index.js', 'needle');
    place.write('.git/description', 'needle');
    place.write('huge.txt', Buffer.alloc(16 * 1024 * 1024 + 1, 'needle '));
    place.write('binary.bin', Buffer.from('needle\0'));

    expect(await run(searchFiles, { query: 'needle' })).toBe(
      '[found nowhere in .]\n[not searched: .git/, huge.txt (over 16777216 bytes), node_modules/]',
    );
    expect(await run(searchFiles, { query: 'needle', path: '.git' })).toBe('.git/description:1: needle');
  });

  it('stops at its limit, at its time and when interrupted, and says so', async () => {
    place.write('a.txt', 'x\n'.repeat(100));
    place.write('b.txt', 'x');
    let time = 0;
    const now = (): Date => new Date((time += 20_000));

    expect(await run(searchFiles, { query: 'x', limit: 2 })).toBe('a.txt:1: x\na.txt:2: x\n[there may be more: stopped at the limit of 2]');
    expect(await run(searchFiles, { query: 'y' }, { now })).toBe(
      '[stopped after a.txt: 10 s have passed; name a folder to search further]',
    );
    expect(await run(searchFiles, { query: 'x' }, { signal: aborted() })).toBe('error: interrupted by a person');
  });

  it('refuses a query of two lines, and follows no link', async () => {
    symlinkSync(place.outside, join(place.workspace, 'out'));

    expect(await run(searchFiles, { query: 'a\nb' })).toMatch(/- query: expected a single line/);
    expect(await run(searchFiles, { query: 'CANARY' })).toBe('[found nowhere in .]');
  });
});

describe('read_episode', () => {
  const episode = (n: number, turns: readonly number[]) => ({
    id: `ep_${String(n).padStart(4, '0')}`,
    ts: Date.parse('2026-03-02T14:30Z') / 1000,
    turn_ids: turns.map((turn) => `turn_${String(turn).padStart(4, '0')}`),
    summary: `Summary ${n}.`,
    tags: [],
    salience: 0.5,
    read: (turn?: number) => Promise.resolve(turn === undefined ? 'Turn 3: asked: x' : `Turn ${turn}:\n  User: x`),
  });
  const over = (count: number): Partial<ToolContext> => ({
    episodes: () => Promise.resolve(Array.from({ length: count }, (_, at) => episode(at + 1, [2 * at + 1, 2 * at + 2]))),
  });

  it('answers the summary with a line for each turn, or one turn in full', async () => {
    expect(await run(readEpisode, { id: 'ep_0002' }, over(3))).toBe(
      'ep_0002, turns 3, 4, summarized 2026-03-02T14:30:00.000Z\n\nSummary 2.\n\nIts turns (`turn` shows one in full):\nTurn 3: asked: x',
    );
    expect(await run(readEpisode, { id: 'ep_0002', turn: 4 }, over(3))).toBe(
      'ep_0002, turns 3, 4, summarized 2026-03-02T14:30:00.000Z\n\nTurn 4:\n  User: x',
    );
  });

  it('says which there are where there is none of that id, and which turns where it stands for another', async () => {
    expect(await run(readEpisode, { id: 'ep_0009' }, over(2))).toBe(
      'error: there is no summary ep_0009 in this session; there are: ep_0001, ep_0002',
    );
    expect(await run(readEpisode, { id: 'ep_0009' }, over(0))).toMatch(/there are: none$/);
    expect(await run(readEpisode, { id: '__proto__' }, over(90))).toMatch(/ep_0040 and 50 more$/);
    expect(await run(readEpisode, { id: 'ep_0001', turn: 9 }, over(2))).toBe('error: ep_0001 does not stand for turn 9, but for 1, 2');
    expect(await run(readEpisode, { id: 'ep_0001', turn: 0 }, over(2))).toMatch(/^error: read_episode did not run/);
  });
});
