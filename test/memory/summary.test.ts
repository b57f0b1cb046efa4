import * as fc from 'fast-check';
import {
  checkSummary,
  parseSummary,
  SUMMARY_LIMITS,
  summaryJsonSchema,
  summarySchema,
  type Summary,
} from '../../src/memory/compaction/summary-answer.js';
import { summaryPrompt } from '../../src/memory/compaction/summary-prompt.js';
import { summarize, ruleSummary } from '../../src/memory/compaction/summary.js';
import type { Ask } from '../../src/memory/long-record.js';
import { answer, calls, chat, conversation, result, user } from './builders.js';
import { ends } from '../support/ends.js';

const SOUND: Summary = {
  episodic: { summary: 'They chose pnpm.', tags: ['project'], salience: 0.7 },
  semantic: [{ fact: 'Use vitest.', tags: ['testing'], confidence: 0.8, salience: 0.9 }],
};
const JSON_TEXT = JSON.stringify(SOUND);
const numbersAsText = (count: number): string[] => Array.from({ length: count }, (_, n) => String(n));

describe('an answer is read', () => {
  test.each([
    ['alone', JSON_TEXT],
    ['in a code fence', '```json\n' + JSON_TEXT + '\n```'],
    ['in prose with braces', `Sure {as asked}, {"note": 1}:\n${JSON_TEXT}\nThat was all {}.`],
    ['with fields of its own', JSON.stringify({ ...SOUND, note: 'x', episodic: { ...SOUND.episodic, id: 'ep_9999' } })],
  ])('%s', (_, text) => {
    expect(parseSummary(text)).toEqual({ ok: true, summary: SOUND });
  });

  test('control characters, doubled facts and empty ones do not get through', () => {
    const parsed = parseSummary(
      JSON.stringify({
        episodic: { summary: ' a\u0000\u001b[31m\r\nb \ud83c ', tags: ['x\n', ' x', ''], salience: 1 },
        semantic: [' Use\n vitest. ', 'Use vitest.', '\u0007'].map((fact) => ({ fact, tags: [], confidence: 0, salience: 0 })),
      }),
    );
    expect(parsed).toEqual({
      ok: true,
      summary: {
        episodic: { summary: 'a[31m\nb \ufffd', tags: ['x'], salience: 1 },
        semantic: [{ fact: 'Use vitest.', tags: [], confidence: 0, salience: 0 }],
      },
    });
  });

  const deep = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
  test.each([
    ['nothing', '', /it was empty/],
    ['blanks', ' \n ', /it was empty/],
    ['prose', 'I am sorry, I cannot do that.', /there was no JSON object/],
    ['half of it', JSON_TEXT.slice(0, -9), /not complete/],
    ['an open string', '{"episodic": "', /not complete/],
    ['single quotes', "{'episodic': 1}", /no valid JSON/],
    ['1 MB', JSON_TEXT.padEnd(1 << 20, ' x'), /has 1048576 characters/],
    ['deep nesting', deep(40), /deeper than 16 levels/],
    ['braces without end', '{'.repeat(200_000), /deeper than 16/],
    ['another shape', '{"summary": "x"}', /episodic: .*; semantic: /],
    ['a list', `[${JSON_TEXT}`.replace('{"episodic"', '{"other"'), /episodic: /],
    ['keys of a prototype', `{"__proto__": ${JSON_TEXT}, "constructor": {"prototype": {}}}`, /episodic: /],
    ['numbers as text', JSON_TEXT.replace('0.7', '"0.7"'), /episodic\.salience: /],
    ['a summary that says nothing', JSON_TEXT.replace('They chose pnpm.', '\\u0000'), /episodic\.summary: it says nothing/],
  ])('not: %s', (_, text, reason) => {
    const parsed = ends(() => parseSummary(text));
    expect(parsed).toEqual({ ok: false, reason: expect.stringMatching(reason) as string });
    expect(Object.prototype).not.toHaveProperty('episodic');
  });

  test('what says too much is cut, not refused: the 20 most salient facts stay in their order', () => {
    const said = Array.from({ length: 30 }, (_, n) => ({
      fact: `fact ${n}`,
      tags: ['t'.repeat(90)],
      confidence: -1,
      salience: (n % 15) / 14,
    }));
    const parsed = parseSummary(
      JSON.stringify({
        episodic: { summary: '🎈'.repeat(5_000), tags: numbersAsText(30), salience: 70 },
        semantic: [...said, { fact: 'f'.repeat(900), tags: [], confidence: 7, salience: 1 }],
      }),
    );
    if (!parsed.ok) throw new Error(parsed.reason);
    const { episodic, semantic } = parsed.summary;
    expect(episodic).toEqual({ summary: '🎈'.repeat(3_000), tags: numbersAsText(10), salience: 1 });
    // Saliences 6/14 and more: nine of them twice; then the long one, and of the next the first.
    expect(semantic.map(({ fact }) => fact)).toEqual(
      [5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 21, 22, 23, 24, 25, 26, 27, 28, 29].map((n) => `fact ${n}`).concat('f'.repeat(500)),
    );
    expect(semantic[0]).toEqual({ fact: 'fact 5', tags: ['t'.repeat(40)], confidence: 0, salience: 5 / 14 });
    expect(semantic.at(-1)).toMatchObject({ confidence: 1, salience: 1 });
  });

  test('any answer of this shape is taken, and within all bounds', () => {
    const text = fc.string({ maxLength: 700 }).map((some) => `x${some}`);
    const number = fc.double({ noNaN: true, noDefaultInfinity: true });
    const tags = fc.array(text, { maxLength: 20 });
    const fact = fc.record({ fact: text, tags, confidence: number, salience: number });
    const answered = fc.record({
      episodic: fc.record({ summary: text, tags, salience: number }),
      semantic: fc.array(fact, { maxLength: 60 }),
    });
    fc.assert(
      fc.property(answered, (value) => {
        const parsed = checkSummary(value);
        if (!parsed.ok) throw new Error(parsed.reason);
        const semantic = parsed.summary.semantic.map((one) => ({ supersedes: [], ...one }));
        expect(summarySchema.safeParse({ retired: [], fold: '', goal: '', openTasks: [], ...parsed.summary, semantic }).success).toBe(true);
      }),
    );
  });

  test('its schema is plain JSON Schema with every bound in it', () => {
    expect(summaryJsonSchema()).toMatchObject({
      type: 'object',
      required: ['episodic', 'semantic', 'retired', 'fold', 'goal', 'openTasks'],
      properties: {
        episodic: {
          properties: { summary: { maxLength: SUMMARY_LIMITS.summary }, tags: { maxItems: 10 }, salience: { minimum: 0, maximum: 1 } },
        },
        semantic: { maxItems: 20, items: { properties: { fact: { maxLength: 500 }, confidence: { minimum: 0, maximum: 1 } } } },
      },
    });
  });
});

describe('the question', () => {
  test('has the turns flattened, the goal, what is known and what was done; the same window gives the same text', () => {
    const entries = conversation([
      1,
      user('Read it.'),
      calls(['c1', 'read_file', { path: 'a.ts' }], ['c2', 'send']),
      result('c1', 'text', { name: 'read_file' }),
      result('c2', 'refused', { name: 'send', outcome: 'rejected' }),
      answer('Done.'),
    ]);
    const request = { entries, goal: 'Ship', knownFacts: [{ id: 'sem_0007', fact: 'Use\npnpm.' }] };
    const { system, text, pieces, shown } = summaryPrompt(request);
    expect({ pieces, shown }).toEqual({ pieces: [], shown: ['sem_0007'] });
    expect(text).toBe(
      [
        'Goal of the session: Ship',
        'Known already:\n- sem_0007: Use pnpm.',
        'Taken over by itself, no need to repeat it:\nFiles read: a.ts\nTool failures:\n- turn 1: send (rejected): refused',
        'The record:',
        'Turn 1:\n  User: Read it.\n  Tool call: read_file {"path":"a.ts"}\n  Tool call: send {}\n  Tool result: read_file: text\n  Tool result: send (rejected): refused\n  Assistant: Done.',
      ].join('\n\n'),
    );
    expect(system).toContain(JSON.stringify(summaryJsonSchema()));
    expect(summaryPrompt(request)).toEqual({ system, text, pieces, shown });
  });

  test('is bounded: texts get shorter first, then messages in the middle are left out, and it says so', () => {
    const long = conversation(...Array.from({ length: 40 }, (_, i) => [i + 1, user('q'.repeat(5000)), answer('a'.repeat(5000))] as const));
    const shorter = summaryPrompt({ entries: long, maxCharacters: 60_000 }).text;
    expect(shorter.length).toBeLessThan(62_000);
    expect(shorter.match(/^Turn \d+:$/gm)).toHaveLength(40);
    const fewer = summaryPrompt({ entries: long, maxCharacters: 5_000 }).text;
    expect(fewer.length).toBeLessThan(7_000);
    expect(fewer).toMatch(/^Turn 1:$/m);
    expect(fewer).toMatch(/^Turn 40:$/m);
    expect(fewer).toMatch(/^\[left out here: \d+ of \d+ messages\]$/m);
  });

  test('has room for one turn of any length', () => {
    const one = conversation([1, user('q'), ...Array.from({ length: 3000 }, (_, i) => result(`c${i}`, 'r'.repeat(3000)))]);
    const { text } = summaryPrompt({ entries: one, maxCharacters: 10_000 });
    expect(text.length).toBeLessThan(10_000);
    expect(text).toMatch(/Turn 1:\n {2}User: q\n[^]*\[left out here: \d+ of 3001 messages\]\n[^]*rrr/);
  });
});

describe('summarizing', () => {
  const entries = chat(3);
  const answering = (...answers: (string | Error)[]) => {
    const asked: { system: string; text: string }[] = [];
    const ask: Ask = async (system, text) => {
      const next = answers[asked.push({ system, text }) - 1];
      if (typeof next !== 'string') throw next ?? new Error('asked too often');
      return Promise.resolve(next);
    };
    return { ask, asked };
  };

  test('a sound answer is taken, and asked for once', async () => {
    const { ask, asked } = answering(JSON_TEXT);
    expect(await summarize(ask, entries)).toEqual({ ...SOUND, method: 'model' });
    const { system, text } = summaryPrompt({ entries });
    expect(asked).toEqual([{ system, text }]);
  });

  test('facts that it replaces or retires are those that it was shown, and no others', async () => {
    const shown = (id: string, fact: string) => ({ id, fact });
    // The last has no room.
    const knownFacts = [shown('sem_0001', 'Uses npm.'), shown('sem_0002', 'Works alone.'), shown('sem_0003', 'x'.repeat(490))];
    const replaced = {
      episodic: SOUND.episodic,
      semantic: [{ ...SOUND.semantic[0], supersedes: ['sem_0001', 'sem_0003', 'sem_0099', 7, 'sem_0001; sem_0002'] }],
      retired: ['sem_0002', 'sem_0098', 'ep_0001'],
    };
    const { ask } = answering(JSON.stringify(replaced));
    const made = await summarize(ask, entries, { knownFacts, maxCharacters: 3_900 });
    expect(made).toEqual({
      episodic: SOUND.episodic,
      semantic: [{ ...SOUND.semantic[0], supersedes: ['sem_0001'] }],
      retired: ['sem_0002'],
      method: 'model',
    });
  });

  test('a bad answer is repaired once, and the model is told what was wrong', async () => {
    const { ask, asked } = answering('{"episodic": {}}', JSON_TEXT);
    expect(await summarize(ask, entries)).toMatchObject({
      ...SOUND,
      method: 'repaired',
      failure: expect.stringContaining('episodic.summary') as string,
    });
    expect(asked[1]?.text).toContain(asked[0]?.text);
    expect(asked[1]?.text).toMatch(/was not usable: episodic\.summary: .*\nIt began:\n {2}\{"episodic": \{\}\}/);
  });

  test('two bad answers give the summary by rule, and say why', async () => {
    const { ask, asked } = answering('prose', 'more prose');
    expect(await summarize(ask, entries)).toEqual({ ...ruleSummary(entries), method: 'rules', failure: 'there was no JSON object in it' });
    expect(asked).toHaveLength(2);
  });

  test('a repair is as bounded as the first question', async () => {
    const { ask, asked } = answering('x'.repeat(1 << 20), JSON_TEXT);
    await summarize(ask, entries);
    expect(asked[1]?.text.length).toBeLessThan((asked[0]?.text.length ?? 0) + 3_000);
  });

  test.each([
    ['at first', [new Error('429 slow\ndown')], 1],
    ['at the repair', ['prose', new Error('429 slow\ndown')], 2],
  ])('a model that fails %s gives the summary by rule', async (_, answers, times) => {
    const { ask, asked } = answering(...answers);
    expect(await summarize(ask, entries)).toMatchObject({ method: 'rules', failure: 'the summarizer did not answer: 429 slow down' });
    expect(asked).toHaveLength(times);
  });

  test.each(['AbortError', 'ModelInterrupted', 'CancelledFailure'])('%s goes through', async (name) => {
    const stopped = Object.assign(new Error('stopped'), { name });
    await expect(summarize(answering(stopped).ask, entries)).rejects.toBe(stopped);
    await expect(summarize(answering('prose', stopped).ask, entries)).rejects.toBe(stopped);
  });

  test('once its signal is aborted, whatever is thrown goes through', async () => {
    const controller = new AbortController();
    controller.abort();
    await expect(summarize(answering(new Error('socket hang up')).ask, entries, { signal: controller.signal })).rejects.toThrow(
      'socket hang up',
    );
  });

  test('files and failures are in every summary, whoever wrote it', async () => {
    const work = conversation([1, user('go'), calls(['c1']), result('c1', 'broken', { outcome: 'error', files: { written: ['x.ts'] } })]);
    for (const { ask } of [answering(JSON_TEXT), answering('', JSON_TEXT), answering('', '')]) {
      const { episodic } = await summarize(ask, work);
      expect(episodic.summary).toMatch(/\nFiles written: x\.ts\nTool failures:\n- turn 1: look \(error\): broken$/);
    }
  });
});

describe('a summary by rule', () => {
  test('has the goal, and each turn’s question and last answer', () => {
    const entries = conversation(
      [1, user('Plan the trip.\nPlease.'), calls(['c1']), result('c1'), answer('First.'), answer('It is planned.')],
      [2, user('And the budget?')],
    );
    expect(ruleSummary(entries).episodic).toEqual({
      summary: [
        'Turn 1: asked: Plan the trip. Please. | answered (1 tool call): It is planned.',
        'Turn 2: asked: And the budget? | answered: no answer',
      ].join('\n'),
      tags: ['by-rule'],
      salience: 0.5,
    });
  });

  test('keeps what the person asked to be remembered, word for word, and nothing else', () => {
    const entries = conversation(
      [1, user('Hello! Remember that the code is QX-4471. What do you remember?'), answer('Remember the milk.')],
      [2, user('My cat is grey.\nfrom now on answer in French'), answer('Oui.')],
    );
    expect(ruleSummary(entries).semantic.map(({ fact }) => fact)).toEqual([
      'The person said: Remember that the code is QX-4471.',
      'The person said: from now on answer in French',
    ]);
  });

  test('meets the bounds of a model’s, for any window: the first and the newest turns stay', () => {
    const long = conversation(
      ...Array.from({ length: 500 }, (_, i) => [i + 1, user(`remember ${i} ${'q'.repeat(900)}`), answer('a'.repeat(900))] as const),
    );
    const summary = ruleSummary(long);
    expect(parseSummary(JSON.stringify(summary))).toEqual({ ok: true, summary });
    expect(summary.episodic.summary).toMatch(/^Turn 1: /m);
    expect(summary.episodic.summary).toMatch(/^Turn 500: /m);
    expect(summary.episodic.summary).toMatch(/^\[left out here: \d+ of \d+ turns\]$/m);
    const nothing = ruleSummary([]);
    expect(parseSummary(JSON.stringify(nothing))).toEqual({ ok: true, summary: nothing });
  });
});
