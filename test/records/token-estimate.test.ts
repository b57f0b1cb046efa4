import fc from 'fast-check';
import { tokenCounterBy } from '../../src/models/token-counter.js';
import {
  calibrate,
  estimateTokens,
  fixedRatio,
  measureBodyTokens,
  measureTokens,
  type EstimatedPrompt,
  type TokenCalibration,
} from '../../src/records/token-estimate.js';
import { utf8Length } from '../../src/records/text.js';

/** The first article of the Universal Declaration of Human Rights, and what agents read beside prose. */
const TEXTS: Readonly<Record<string, string>> = {
  English:
    'All human beings are born free and equal in dignity and rights. They are endowed with reason and conscience and should act towards one another in a spirit of brotherhood.',
  German:
    'Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und Gewissen begabt und sollen einander im Geiste der Brüderlichkeit begegnen.',
  Japanese:
    'すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。人間は、理性と良心とを授けられており、互いに同胞の精神をもって行動しなければならない。',
  Chinese: '人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。',
  Korean:
    '모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. 인간은 천부적으로 이성과 양심을 부여받았으며 서로 형제애의 정신으로 행동하여야 한다.',
  Russian:
    'Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом и совестью и должны поступать в отношении друг друга в духе братства.',
  Greek: 'Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα. Είναι προικισμένοι με λογική και συνείδηση.',
  Arabic: 'يولد جميع الناس أحرارا متساوين في الكرامة والحقوق. وقد وهبوا عقلا وضميرا وعليهم أن يعامل بعضهم بعضا بروح الإخاء.',
  Hebrew:
    'כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם. כולם חוננו בתבונה ובמצפון, לפיכך חובה עליהם לנהוג איש ברעהו ברוח של אחווה.',
  Hindi: 'सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है। उन्हें बुद्धि और अन्तरात्मा की देन प्राप्त है।',
  Thai: 'มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ ต่างมีเหตุผลและมโนธรรม และควรปฏิบัติต่อกันด้วยเจตนารมณ์แห่งภราดรภาพ',
  Amharic: 'የሰው ልጅ ሁሉ ሲወለድ ነጻና በክብርና በመብትም እኩልነት ያለው ነው። የተፈጥሮ ማስተዋልና ሕሊና ስላለው አንዱ ሌላውን በወንድማማችነት መንፈስ መመልከት ይገባዋል።',
  emoji: '😀🎉🚀👩‍💻🔥✅❤️🙏😂🤔💡📦🧪🌍👍🏽🇩🇪🥳🍕🐍☕🎯📈',
  code: 'export function addUsage(a: Usage, b: Usage): Usage {\n  return { ...a, inputTokens: a.inputTokens + b.inputTokens };\n}\n',
  table: 'id,price,date,customer,state\n4711,37.77,2026-11-10,ACME-91,open\n4712,75.54,2026-11-11,ACME-182,paid\n',
  base64: Buffer.from(Array.from({ length: 120 }, (_, i) => (i * i * 31 + i * 7919) & 255)).toString('base64'),
};
const TOKENIZERS = ['o200k_base', 'cl100k_base'];
const BODY = { ref: 'b', sha256: '0' };
/** An agent's system prompt and tools are in English, whatever people write. */
const SYSTEM = TEXTS.English?.repeat(60) ?? '';

test.each([
  '',
  'a',
  'Hello, world!',
  'x'.repeat(4_001),
  'https://example.org/a/b?c=1',
  'Grüße, señor — 12 %'.slice(0, 12),
  '7'.repeat(300),
])('Latin text is four characters a token: %#', (text) => {
  expect(estimateTokens(text)).toBe(Math.ceil(text.length / 4));
});

test.each(Object.entries(TEXTS))('%s: between half of what the thriftiest vocabulary says and twice the other', async (_, text) => {
  const counted = await Promise.all(TOKENIZERS.map(async (name) => (await tokenCounterBy(name)).count(text)));
  expect(estimateTokens(text)).toBeGreaterThanOrEqual(Math.floor(Math.min(...counted) / 2));
  expect(estimateTokens(text)).toBeLessThan(Math.max(...counted) * 2);
});

test('a long run of letters and digits is found wherever it stands, and as long as it is', () => {
  const encoded = /[\w+/=-]{64,}/g;
  const expected = (text: string): number => {
    const runs = [...text.matchAll(encoded)].map(([run]) => run).filter((run) => /\d/.test(run) && !/^\d+$/.test(run));
    const dense = runs.filter((run) => run.replace(/\D/g, '').length >= run.length * 0.05);
    return text.length / 4 + dense.join('').length * (0.65 - 0.25);
  };
  const piece = fc.oneof(
    fc.stringMatching(/^[a-f0-9]{1,70}$/),
    fc.stringMatching(/^[a-z0-9+/=_-]{60,70}$/),
    fc.stringMatching(/^[a-z .,:]{0,70}$/),
    fc.constantFrom(' ', '\n', '.', '"', 'a', '='),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      expect(measureTokens(pieces.join(''))).toBeCloseTo(expected(pieces.join('')), 6);
    }),
    { numRuns: 500 },
  );
});

/** The third prompt, as two prompts before it have taught. */
async function thirdPrompt(tokenizer: string, [first, second, third]: readonly [string, string, string]) {
  const { count } = await tokenCounterBy(tokenizer);
  const prompt = (messages: string): EstimatedPrompt => ({ fixed: measureTokens(SYSTEM), messages: measureTokens(messages) });
  const reported = (messages: string): number => count(SYSTEM) + count(messages);
  let known: TokenCalibration | undefined;
  for (const messages of [first, first + second]) {
    known = calibrate(known, { model: 'm', prompt: prompt(messages), reported: reported(messages) });
  }
  return { estimated: measureTokens(third) * (known?.ratio ?? 1), real: count(third) };
}

describe.each(TOKENIZERS)('after two calls, with %s', (tokenizer) => {
  test.each(Object.entries(TEXTS))('%s is estimated within 15 %%', async (_, text) => {
    const words = text.split(/(?<=[ ,、，።\n])/u);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat({ max: words.length - 1 }), { minLength: 1, maxLength: 5 }), async (order) => {
        // Other sentences than before, of the same words.
        const turned = order.reduce((all, at) => [...all.slice(at), ...all.slice(0, at)], words).join('');
        const { estimated, real } = await thirdPrompt(tokenizer, [text.repeat(3), turned.repeat(8), turned.repeat(4)]);
        expect(Math.abs(estimated - real) / real).toBeLessThanOrEqual(0.15);
      }),
      { numRuns: 20 },
    );
  });
});

test('a text in the store counts by its size and its beginning', () => {
  const text = (TEXTS.Japanese ?? '').repeat(200);
  const body = { ...BODY, bytes: utf8Length(text), preview: text.slice(0, 400) };
  expect(Math.abs(measureBodyTokens(body) / measureTokens(text) - 1)).toBeLessThan(0.1);
  expect(measureBodyTokens({ ...BODY, bytes: 4_000, preview: '' })).toBe(1_000);
});

describe('what a count teaches', () => {
  const at = (messages: number, reported: number, more: Partial<EstimatedPrompt> = {}) => ({
    model: 'm',
    prompt: { fixed: 1_000, messages, ...more },
    reported,
  });

  test('the first as a whole, then what was added', () => {
    const first = calibrate(undefined, at(100, 1_210));
    expect(first.ratio).toBeCloseTo(1.1);
    expect(calibrate(first, at(600, 1_960)).ratio).toBeCloseTo(1.5);
  });

  test('too little to tell changes nothing, and adds up', () => {
    const first = calibrate(undefined, at(100, 1_100));
    const second = calibrate(first, at(200, 1_500));
    expect(second).toBe(first);
    expect(calibrate(second, at(300, 1_700)).ratio).toBeCloseTo(3);
  });

  test('never so much that the whole would not be as it was reported', () => {
    // Ten short questions in a long talk: a report counts what holds them together too.
    const first = calibrate(undefined, at(7_000, 8_800));
    const second = calibrate(first, at(7_152, 9_257));
    expect(second.ratio).toBeLessThan(1.3);
    const prompts = fc.array(fc.tuple(fc.integer({ min: 1, max: 40 }), fc.double({ min: 0.5, max: 3, noNaN: true })), { maxLength: 9 });
    fc.assert(
      fc.property(prompts, fc.double({ min: 0.5, max: 2, noNaN: true }), (added, ofFixed) => {
        let [messages, reported] = [50, 1_000 * ofFixed + 50];
        let known = calibrate(undefined, at(messages, reported));
        for (const [more, each] of added) {
          messages += 160 * more;
          reported += 160 * more * each;
          known = calibrate(known, at(messages, reported));
          expect(1_000 * fixedRatio(known) + messages * known.ratio).toBeCloseTo(reported);
        }
      }),
    );
  });

  test('a shorter prompt, another system prompt and pictures say nothing about words', () => {
    const first = calibrate(undefined, at(1_000, 2_000));
    expect(calibrate(first, at(500, 9_000)).ratio).toBe(1);
    expect(calibrate(first, at(2_000, 9_000, { fixed: 3_000 })).ratio).toBe(1);
    expect(calibrate(undefined, at(100, 300, { fixed: 2_600, hasMedia: true })).ratio).toBe(1);
  });

  test('another model begins anew, and no report makes a ratio out of bounds', () => {
    const first = calibrate(undefined, at(1_000, 4_000));
    expect(calibrate(first, { ...at(2_000, 3_000), model: 'n' }).ratio).toBeCloseTo(1);
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(), fc.nat(), fc.nat()), { maxLength: 6 }), (prompts) => {
        let known: TokenCalibration | undefined;
        for (const [fixed, messages, reported] of prompts) known = calibrate(known, at(messages, reported, { fixed }));
        expect(known?.ratio ?? 1).toBeGreaterThanOrEqual(0.25);
        expect(known?.ratio ?? 1).toBeLessThanOrEqual(6);
      }),
    );
  });
});
