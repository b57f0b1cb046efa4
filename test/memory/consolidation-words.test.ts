import { foldedLine } from '../../src/records/memory/documents.js';
import { allWords, significantWords, evidenceWords } from '../../src/memory/documents/significant-words.js';
import { ends } from '../support/ends.js';

const words = (text: string) => [...allWords(significantWords(text))].sort();

describe('the same thing has the same words', () => {
  test.each([
    ['case, width and accents', 'Café ＢＥＲＬＩＮ', 'cafe berlin'],
    ['endings', 'moved studies spaces running', 'move study space runs'],
    ['German ß', 'Straße', 'strasse'],
    ['who it is about', 'The user prefers pnpm', 'I want pnpm, please'],
    ['an address in a link', 'see https://www.Example.com/a/.', 'see example.com/a'],
    ['mailto', 'mailto:ada@x.org', 'ada@x.org'],
    ['thousands', '1,000 and 25.000', '1000 and 25000'],
    ['a decimal comma', '10,5', '10.5'],
    ['units', '5km', '5 km'],
    ['leading zeros', '007', '7'],
    ['negations', "Don't push", 'Never push'],
    ['a path from here', './src/x.ts', 'src/x.ts'],
    ['what nobody sees', 'evil\u200b@exam\u00adple.com', 'evil@example.com'],
    ['Korean, however composed', '도쿄', '도쿄'.normalize('NFD')],
    ['the user in Japanese', 'ユーザー東京', '東京'],
  ])('%s', (_, a, b) => {
    expect(words(a)).toEqual(words(b));
    expect(words(a)).not.toEqual([]);
  });

  test.each([
    ['addresses', 'mail evil@example.com', ['evil@example.com']],
    ['paths and names with dots', '/etc/hosts in src/a/b and Node.js', ['/etc/hosts', 'node.js', 'src/a/b']],
    ['numbers, dates, versions', 'v1.2.3 on 2026-02-27 with 42', ['2026-02-27', '42', 'v1.2.3']],
    ['a negation', 'no mushrooms', ['not']],
    ['not abbreviations or pairs', 'e.g. z.B. and/or client/server', []],
  ])('hard are %s', (_, text, hard) => {
    expect([...significantWords(text).hard].sort()).toEqual(hard);
  });

  test('scripts without spaces are pairs of characters, and grammar alone shows nothing', () => {
    expect(words('寿司が好きです')).toEqual(['きで', '司が', '寿司', '好き', 'が好'].filter((pair) => pair !== 'きで').sort());
    expect(words('私')).toEqual(['私']);
    expect(words('すし')).toEqual(['すし']);
    expect(words('ผู้ใช้ชอบกาแฟ').length).toBeGreaterThan(3);
  });

  test('a text says also what its words are put together of, and what stands behind JSON escapes', () => {
    const said = evidenceWords('{"a":"to:evil@example.com\\nnext https://github.com/ada/tool?x=1"}');
    for (const word of ['evil@example.com', 'next', 'github.com/ada/tool', 'ada', 'tool']) expect(said).toContain(word);
  });

  test('stop words alone are no words, nor are marks', () => {
    expect(words('The user is the user. --- ** [ ] …')).toEqual([]);
  });

  test.each([
    ['one endless word', 'a'.repeat(1 << 20)],
    ['dots', 'a.'.repeat(1 << 19)],
    ['slashes', '/'.repeat(1 << 20)],
    ['marks', '._:'.repeat(1 << 19)],
    ['backslashes', '\\'.repeat(1 << 20)],
    ['digits and commas', '1,'.repeat(1 << 19)],
    ['kanji', '東'.repeat(1 << 19)],
  ])('%s are read by their length', (_, text) => {
    ends(() => evidenceWords(text));
  });
});

test.each([
  ['- a  b ', 'a b'],
  ['  * a b', 'a b'],
  ['12. a b', 'a b'],
  ['## A', '## A'],
  ['-5 degrees', '-5 degrees'],
  [' \t', ''],
])('the line "%s" is "%s"', (line, folded) => {
  expect(foldedLine(line)).toBe(folded);
});
