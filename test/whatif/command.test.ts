/** `perdura whatif` as a person runs it, in the process of the test, on conversations in memory: each flag does what it says. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { PerduraClient } from '../../src/client.js';
import { createScriptedModel } from '../../src/testing/index.js';
import type { ReportedConversation, ReportHeader, ReportLine } from '../../src/whatif/report.js';
import { runPerdura, type Ran } from '../support/run-perdura.js';
import { startRecorder, type Recorder } from './recorder.js';
import { answerWith, createTools, type Counts } from './scripted.js';

const SOURCES = join(__dirname, '..', '..');
const counts: Counts = { ran: 0, held: 0 };
const model = createScriptedModel(answerWith(counts));

/** The folder's models answer as the recorded one, but for these; `book` says how often the command has run it. */
const config = (
  more = '',
): string => `import { answerWith, createTools } from ${JSON.stringify(join(SOURCES, 'test', 'whatif', 'scripted'))};
import { createScriptedModel, callTool } from ${JSON.stringify(join(SOURCES, 'src', 'testing', 'index'))};
const tools = createTools({ ran: 100, held: 0 });
const answer = answerWith({ ran: 0, held: 0 });
const fake = createScriptedModel((request) => {
  const isResult = request.messages.at(-1)?.role === 'tool';
  if (request.model === 'other') return 'I am another.';
  if (request.model === 'judge') return JSON.stringify({ why: /counts: (.*)/.exec(request.system)?.[1] ?? 'no rubric', better: 'A' });
  if (request.model === 'coffee' && !isResult) return callTool('book', { what: 'coffee' });
  ${more}
  return answer(request);
});
export default { providers: { fake }, tools, models: { 'fake/judge': { prices: { input: 0, output: 1_000_000 } } } };`;

let recorder: Recorder;
let ids: { readonly tea: string; readonly plain: string; readonly clerk: string };
beforeAll(async () => {
  recorder = await startRecorder(model, { tools: createTools(counts), agent: { model: 'fake/one' } });
  const { world } = recorder;
  await world.writeAgent('clerk', { model: 'fake/one' });
  const talk = async (agent: string, ...messages: readonly string[]): Promise<string> => {
    const id = world.id();
    for (const message of messages) await world.client.send(id, message, { start: { agent } });
    return id;
  };
  ids = {
    tea: await talk('default', '#book tea', 'thanks'),
    plain: await talk('default', 'hello'),
    clerk: await talk('clerk', 'good day'),
  };
  const files = {
    'perdura.config.ts': config(),
    'SOUL.next.md': 'You are short.',
    'few.json': '{ "tools": ["get_time"] }',
    'rubric.md': 'counts: brevity',
    'stubs.ts': 'export default { book: ({ what }: { what: string }) => `a stub for ${what}` };',
    'others/default/agent.json': '{ "model": "fake/one" }',
    'others/default/SOUL.md': 'You are of the other folder.',
    'build/perdura.config.ts': config(`if (request.system.includes('of the build')) return 'By the provider of the build.';`),
    'build/agents/default/agent.json': '{ "model": "fake/one", "tools": ["book"] }',
    'build/agents/default/SOUL.md': 'You are of the build.',
    'build/others/default/agent.json': '{ "model": "fake/one" }',
  };
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(world.dir, name)), { recursive: true });
    await writeFile(join(world.dir, name), text);
  }
});
afterAll(() => recorder.close());

function whatif(...args: readonly string[]): Promise<Ran> {
  const { world, recordings } = recorder;
  const openClient = () => Promise.resolve<PerduraClient>({ ...world.client, close: () => Promise.resolve() });
  return runPerdura(world, ['whatif', ...args], { recordings, openClient });
}

interface Read {
  readonly header: ReportHeader;
  readonly lines: readonly ReportedConversation[];
  readonly ran: Ran;
}

async function played(...args: readonly string[]): Promise<Read> {
  const ran = await whatif(...args, '--report', 'report.jsonl');
  if (ran.code !== 0 && ran.code !== 1) throw new Error(`${ran.stdout}${ran.stderr}`);
  const text = await readFile(join(recorder.world.dir, 'report.jsonl'), 'utf8');
  const all = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as ReportLine);
  return { ran, header: all[0] as ReportHeader, lines: all.flatMap((line) => (line.kind === 'conversation' ? [line] : [])) };
}

/** What becomes of one conversation. */
async function candidate(...args: readonly string[]) {
  const { lines, header } = await played(...args);
  const lane = lines[0]?.lanes.candidate;
  return { lane, header, first: lane?.divergence, texts: lane?.turns.map((turn) => turn.played?.text) };
}

test('with nothing changed nothing differs, no tool runs, and the report goes where it goes by itself', async () => {
  const { ran, lines, header } = await played(ids.tea, ids.plain);
  expect(ran).toMatchObject({ code: 0, stdout: expect.stringContaining(`${ids.tea}  2 turns, all the same`) });
  expect(lines.map(({ id, lanes }) => [id, lanes.candidate?.divergence, lanes.candidate?.stopped])).toEqual([
    [ids.tea, null, undefined],
    [ids.plain, null, undefined],
  ]);
  expect(lines[0]?.lanes.candidate?.turns[0]?.played?.calls).toMatchObject([{ name: 'book', source: 'recording' }]);
  expect(header).toMatchObject({ changes: [], policy: 'stop', memory: 'recorded', lanes: ['candidate'] });
  expect((await whatif(ids.plain)).stdout + (await whatif(ids.plain)).stderr).toContain('.perdura/whatif.jsonl');
});

test('--model: another one answers, whatever the agent and the recording say', async () => {
  const { texts, header, lane } = await candidate(ids.plain, '--model', 'fake/other');
  expect(texts).toEqual(['I am another.']);
  expect(lane?.answerDivergence ?? lane?.divergence).toMatchObject({ what: 'text', played: 'I am another.' });
  expect(header.changes).toEqual(['model: fake/other']);
});

test('--prompt stands in place of SOUL.md', async () => {
  const { first, header } = await candidate(ids.plain, '--prompt', 'SOUL.next.md');
  expect(first).toMatchObject({ what: 'system', played: expect.stringContaining('You are short.') });
  expect(header.changes).toEqual(['prompt: SOUL.next.md']);
});

test('--settings are laid over agent.json', async () => {
  const { first, header } = await candidate(ids.plain, '--settings', 'few.json');
  expect(first).toMatchObject({ what: 'tools', played: expect.stringContaining('get_time') });
  expect(first?.played).not.toContain('read_file');
  expect(header.changes).toEqual(['settings: few.json']);
});

test('--agent-dir: other agents, with the tools and the models of this folder', async () => {
  const { first, header, texts } = await candidate(ids.tea, '--agent-dir', 'others');
  expect(first).toMatchObject({ what: 'system', played: expect.stringContaining('You are of the other folder.') });
  expect(texts?.[0]).toContain('booked tea');
  expect(header.changes).toEqual(['agents: others']);
});

test('--build: agents, tools and providers of another checkout; with --agent-dir the agents are of that folder', async () => {
  const { first, texts, header, lane } = await candidate(ids.plain, '--build', 'build');
  expect(first).toMatchObject({ what: 'system', played: expect.stringContaining('You are of the build.') });
  expect(texts).toEqual(['By the provider of the build.']);
  expect(lane?.answerDivergence).toMatchObject({ what: 'text' });
  expect(header.changes).toEqual(['build: build']);
  const both = await candidate(ids.plain, '--build', 'build', '--agent-dir', 'others');
  expect(both.first?.played).toContain('You are of the other folder.');
  expect((await candidate(ids.plain, '--agent-dir', 'build/others')).first).toBeNull();
});

test('--tools and --stubs: a call that was not made then ends it, is stubbed, by a module too, or runs', async () => {
  const coffee = [ids.plain, '--model', 'fake/coffee'] as const;
  const stopped = await candidate(...coffee);
  expect(stopped.lane?.stopped).toMatchObject({ turn: 'turn_0001', why: expect.stringContaining('coffee') });
  const calls = async (...args: readonly string[]) => (await candidate(...coffee, ...args)).lane?.turns[0]?.played?.calls;
  expect(await calls('--tools', 'stub')).toMatchObject([{ source: 'stub', result: expect.stringContaining('book was not run') }]);
  expect(await calls('--tools', 'stub', '--stubs', 'stubs.ts')).toMatchObject([{ source: 'stub', result: 'a stub for coffee' }]);
  expect(await calls('--tools', 'live')).toMatchObject([{ source: 'live', result: expect.stringContaining('booked coffee, 1') }]);
});

test('--agent, --query and --last choose conversations; sub-agents are none of them', async () => {
  const chosen = async (...args: readonly string[]): Promise<readonly string[]> => (await played(...args)).lines.map(({ id }) => id);
  expect(await chosen('--agent', 'clerk')).toEqual([ids.clerk]);
  expect((await chosen('--agent', 'default')).toSorted()).toEqual([ids.tea, ids.plain].toSorted());
  expect(await chosen('--agent', 'default', '--last', '1')).toHaveLength(1);
  expect(await chosen('--query', `WorkflowId = '${ids.tea}'`)).toEqual([ids.tea]);
  expect(await chosen('--query', `WorkflowId = '${ids.tea}'`, '--agent', 'clerk', ids.plain)).toEqual([ids.plain]);
  expect(await chosen(ids.plain, '--agent', 'clerk')).toEqual([ids.plain, ids.clerk]);
});

test('--baseline plays what was recorded beside it; --memory is told', async () => {
  const { lines, header } = await played(ids.plain, '--model', 'fake/other', '--baseline', '--memory', 'candidate');
  expect(lines[0]?.lanes).toMatchObject({ baseline: { divergence: null }, candidate: { divergence: { what: 'text' } } });
  expect(header).toMatchObject({ lanes: ['candidate', 'baseline'], memory: 'candidate' });
});

test('--judge and --rubric: asked twice by that rubric, and what it cost is told beside everything else', async () => {
  const { lines, header, ran } = await played(ids.plain, '--model', 'fake/other', '--judge', 'fake/judge', '--rubric', 'rubric.md');
  expect(header.judge).toBe('fake/judge');
  expect(lines[0]?.verdict).toMatchObject({ better: 'same', why: expect.stringContaining('brevity'), agreesWithItself: false });
  expect(lines[0]?.verdict?.costUsd).toBeGreaterThan(0);
  expect(lines[0]?.lanes.candidate?.sum.costUsd).toBeNull();
  expect(ran.stdout).toMatch(/The judge fake\/judge finds[^]*it cost\s+\$16\.00, which is in no other row/);
});

test('--gaps skip leaves out what is not whole, and the exit code says so', async () => {
  const { world, recordings } = recorder;
  const gapped = { ...recordings, open: async (id: string) => ({ ...(await recordings.open(id)), gaps: ['a text was forgotten'] }) };
  const run = (...args: readonly string[]): Promise<Ran> =>
    runPerdura(world, ['whatif', ids.plain, '-o', 'json', ...args], {
      recordings: gapped,
      openClient: () => Promise.resolve<PerduraClient>({ ...world.client, close: () => Promise.resolve() }),
    });
  expect(await run()).toMatchObject({ code: 0, stdout: expect.stringContaining('"a text was forgotten"') });
  expect(await run('--gaps', 'skip')).toMatchObject({ code: 1, stdout: expect.stringContaining('something of it is missing') });
});

test.each<[args: readonly string[], words: RegExp]>([
  [[], /say which conversations: ids, --agent NAME or --query QUERY/],
  [['x', '--stubs', 'stubs.ts'], /--stubs stubs\.ts is for --tools stub/],
  [['x', '--build', 'nowhere'], /--build nowhere is no folder/],
  [['x', '--agent-dir', 'few.json'], /--agent-dir few\.json is no folder/],
  [['x', '--prompt', 'nowhere.md'], /cannot read --prompt .*nowhere\.md/],
  [['x', '--settings', 'rubric.md'], /--settings rubric\.md is not JSON/],
  [['x', '--model', 'nothing'], /--model nothing is no model: write provider\/model/],
  [['x', '--judge', 'nothing'], /--judge nothing is no model/],
  [['x', '--rubric', 'rubric.md'], /is for a judge/],
  [['--agent', 'default', '--last', '20000'], /--last 20000 is too many/],
])('%j is refused with code 2 and a sentence', async (args, words) => {
  expect(await whatif(...args)).toMatchObject({ code: 2, stderr: expect.stringMatching(words) });
});

test('stubs that are none, a module that is not there and a choice that none fits are said', async () => {
  expect(await whatif(ids.plain, '--tools', 'stub', '--stubs', 'nowhere.ts')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('cannot load --stubs'),
  });
  await writeFile(join(recorder.world.dir, 'none.ts'), 'export default 7;');
  expect(await whatif(ids.plain, '--tools', 'stub', '--stubs', 'none.ts')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('none.ts is no stubs: export as default'),
  });
  expect(await whatif('--agent', 'nobody')).toMatchObject({ code: 4, stderr: expect.stringContaining('no conversation fits') });
});
