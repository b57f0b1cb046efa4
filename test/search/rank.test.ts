import fc from 'fast-check';
import { search, type Hit } from '../../src/search/scan.js';
import { SearchIndex, type Text } from '../../src/search/search-index.js';
import { BOUNDS } from '../../src/search/weights.js';
import { corpus, NOON, question, scoresOf } from './corpus.js';
import { ends } from '../support/ends.js';

function indexOf(texts: readonly Text[]): SearchIndex {
  const index = new SearchIndex();
  for (const text of texts) index.add(text);
  return index;
}

function said(texts: readonly string[], kind: Text['kind'] = 'user'): SearchIndex {
  return indexOf(texts.map((text, i) => ({ line: 'talk', at: i + 1, session: 1, ts: NOON + i * 60, kind, text })));
}

const placeOf = ({ line, at }: Pick<Hit, 'line' | 'at'>): string => `${line}/${at}`;
const firstOf = (index: SearchIndex, asked: string, now = NOON): number | undefined => search(index, { question: asked, now })[0]?.at;
const byPlace = (hits: readonly Hit[]) => Object.fromEntries(hits.map((hit) => [placeOf(hit), Number(hit.score.toFixed(3))]));

test('ranks every talk as the definition does, word by word', () => {
  fc.assert(
    fc.property(corpus, question, (texts, asked) => {
      const hits = search(indexOf(texts), { question: asked, now: NOON, limit: 200 });
      const expected = scoresOf(texts, asked);
      expect(byPlace(hits)).toEqual(Object.fromEntries([...expected].map(([place, score]) => [place, expect.closeTo(score, 2)])));
      expect(hits.map(({ score }) => score)).toEqual(hits.map(({ score }) => score).sort((a, b) => b - a));
    }),
  );
});

test('ranks the same in whatever order messages came, and when each came twice', () => {
  fc.assert(
    fc.property(corpus, question, fc.infiniteStream(fc.nat()), (texts, asked, order) => {
      const shuffled = texts.map((text) => ({ text, by: order.next().value as number })).sort((a, b) => a.by - b.by);
      const twice = indexOf([...shuffled, ...shuffled].map(({ text }) => text));
      expect(twice.size).toBe(texts.length);
      const asIn = (index: SearchIndex) => byPlace(search(index, { question: asked, now: NOON, limit: 200 }));
      expect(asIn(twice)).toEqual(asIn(indexOf(texts)));
    }),
  );
});

test('ranks after a removal as if the messages had never been there', () => {
  fc.assert(
    fc.property(corpus, question, fc.nat(), (texts, asked, salt) => {
      const isGone = (at: number): boolean => (at * 7 + salt) % 3 === 0;
      const index = indexOf(texts);
      for (const line of ['a', 'b', 'c', 'no such line']) index.remove(line, isGone);
      const never = indexOf(texts.filter(({ at }) => !isGone(at)));
      const asIn = (one: SearchIndex) => byPlace(search(one, { question: asked, now: NOON, limit: 200 }));
      expect(asIn(index)).toEqual(asIn(never));
      for (const text of texts) index.add(text);
      expect(asIn(index)).toEqual(asIn(indexOf(texts)));
    }),
  );
});

test.each([
  ['a plural and a past', ['We talked about cars', 'Two boats were lying there', 'Good night'], 'Where did the boat lie?', 2],
  ['an irregular verb', ['My sister went to Oslo', 'It rains', 'Good night'], 'Did she ever go to Oslo?', 1],
  ['accents that nobody types', ['Le garçon a mangé une crêpe', 'Bonne nuit'], 'garcon crepe', 1],
  ['German', ['Wir haben den Zahnarzt angerufen', 'Schönes Wetter heute'], 'Wann haben wir mit Zahnärzten telefoniert?', 1],
  ['Spanish', ['Compramos dos bicicletas rojas', 'Hola, ¿qué tal?'], '¿de qué color es la bicicleta?', 1],
  ['Russian', ['Вчера мы ездили на дачу к бабушке', 'Привет'], 'бабушкина дача', 1],
  ['Chinese', ['我昨天在北京买了一本书', '晚安'], '书', 1],
  ['Japanese', ['昨日、京都で抹茶を飲みました', 'おやすみなさい'], '抹茶はどこ', 1],
  ['Thai', ['ฉันซื้อหนังสือที่กรุงเทพ', 'ราตรีสวัสดิ์'], 'หนังสือ', 1],
  ['right to left', ['קניתי סירה ביפו', 'לילה טוב'], 'סירה', 1],
  ['the same letters, wide', ['Order ＡＢＣ１２３ is late', 'Good night'], 'abc123', 1],
])('finds %s', (_, texts, asked, at) => {
  expect(firstOf(said(texts), asked)).toBe(at);
});

test('an English question finds a word that was said in German', () => {
  const texts = [
    'Ich habe heute mit der Versicherung gesprochen und sie wollen nicht zahlen',
    'The weather is nice here and I like it a lot',
  ];
  expect(firstOf(said([...texts, 'I am going out now, see you in the evening']), 'What was it about the Versicherungen?')).toBe(1);
});

test('the answer beside the words that a question shares is found through its neighbours', () => {
  const hits = search(said(['Which name did you give to the sailboat?', 'Seagull.', 'Fine weather.', 'Yes.', 'A good book.']), {
    question: 'name of the sailboat',
    now: NOON,
  });
  expect(hits.slice(0, 2).map(({ at }) => at)).toEqual([1, 2]);
});

test('who is named by the question comes first', () => {
  const index = said(['Anna: my favourite sport is chess', 'Ben: my favourite sport is judo', 'Cleo: my favourite sport is golf']);
  expect(firstOf(index, "What is Ben's favourite sport?")).toBe(2);
  expect(firstOf(index, "What is Cleo's favourite sport?")).toBe(3);
});

describe('times', () => {
  const days = [Date.UTC(2023, 4, 3), Date.UTC(2024, 4, 3), Date.UTC(2024, 6, 10), Date.UTC(2024, 7, 19)];
  const index = indexOf(
    days.map((ms, i) => ({ line: 'talk', at: i + 1, session: i, ts: ms / 1000, kind: 'user', text: `We went to the dentist, visit ${i}` })),
  );
  const now = Date.UTC(2024, 7, 20) / 1000;
  test.each([
    ['Did we see the dentist last May?', 2],
    ['the dentist in May 2023', 1],
    ['dentist 2024-07', 3],
    ['dentist on 10.07.2024', 3],
    ['the dentist yesterday', 4],
    ['Waren wir gestern beim dentist?', 4],
    ['dentist last month', 3],
    ['dentist last year', 1],
    ['dentist am 10. Juli 2024', 3],
    ['dentist il y a trois mois', 2],
  ])('%s', (asked, at) => {
    expect(firstOf(index, asked, now)).toBe(at);
  });

  test('what mentions a day is found by it, whenever it was said', () => {
    const talk = said(['Yesterday we went sailing', 'Tomorrow we go sailing', 'We like sailing']);
    expect(firstOf(talk, 'Who was sailing on 7 May 2024?', NOON + 90 * 86_400)).toBe(1);
  });

  test('after and before are held to the second, kinds and lines too', () => {
    const of = (query: object) =>
      search(index, { question: 'dentist', now, ...query })
        .map(({ at }) => at)
        .sort();
    expect(of({ after: days[1]! / 1000 })).toEqual([2, 3, 4]);
    expect(of({ before: days[1]! / 1000 })).toEqual([1]);
    expect(of({ kinds: ['tool'] })).toEqual([]);
    expect(of({ lines: (name: string) => name === 'other' })).toEqual([]);
  });
});

test('several indexes rank as one that has all of their lines', () => {
  fc.assert(
    fc.property(corpus, question, fc.boolean(), (texts, asked, isAsked) => {
      const whole = indexOf(texts);
      const parts = [
        whole.part((line) => line === 'a'),
        whole.part((line) => line !== 'a' && isAsked),
        whole.part((line) => line !== 'a' && !isAsked),
      ];
      const shown = (found: Hit[]) => found.map(({ score, ...hit }) => ({ ...hit, score: Math.fround(score).toFixed(3) }));
      const query = { question: asked, now: NOON, limit: 200 };
      expect(shown(search(parts, query))).toEqual(shown(search(whole, query)));
      expect(parts.reduce((sum, { size }) => sum + size, 0)).toBe(whole.size);
    }),
    { numRuns: 100 },
  );
});

test('the same text of the same time is one hit, though it stands in two conversations', () => {
  const one = { at: 1, session: 1, ts: NOON, kind: 'user', text: 'The boat is called Seagull' } as const;
  expect(
    search(
      indexOf([
        { ...one, line: 'a' },
        { ...one, line: 'fork of a' },
      ]),
      { question: 'boat', now: NOON },
    ),
  ).toHaveLength(1);
});

test('a long text is found by its passages, which are all of it', () => {
  const text = `${'Nothing of interest here. '.repeat(400)}\n\nThe password of the harbour gate is Seagull.\n\n${'More of nothing. '.repeat(400)}`;
  const [hit] = search(said([text]), { question: 'harbour gate', now: NOON });
  expect(text.slice(hit?.start, hit?.end)).toContain('Seagull');
  expect((hit?.end ?? 0) - (hit?.start ?? 0)).toBeLessThanOrEqual(BOUNDS.passage);
});

describe('hostile input takes no longer by its shape', () => {
  const index = said(['((a+)+)+$ is a bomb', 'plain talk', '🎉🎉🎉', `x${'\u0301'.repeat(5000)}`]);
  test.each([
    ['a hundred thousand characters', 'boat '.repeat(20_000)],
    ['only stop words', 'what is it that was the of and'],
    ['only emoji', '🎉🙂👩‍👩‍👧‍👦'.repeat(100)],
    ['a bomb for regular expressions', `${'((a+)+)+'.repeat(2000)}$`],
    ['one endless word', 'a'.repeat(100_000)],
    ['one endless apostrophe', "a'".repeat(50_000)],
    ['combining marks', `a${'\u0301'.repeat(100_000)}`],
    ['control characters', '\u0000\u0001\u001b[2J\u202e\ud800 boat'],
    ['right to left', 'א'.repeat(100_000)],
    ['Chinese without end', '书'.repeat(100_000)],
    ['numbers', '1-1-1-'.repeat(20_000)],
    ['dates', '2024-05-07 '.repeat(10_000)],
    ['nothing', ''],
  ])('%s', (_, asked) => {
    expect(ends(() => search(index, { question: asked, now: NOON })).length).toBeLessThanOrEqual(10);
  });

  test('times that are no times', () => {
    for (const ts of [0, -1, 8.64e12, Number.MAX_SAFE_INTEGER, NaN, -8.64e12]) {
      const odd = indexOf([{ line: 'a', at: 1, session: 1, ts, kind: 'user', text: 'yesterday in May we sailed last week' }]);
      expect(() => search(odd, { question: 'sailed yesterday, in May', now: ts })).not.toThrow();
    }
  });
});
