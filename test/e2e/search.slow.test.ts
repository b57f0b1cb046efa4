/**
 * Finding what was said, as a user does: three weeks of dated conversations, then thirty questions in one's own words, by an agent that
 * calls search_memory and by the search of `perdura search`.
 */
import type { Entry } from '../../src/records/message.js';
import { turnId } from '../../src/records/identity.js';
import { callTool, text } from '../support/provider-apis/reply.js';
import { runPerdura } from '../support/run-perdura.js';
import { figure } from '../support/scene.js';
import { createStage, resultTexts, say } from '../support/stage.js';
import { startWorld, type World } from '../support/world.js';
import { QUESTIONS, TALKS, type Talk } from './bakery-talk.js';

const SCOPE = 'bakery';
/** Of thirty: others share no word with their answer, nor with what stands beside it. */
const MIN_FOUND = 24;

let world: World;
const stage = createStage();
const answers = new Map<string, string>();

beforeAll(async () => {
  world = await startWorld({ answer: stage.answer });
  for (const talk of TALKS) {
    const key = { namespace: 'default', scope: SCOPE, conversation: talk.id, life: `life-of-${talk.id}` };
    await world.store.entries.append(key, entriesOf(talk));
  }
});
afterAll(() => world.close());

function entriesOf({ at, said }: Talk): Entry[] {
  const begin = Date.parse(at) / 1000;
  return said.map((line, i) => {
    const [, tool, name, words = ''] = /^(?:tool:(\S+) )?(?:([a-z-]+)\|)?([^]*)$/.exec(line) ?? [];
    if (name !== undefined) answers.set(name, words);
    const base = { v: 1, slot: i + 1, session: 1, turn: turnId(Math.floor(i / 2) + 1), seq: (i % 2) + 1, ts: begin + 40 * i } as const;
    if (tool !== undefined) return { ...base, message: { role: 'tool', callId: `c${i}`, name: tool, outcome: 'ok', text: words } };
    if (i % 2 === 0) return { ...base, message: { role: 'user', text: words } };
    return { ...base, message: { role: 'assistant', blocks: [{ kind: 'text', text: words }], model: 'test/model', stop: 'end' } };
  });
}

const blocksIn = (answer: string): string[] => answer.split(/^(?=\[[0-9a-f]{12}\/\d+\] )/m);
const wantedOf = (name: string): string => answers.get(name) ?? 'unknown';
const rankIn = (texts: readonly string[], wanted: string): number => texts.findIndex((one) => one.includes(wanted)) + 1;

const show = (rank: number): string => (rank === 0 ? '–' : String(rank)).padStart(5);

test('thirty questions about three weeks find what answers them, by an agent and by a person', async () => {
  const byPerson: number[] = [];
  for (const [question, name] of QUESTIONS) {
    const hits = await world.client.scope(SCOPE).search(question, { limit: 10 });
    const texts = hits.map(({ text: words }) => words);
    byPerson.push(rankIn(texts, wantedOf(name)));
  }
  const id = world.id();
  await world.client.start(id, { scope: SCOPE });
  const rows: string[] = [];
  const byAgent: number[] = [];
  for (const [n, [question, name]] of QUESTIONS.entries()) {
    stage.play(id, callTool('search_memory', { question }), text('I see.'));
    await world.client.send(id, say(id, question));
    const [answer = ''] = resultTexts(stage.requests(id)[2 * n + 1]);
    expect(answer.length).toBeLessThan(4_500);
    const rank = rankIn(blocksIn(answer), wantedOf(name));
    byAgent.push(rank);
    rows.push(`${question.padEnd(66)} ${show(rank)} ${show(byPerson[n] ?? 0)}`);
  }
  figure(`${'question'.padEnd(66)} agent   person\n${rows.join('\n')}`);
  for (const [who, ranks] of [
    ['agent', byAgent],
    ['person', byPerson],
  ] as const) {
    const found = ranks.filter((rank) => rank > 0 && rank <= 10).length;
    figure(`${who}: in the first ten ${found} of ${QUESTIONS.length}, first ${ranks.filter((rank) => rank === 1).length}`);
    expect(found).toBeGreaterThanOrEqual(MIN_FOUND);
  }
});

test('what a person reads has the words marked, where it was said, and how to read on; what a tool brought says so', async () => {
  const ran = await runPerdura(world, ['search', 'What do the order systems cost a month?', '--scope', SCOPE, '--limit', '3']);
  expect(ran.code).toBe(0);
  expect(ran.stdout).toMatch(/tool fetch_url · software, turn 1 · [0-9a-f]{12}\/2 · untrusted/);
  const [, at = ''] = /([0-9a-f]{12}\/2) · untrusted/.exec(ran.stdout) ?? [];
  const opened = await runPerdura(world, ['search', '--scope', SCOPE, '--open', at]);
  expect(opened.stdout).toContain('Let us compare the order systems');
  const none = await runPerdura(world, ['search', '--scope', SCOPE, '--open', '000000000000/1']);
  expect([none.code, none.stderr]).toEqual([4, expect.stringContaining('nothing stands at "000000000000/1"')]);
  const marked = await runPerdura(world, ['search', 'hazelnuts', '--scope', SCOPE, '--limit', '1'], { env: { FORCE_COLOR: '1' } });
  expect(marked.stdout).toContain('\u001b[1mhazelnuts');
  for (const [args, said] of [
    [['search'], 'write what to look for'],
    [['search', 'x', '--after', 'yesterday'], '--after "yesterday" is no date'],
    [['search', 'x', '--kind', 'dream'], 'write one of user, assistant'],
    [['search', 'x', '--limit', '51'], '--limit is at most 50'],
  ] as const) {
    const refused = await runPerdura(world, args);
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining(said)]);
  }
  const dated = await runPerdura(world, ['search', 'budget', '--scope', SCOPE, '--before', '2026-03-05', '--kind', 'user', '-o', 'json']);
  const { hits } = JSON.parse(dated.stdout) as { hits: { kind: string; ts: number }[] };
  expect(hits.length).toBeGreaterThan(0);
  expect(hits.every(({ kind, ts }) => kind === 'user' && ts < Date.parse('2026-03-06') / 1000)).toBe(true);
});
