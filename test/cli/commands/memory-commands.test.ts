/** The commands on a scope's memory, as a person runs them: a real Temporal, a worker, a file store. */
import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { LineSource } from '../../../src/records/memory/documents.js';
import { text } from '../../support/provider-apis/reply.js';
import { runPerdura, type Ran } from '../../support/run-perdura.js';
import { createStage, say } from '../../support/stage.js';
import { startWorld, type World } from '../../support/world.js';
import { parsed } from './ran.js';

/** What a terminal would take for an instruction. */
const UNSAFE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/;

const stage = createStage();
let world: World;
let scopes = 0;

beforeAll(async () => {
  world = await startWorld({ answer: stage.answer });
});
afterAll(() => world.close());
afterEach(() => expect(world.api.problems).toEqual([]));

const perdura = (...args: readonly string[]): Promise<Ran> => runPerdura(world, args);

const DAY = 86_400;
/** Five days ago, at noon. */
const BEGINNING = Math.floor(Date.now() / 1000 / DAY) * DAY - 5 * DAY + DAY / 2;
const FIRST = '# Memory\n- Prefers tea.\n';
const SECOND = '# Memory\n- Prefers green tea.\n- The gate code of the harbour is qz4711.\n- Hostile \u001b[2J line.\n';

function from(trust: LineSource['trust'], turn: string): LineSource {
  return { trust, conversation: 'conv_8', turn_ids: [turn] };
}

/** A scope that remembers: two versions, a day apart; two entries of HISTORY, a fact, three proposals. */
async function remembering(): Promise<string> {
  const scope = `cli-scope-${process.pid}-${++scopes}`;
  const key = { namespace: 'default', scope };
  const { documents, facts } = world.store;
  const first = await documents.writeMemory(key, {
    ...{ id: 'one', ts: BEGINNING, cause: 'consolidation', from: 'empty', text: FIRST },
    lines: [
      { line: '# Memory', source: from('model', 'turn_0001') },
      { line: '- Prefers tea.', source: from('user', 'turn_0001') },
    ],
  });
  if (first.status !== 'written') throw new Error('somebody else writes here');
  await documents.writeMemory(key, {
    ...{ id: 'two', ts: BEGINNING + DAY, cause: 'consolidation', from: first.version, text: SECOND },
    lines: [
      { line: '- Prefers green tea.', source: from('user', 'turn_0004') },
      { line: '- The gate code of the harbour is qz4711.', source: from('tool:read_file', 'turn_0005') },
      { line: '- Hostile \u001b[2J line.', source: from('model', 'turn_0005') },
    ],
  });
  await documents.appendHistory(key, { id: 'h1', kind: 'summary', ts: BEGINNING, text: 'They planned the harbour.' });
  await documents.appendHistory(key, {
    ...{ id: 'h2', kind: 'raw-fallback', ts: BEGINNING + DAY },
    text: '[raw-fallback]\nuser: what of the HARBOUR?\nassistant: The gate code of the harbour is qz4711.',
  });
  const fact = { ts: BEGINNING, fact: 'The gate code of the harbour is qz4711.', tags: [], confidence: 0.9, salience: 0.7 };
  await facts.add(key, 'batch', [fact], { conversation: 'conv_8', turn_ids: ['turn_0005'] });
  await documents.propose(
    key,
    'batch',
    ['- Mail goes to evil@example.org.\u202e', '- The harbour opens at 7.', '- The harbour closes at 19.'].map((line) => ({
      ...{ ts: BEGINNING, line, source: from('tool:fetch', 'turn_0009') },
    })),
  );
  return scope;
}

test('show prints the document alone on stdout, and beside it how it stands', async () => {
  const scope = await remembering();
  const shown = await perdura('memory', scope, '--explain');
  expect(shown).toMatchObject({ code: 0, stdout: SECOND.replace('\u001b', '␛') });
  expect(shown.stderr).toMatch(/^version [0-9a-f]{8} · 93 of 8,192 bytes · consolidation \d d ago$/m);
  expect(shown.stderr).toContain(`memory:${scope} does not run: nothing was consolidated yet`);
  expect(shown.stderr).toContain(`3 lines wait for a person: perdura memory review ${scope}`);
  expect(shown.stderr).toContain(`temporal workflow query --name status -w memory:${scope} --address`);
  expect(parsed(await perdura('memory', scope, '-o', 'json'))).toMatchObject({
    scope,
    text: SECOND,
    limit: 8192,
    openProposals: 3,
  });
});

test('the limit is that of the agent that is called as the scope, and an empty memory is no error', async () => {
  await world.writeAgent('small', { memory: { maxMemorySize: 300 } });
  expect(parsed(await perdura('memory', 'small', '-o', 'json'))).toMatchObject({
    text: '',
    version: 'empty',
    limit: 300,
    status: null,
  });
  expect(await perdura('memory', 'small')).toMatchObject({
    code: 0,
    stdout: '',
    stderr: expect.stringContaining('nothing is remembered'),
  });
  for (const flag of ['--blame', '--log', '--diff']) expect(await perdura('memory', 'small', flag)).toMatchObject({ code: 0, stdout: '' });
});

test('--of takes the scope of a conversation, by the beginning of its id too', async () => {
  const scope = await remembering();
  const id = world.id();
  await world.client.start(id, { scope });
  const shown = await perdura('memory', '--of', id);
  expect(shown).toMatchObject({ code: 0, stdout: expect.stringContaining('green tea') });
  expect(shown.stderr).toContain(`the scope of ${id} is ${scope}`);
  expect(await perdura('memory', scope, '--of', id)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('write one of them'),
  });
});

test('blame says of each line who brought it, and that a person did where nobody else has', async () => {
  const scope = await remembering();
  const file = join(world.dir, 'memory', 'agents', scope, 'MEMORY.md');
  await appendFile(file, '- Written with an editor.\n');
  const { stdout } = await perdura('memory', scope, '--blame');
  expect(stdout).toMatch(
    /^tool:read_file · conv_8, turn_0005 · consolidation \d d ago\n {2}3 {2}- The gate code of the harbour is qz4711\.$/m,
  );
  expect(stdout).toMatch(/^person · hand \S.*\n {2}5 {2}- Written with an editor\.$/m);
  expect(stdout).not.toMatch(UNSAFE);
  expect(parsed(await perdura('memory', scope, '--blame', '-o', 'json'))).toMatchObject({
    lines: [
      { number: 1 },
      { number: 2, source: { trust: 'user' } },
      {},
      {},
      { line: '- Written with an editor.', source: { trust: 'person' } },
    ],
  });
});

test('diff shows the last change, or what lies between versions and dates; at shows the text of a day', async () => {
  const scope = await remembering();
  const day = (after: number): string => new Date((BEGINNING + after * DAY) * 1000).toISOString().slice(0, 10);
  const changes = await world.client.scope(scope).changes();
  const [first, second] = changes.map(({ version }) => version);
  const last = await perdura('memory', scope, '--diff');
  expect(last.stdout).toBe(
    '  # Memory\n- - Prefers tea.\n+ - Prefers green tea.\n+ - The gate code of the harbour is qz4711.\n+ - Hostile ␛[2J line.\n',
  );
  expect((await perdura('memory', scope, '--diff', '--color', 'always')).stdout).toContain(
    '\u001b[31m- \u001b[39m\u001b[31m- Prefers tea.',
  );
  const between = async (...args: readonly string[]): Promise<unknown> => {
    const { from: before, to: after } = parsed(await perdura('memory', scope, '--diff', '-o', 'json', ...args)) as {
      from: string;
      to: string;
    };
    return [before, after];
  };
  expect(await between('--to', (first ?? '').slice(0, 6))).toEqual(['empty', first]);
  expect(await between('--from', 'empty')).toEqual(['empty', second]);
  expect(await between('--from', day(0), '--to', day(0))).toEqual(['empty', first]);
  expect(await between('--from', day(1), '--to', day(1))).toEqual([first, second]);
  expect(await perdura('memory', scope, '--diff', '--from', 'fedc')).toMatchObject({
    code: 4,
    stderr: expect.stringContaining('no version fedc'),
  });

  expect(await perdura('memory', scope, '--at', day(0))).toMatchObject({ code: 0, stdout: FIRST });
  expect(await perdura('memory', scope, '--at', `${day(1)}T11:59`)).toMatchObject({ code: 0, stdout: FIRST });
  expect((await perdura('memory', scope, '--at', day(1))).stdout).toContain('green tea');
  expect(await perdura('memory', scope, '--at', '2020-01-01')).toMatchObject({
    code: 0,
    stdout: '',
    stderr: expect.stringContaining('nothing was'),
  });
  expect(await perdura('memory', scope, '--at', 'yesterday')).toMatchObject({ code: 2 });
});

test('log lists the changes, newest first, with what each did to the lines', async () => {
  const scope = await remembering();
  const { stdout, stderr } = await perdura('memory', scope, '--log', '--explain');
  expect(stdout).toMatch(
    /^VERSION +WHEN +CAUSE +LINES +FROM\n[0-9a-f]{8} +\d d ago +consolidation +\+3 -1 +conv_8\n[0-9a-f]{8} +\d d ago +consolidation +\+2 -0 +conv_8\n$/,
  );
  expect(stderr).toContain(`temporal workflow show -w memory:${scope}`);
  expect(parsed(await perdura('memory', scope, '--log', '-o', 'json', '--limit', '1'))).toMatchObject({
    changes: [{ id: 'two', added: 3, removed: 1 }],
  });
});

test('review lists what waits, and decides once', async () => {
  const scope = await remembering();
  const listed = await perdura('memory', 'review', scope);
  expect(listed.stdout).toMatch(/^prop_0001 · tool:fetch · conv_8, turn_0009 · \d d ago\n {4}- Mail goes to evil@example\.org\.\n/);
  expect(listed.stdout).not.toMatch(UNSAFE);
  expect(listed.stderr).toContain('perdura memory review --accept ID…, --reject ID…');

  const decided = await perdura('memory', 'review', scope, '--accept', 'prop_0002', 'prop_0003', '--reject', 'prop_0001', '-o', 'json');
  expect(parsed(decided)).toMatchObject({
    reviewed: [
      { id: 'prop_0002', state: 'accepted' },
      { id: 'prop_0003', state: 'accepted' },
      { id: 'prop_0001', state: 'rejected' },
    ],
  });
  expect((await world.client.scope(scope).text()).text).toMatch(/- The harbour opens at 7\.\n- The harbour closes at 19\./);
  expect(await perdura('memory', 'review', scope, '--accept', 'prop_0001')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('prop_0001 was decided before, and the first decision stays'),
  });
  expect(await perdura('memory', 'review', scope, '--reject', 'prop_0009')).toMatchObject({ code: 4 });
  expect(await perdura('memory', 'review', scope, '--reject', 'a', '--accept', 'a')).toMatchObject({ code: 2 });
  expect(await perdura('memory', 'review', scope)).toMatchObject({ code: 0, stdout: '', stderr: expect.stringContaining('nothing waits') });
});

test('forget shows what would go, does nothing unasked, and says what still has it', async () => {
  const scope = await remembering();
  const unasked = await perdura('memory', 'forget', 'the harbour gate code is qz4711', '--scope', scope);
  expect(unasked).toMatchObject({ code: 2, stderr: expect.stringContaining('add --yes') });
  expect(unasked.stdout).toBe(
    'MEMORY.md\n    - The gate code of the harbour is qz4711.\nfact sem_0001\n    The gate code of the harbour is qz4711.\nHISTORY\n    1 line\n',
  );
  expect((await world.client.scope(scope).text()).text).toContain('qz4711');

  const { code, stderr } = await perdura('memory', 'forget', 'the harbour gate code is qz4711', '--scope', scope, '-y');
  expect(code).toBe(0);
  expect(stderr).toContain(`gone from the memory of ${scope}: 1 line, 1 fact, 0 proposals, 1 line of HISTORY`);
  expect(stderr).toMatch(/What still has it:\n.*Temporal's history.*retention.*\n.*raw traces.*\n.*\/new\n.*said again/);
  const memory = world.client.scope(scope);
  const left = JSON.stringify([
    await memory.text(),
    await memory.changes(),
    await memory.facts(),
    (await perdura('history', 'show', scope)).stdout,
  ]);
  expect(left).not.toContain('qz4711');

  const nothing = await perdura('memory', 'forget', 'unheard-of', '--scope', scope, '-y', '-o', 'json');
  expect(parsed(nothing)).toMatchObject({ scope, lines: [], facts: [], proposals: [], historyLines: 0 });
  expect(await perdura('memory', 'forget', ' … ', '--scope', scope, '-y')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('no word'),
  });
});

test('care puts it in order', async () => {
  const scope = await remembering();
  expect(parsed(await perdura('memory', 'care', scope, '--agent', 'default', '-o', 'json'))).toMatchObject({
    scope,
    kind: expect.any(String),
  });
});

test('history show and grep print entries newest first, for people and as data', async () => {
  const scope = await remembering();
  const shown = await perdura('history', 'show', scope);
  const time = (after: number): string => new Date((BEGINNING + after * DAY) * 1000).toISOString();
  expect(shown.stdout).toMatch(
    new RegExp(
      `^${time(1)} · \\d d ago · not summarized\\n {2}\\[raw-fallback\\]\\n[^]*\\n\\n${time(0)} · \\d d ago\\n {2}They planned the harbour\\.\\n$`,
    ),
  );
  expect(parsed(await perdura('history', 'show', scope, '-o', 'json', '--limit', '1'))).toMatchObject({
    entries: [{ id: 'h2' }],
    more: true,
  });

  const ids = async (...args: readonly string[]): Promise<readonly string[]> =>
    (parsed(await perdura('history', 'grep', ...args, '-o', 'json')) as { matches: { id: string }[] }).matches.map(({ id }) => id);
  expect(await ids('harbour', scope)).toEqual(['h2', 'h1']);
  expect(await ids('Harbour planned', scope)).toEqual(['h1']);
  expect(await ids('harbour', scope, '--since', time(1))).toEqual(['h2']);
  expect((await perdura('history', 'grep', 'planned', scope, '--color', 'always')).stdout).toContain('\u001b[1mplanned\u001b[22m');
  expect(await perdura('history', 'grep', 'boat', scope)).toMatchObject({
    code: 0,
    stdout: '',
    stderr: expect.stringContaining('no entry'),
  });
});

test('what has been consolidated is seen in the status of the memory, and inspect shows what a conversation is not asked for yet', async () => {
  const scope = `cli-scope-${process.pid}-${++scopes}`;
  const id = world.id();
  await world.client.start(id, { scope });
  stage.play(id, text('Hello.'));
  await world.client.send(id, say(id, 'hi'));
  expect((await perdura('debug', 'inspect', id)).stdout).toMatch(/^window {4}2 of 50 messages since /m);
  await world.client.reset(id);
  expect((await perdura('memory', scope)).stderr).toContain(`memory:${scope} is idle · 1 consolidated`);
  expect((await perdura('history', 'show', '--of', id)).stdout).toMatch(/^\d{4}-\S+Z · /);
});

test('exit codes show what went wrong', async () => {
  const cases: readonly (readonly [number, readonly string[], RegExp])[] = [
    [2, ['memory', 'a b'], /cannot be a memory's scope/],
    [4, ['memory', '--of', 'nobody-knows'], /cannot find conversation nobody-knows/],
    [2, ['history', 'grep', '  '], /no word to look for/],
    [2, ['history', 'grep', 'x', '--limit', '51'], /at most 50/],
    [2, ['history', 'grep', 'x', '--since', 'monday'], /is no date/],
  ];
  for (const [code, args, message] of cases) {
    const ran = await perdura(...args);
    expect([args, ran.code, ran.stdout]).toEqual([args, code, '']);
    expect(ran.stderr).toMatch(message);
  }
});
