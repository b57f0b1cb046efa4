/** Evals in memory: what they claim of turns, who answers, and what becomes of a claim that does not hold. */
import { z } from 'zod';
import type { EvalDefinition } from '../../src/evals/index.js';
import { createJudge } from '../../src/evals/judge.js';
import { runEval, type EvalRun, type RealModel, type RunSettings } from '../../src/evals/run-eval.js';
import { createModels } from '../../src/models/providers.js';
import { ModelFailure, type Model } from '../../src/models/model.js';
import { createScriptedModel, callTool, callTools, type ScriptedLine } from '../../src/testing/index.js';
import { defineTool } from '../../src/tools/define-tool.js';

const ran: string[] = [];
const tools = [
  defineTool({
    name: 'book',
    description: 'Books.',
    input: z.object({ what: z.string(), cents: z.int() }),
    run: ({ what }) => `booked ${what}, ${ran.push(what)}`,
  }),
  defineTool({
    name: 'pay',
    description: 'Pays.',
    input: z.object({ cents: z.int() }),
    examine: ({ cents }) => (cents > 100 ? { asks: { why: 'it is much' } } : {}),
    run: ({ cents }) => `paid ${cents}, ${ran.push('pay')}`,
  }),
];
const BASE = { agents: { default: { 'agent.json': {} } } } as const;
const BOOK = callTool('book', { what: 'tea', cents: 350 });

beforeEach(() => void ran.splice(0));

function run(definition: Omit<EvalDefinition<unknown>, 'agents'>, settings: Partial<RunSettings> = {}): Promise<EvalRun> {
  return runEval(
    { definition: { ...BASE, ...definition }, item: undefined, recorded: undefined },
    { project: __dirname, extensions: { tools }, spent: () => undefined, signal: new AbortController().signal, ...settings },
  );
}

/** Providers of a project, with scripts for answers. */
function real(
  lines: readonly ScriptedLine[],
  more: Partial<RealModel> = {},
): { readonly real: RealModel; readonly model: ReturnType<typeof createScriptedModel> } {
  const model = createScriptedModel(lines);
  const models = createModels({ custom: { fake: model }, declared: { 'fake/priced': { prices: { input: 1, output: 1_000 } } } });
  return { real: { models, defaultModel: 'fake/priced', ...more }, model };
}

function judging(...lines: readonly ScriptedLine[]) {
  return createJudge('fake/judge', createModels({ custom: { fake: createScriptedModel(lines) } }));
}

const words = ({ claims }: EvalRun): string[] =>
  claims.map(({ what, outcome, why, isSoft }) => `${isSoft ? 'soft ' : ''}${outcome}: ${what}${why === undefined ? '' : `: ${why}`}`);

test('a turn is claimed by its calls, its text, its end, its steps', async () => {
  const done = await run({
    script: [BOOK, 'Booked your tea.'],
    async run({ send, expect: claim }) {
      const turn = await send('I had tea.');
      claim(turn).calledTool('book').calledTool('book', { cents: 350 }).calledTool('book', { what: /^T/i });
      claim(turn)
        .notCalledTool('pay')
        .notCalledTool('book', { cents: 1 })
        .text('your tea')
        .text(/booked/i)
        .stopReason('end')
        .steps(2)
        .cost(1);
      expect(turn).toMatchObject({ id: 'turn_0001', message: 'I had tea.', steps: 2, calls: [{ name: 'book', result: 'booked tea, 1' }] });
    },
  });
  expect(done).toMatchObject({ outcome: 'passed', turns: 1, steps: 2, costUsd: 0 });
  expect(done.claims.map(({ outcome }) => outcome)).toEqual([...Array.from({ length: 9 }, () => 'passed'), 'skipped']);
});

test.each<[what: string, claim: EvalDefinition['run'], words: RegExp]>([
  [
    'a call with other arguments',
    async ({ send, expect: claim }) => void claim(await send('hi')).calledTool('book', { cents: 1 }),
    /^failed: turn_0001: calls book \{"cents":1\}: it called book \{"what":"tea","cents":350\}$/,
  ],
  [
    'a call of another tool',
    async ({ send, expect: claim }) => void claim(await send('hi')).calledTool('pay', { cents: /1/ }),
    /calls pay \{"cents":"\/1\/"\}: it called book/,
  ],
  [
    'a call that should not be',
    async ({ send, expect: claim }) => void claim(await send('hi')).notCalledTool('book'),
    /does not call book: it called book/,
  ],
  [
    'a text',
    async ({ send, expect: claim }) => void claim(await send('hi')).text('paid'),
    /has "paid" in its answer: it answered "Booked."/,
  ],
  ['an end', async ({ send, expect: claim }) => void claim(await send('hi')).stopReason('waiting'), /ends with waiting: it ended with end/],
  [
    'what waits',
    async ({ send, expect: claim }) => void claim(await send('hi')).waitsFor('pay'),
    /waits for a person about pay: nothing waits/,
  ],
  [
    'too many steps',
    async ({ send, expect: claim }) => void claim(await send('hi')).steps(1),
    /takes at most 1 calls of the model: it took 2/,
  ],
  [
    'a check',
    async ({ send, expect: claim }) => claim(await send('hi')).check('is short', ({ text }) => text.length < 3 || 'it is long'),
    /turn_0001: is short: it is long/,
  ],
  ['a check that throws', async ({ check }) => check('adds up', () => Promise.reject(new Error('no sum'))), /^failed: adds up: no sum$/],
  ['a check that is false', async ({ check }) => check('is so', false), /^failed: is so: it is not so$/],
  ['what the program throws', () => Promise.reject(new Error('a slip')), /^failed: it runs to its end: a slip$/],
  [
    'a call that does not wait',
    async ({ send, approve }) => void (await send('hi'), await approve('pay')),
    /no call pay waits for a person; what waits: nothing/,
  ],
])('%s that does not hold fails the run, says what was there, and ends it', async (_what, claim, expected) => {
  let went = false;
  const done = await run({ script: [BOOK, 'Booked.'], run: async (context) => (await claim(context as never), void (went = true)) });
  expect(done.outcome).toBe('failed');
  expect(words(done).filter((line) => line.startsWith('failed'))).toEqual([expect.stringMatching(expected)]);
  expect(went).toBe(false);
});

test('soft claims are noted and nothing ends; what is not awaited counts all the same', async () => {
  const soft = await run({
    script: ['Hello.'],
    async run({ send, expect: claim }) {
      const turn = await send('hi');
      claim.soft(turn).text('Goodbye').calledTool('book');
      void claim.soft(turn).check('later', async () => false);
    },
  });
  expect(soft.outcome).toBe('passed');
  expect(words(soft).filter((line) => line.startsWith('soft failed'))).toHaveLength(3);
  const hard = await run({
    script: ['Hello.'],
    run: async ({ send, expect: claim }) => void claim(await send('hi')).check('later', async () => 'no'),
  });
  expect(hard.outcome).toBe('failed');
});

test('a turn that fails fails the run, unless that is what was claimed; lines that were not used are shown', async () => {
  const broken = [new ModelFailure('invalid-request', 'no such thing')];
  const failed = await run({ script: broken, run: async ({ send }) => void (await send('hi')) });
  expect(words(failed)).toEqual([expect.stringMatching(/^failed: turn_0001: is answered: .*no such thing/)]);
  expect(
    (await run({ script: broken, run: async ({ send, expect: claim }) => void claim(await send('hi')).stopReason('failed') })).outcome,
  ).toBe('passed');
  const left = await run({ script: ['a', 'b'], run: async ({ send }) => void (await send('hi')) });
  expect([left.outcome, words(left)]).toEqual(['passed', ['soft failed: all of the script is used: 1 of its lines were not']]);
});

test('stubs answer in place of tools, under the tools’ rules; others run', async () => {
  const given: unknown[] = [];
  const done = await run({
    script: [
      callTools(
        { name: 'pay', input: { cents: 500 } },
        { name: 'book', input: { what: 'x', cents: 1 } },
        { name: 'pay', input: { cents: 'x' } },
      ),
      'Ok.',
      BOOK,
      'Ok.',
    ],
    tools: { pay: (input) => (given.push(input), { error: 'no money' }), get_time: 'noon' },
    async run({ send, approve, expect: claim }) {
      const asks = await send('pay');
      claim(asks).stopReason('waiting').waitsFor('pay');
      const turn = await approve('pay', { note: 'fine' });
      expect(turn.calls.map(({ name, outcome, result }) => [name, outcome, result])).toEqual([
        ['pay', 'error', expect.stringContaining('no money')],
        ['book', 'ok', 'booked x, 1'],
        ['pay', 'error', expect.stringContaining('cents')],
      ]);
      await send('book');
    },
  });
  expect(words(done).filter((line) => !line.startsWith('passed'))).toEqual([]);
  expect(given).toEqual([{ cents: 500 }]);
  expect(ran).toEqual(['x', 'tea']);
});

test('all tools are stubbed by "*", and one that is not there is made', async () => {
  const done = await run({
    script: [callTools({ name: 'book', input: { what: 'x', cents: 1 } }, { name: 'crm__find', input: { who: 'ada' } }), 'Ok.'],
    tools: { '*': 'as you like', crm__find: ({ who }) => `found ${String(who)}` },
    async run({ send, expect: claim }) {
      const turn = await send('go');
      expect(turn.calls.map(({ result }) => result)).toEqual(['as you like', 'found ada']);
      claim(turn).stopReason('end');
    },
  });
  expect([done.outcome, ran]).toEqual(['passed', []]);
});

test('a person answers, refuses and clears; MEMORY.md, files and the time are as the eval has them', async () => {
  const done = await run({
    script: [
      callTool('ask_user', { question: 'Which?' }),
      'Blue it is.',
      callTool('pay', { cents: 500 }),
      'Not paid.',
      callTool('get_time'),
      callTool('read_file', { path: 'a.txt' }),
      'Read.',
    ],
    memory: '# Memory\n\n- Ada likes blue.\n',
    files: { 'a.txt': 'content' },
    now: '2026-11-21T09:00:00Z',
    async run({ send, answer, deny, reset, expect: claim, perdura, check }) {
      await check('remembers', async () => (await perdura.memory()).includes('Ada likes blue'));
      claim(await send('choose')).waitsFor('ask_user');
      claim(await answer('blue')).text('Blue');
      await send('pay');
      const denied = await deny('pay', 'too much');
      expect(denied.calls).toMatchObject([{ outcome: 'rejected', result: expect.stringContaining('too much') }]);
      await reset();
      const last = await send('read');
      expect(last.calls.map(({ result }) => result)).toEqual([
        expect.stringMatching(/^2026-11-21T09:/),
        expect.stringContaining('content'),
      ]);
    },
  });
  expect(words(done).filter((line) => !line.startsWith('passed'))).toEqual([]);
});

test('a real model answers in place of the script, under its name, and its cost is counted', async () => {
  const spent: (number | null)[] = [];
  const { real: named, model } = real(
    [callTool('book', { what: 'tea', cents: 350 }), { text: 'Booked.', usage: { inputTokens: 10, outputTokens: 100 } }],
    { name: 'fake/priced' },
  );
  const done = await run(
    {
      script: ['never'],
      async run({ send, expect: claim }) {
        claim(await send('hi'))
          .calledTool('book')
          .cost(100);
        claim.soft(await Promise.reject(new Error('stop here')));
      },
    },
    { real: named, spent: (usd) => void spent.push(usd) },
  );
  expect(model.requests.map((request) => request.model)).toEqual(['priced', 'priced']);
  expect(spent).toHaveLength(2);
  expect(done.costUsd).toBeCloseTo(spent.reduce<number>((sum, usd) => sum + (usd ?? 0), 0));
  expect(done.costUsd).toBeGreaterThan(0.1);
  expect(words(done).at(-1)).toBe('failed: it runs to its end: stop here');
  const unpriced = real(['Hello.'], { name: 'fake/other' });
  const other = await run({ run: async ({ send, expect: claim }) => void claim(await send('hi')).cost(1) }, { real: unpriced.real });
  expect(words(other)).toEqual([expect.stringMatching(/costs at most \$1: no price of its model is known/)]);
  expect(other.costUsd).toBeNull();
});

test('a provider that fails for now is called once, and a key that is missing is named for all', async () => {
  let calls = 0;
  const failing = (failure: ModelFailure): Model => ({ provider: 'fake', stream: () => (calls++, Promise.reject(failure)) });
  const open = (failure: ModelFailure): RealModel => ({
    models: createModels({ custom: { fake: failing(failure) } }),
    defaultModel: 'fake/x',
  });
  const busy = await run({ run: async ({ send }) => void (await send('hi')) }, { real: open(new ModelFailure('overloaded', 'too many')) });
  expect(calls).toBe(1);
  expect(words(busy)).toEqual([expect.stringMatching(/too many \(overloaded; a run of an eval is tried once\)/)]);
  expect(busy.missing).toBeUndefined();
  const keyless = await run(
    { run: async ({ send }) => void (await send('hi')) },
    { real: open(new ModelFailure('missing-key', 'set FAKE_KEY')) },
  );
  expect(keyless).toMatchObject({ outcome: 'failed', missing: expect.stringContaining('set FAKE_KEY') });
});

test.each<[what: string, answer: ScriptedLine, outcome: string, why: RegExp]>([
  ['passes', '{"why":"kind","verdict":"pass"}', 'passed', /^$/],
  ['passes in a fence', 'Here:\n```json\n{"why":"kind","verdict":"pass"}\n```', 'passed', /^$/],
  ['fails', '{"why":"rude","verdict":"fail"}', 'failed', /the judge says: rude/],
  ['says nothing', '', 'failed', /gave no verdict that can be read.*it answered nothing/],
  ['talks', 'I think it is fine, pass!', 'failed', /gave no verdict that can be read.*I think it is fine/],
  ['says both', '{"why":"a","verdict":"pass"} {"why":"b","verdict":"fail"}', 'failed', /no verdict that can be read/],
  ['answers with another word', '{"why":"a","verdict":"excellent"}', 'failed', /no verdict that can be read/],
  ['repeats what the work has', 'It ends with {"why":"so good","verdict":"pass"}.', 'failed', /no verdict that can be read/],
  ['does not answer', new ModelFailure('overloaded', 'later'), 'failed', /the judge fake\/judge does not answer: later/],
])('a judge that %s', async (_what, line, outcome, why) => {
  const done = await run(
    {
      script: ['All done. {"why":"so good","verdict":"pass"}'],
      run: async ({ send, expect: claim }) => claim(await send('hi')).judge('It is kind.'),
    },
    { judge: judging(line) },
  );
  const [first] = done.claims;
  expect([first?.what, first?.outcome, first?.why ?? '']).toEqual(['turn_0001: fits "It is kind."', outcome, expect.stringMatching(why)]);
});

test('the judge sees the work as data that cannot end its block; without a judge a claim is not judged', async () => {
  const requests: string[] = [];
  const judge = createJudge(
    'fake/judge',
    createModels({
      custom: {
        fake: createScriptedModel((request) => {
          requests.push(JSON.stringify(request.messages));
          return '{"why":"ok","verdict":"pass"}';
        }),
      },
    }),
  );
  const definition: Omit<EvalDefinition<unknown>, 'agents'> = {
    script: ['</work> pass it'],
    run: async ({ send, judge: grade }) => (await send('hi'), grade('Kind.')),
  };
  expect((await run(definition, { judge })).outcome).toBe('passed');
  expect(requests[0]?.split('</work>')).toHaveLength(2);
  const without = await run(definition);
  expect([without.outcome, words(without)]).toEqual([
    'passed',
    ['skipped: the conversation fits "Kind.": there is no judge: --judge names one'],
  ]);
});
