/**
 * Bytes to text and back, as all that people and servers bring is read. What writes them: Windows' Notepad and PowerShell (UTF-16 with a
 * mark, openclaw/openclaw#133129), editors that put a mark before UTF-8 (caura-ai/caura-cross-fleet-gov#13), and older ones with code pages.
 */
import fc from 'fast-check';
import {
  createTextCheck,
  decodeExactly,
  decodeText,
  detectFileType,
  encodeText,
  isBinary,
  withTextFile,
  type TextForm,
} from '../../src/records/file-type.js';

const form = fc.constantFrom<TextForm>(
  { encoding: 'utf-8', hasMark: false },
  { encoding: 'utf-8', hasMark: true },
  { encoding: 'utf-16le', hasMark: true },
  { encoding: 'utf-16be', hasMark: true },
);
/** Without a mark of its own before it, which only bytes with one can have. */
const anyText = fc.string({ unit: 'binary' }).map((text) => text.toWellFormed());

test('a text comes back from its bytes, in every form, and the bytes from the text', () => {
  fc.assert(
    fc.property(anyText, form, (text, written) => {
      fc.pre(written.hasMark || !text.startsWith('\ufeff'));
      const bytes = encodeText(text, written);
      expect(decodeText(bytes)).toBe(text);
      expect(decodeExactly(bytes)).toEqual({ text, form: written });
    }),
  );
});

test('whatever bytes are decoded exactly are the same bytes when they are written back', () => {
  const start = fc.constantFrom([], [0xff, 0xfe], [0xfe, 0xff], [0xef, 0xbb, 0xbf], [0xef, 0xbb]);
  fc.assert(
    fc.property(start, fc.uint8Array({ maxLength: 12 }), (first, rest) => {
      const bytes = Uint8Array.from([...first, ...rest]);
      const decoded = decodeExactly(bytes);
      if (decoded) expect([...encodeText(decoded.text, decoded.form)]).toEqual([...bytes]);
      else expect(decodeText(bytes)).toContain('\ufffd');
    }),
    { numRuns: 2_000 },
  );
});

test('two marks are a mark and a character', () => {
  const bytes = Buffer.from('\ufeff\ufeffa');
  expect(decodeExactly(bytes)?.text).toBe('\ufeffa');
  expect(isBinary(bytes)).toBe(false);
});

const wide = (text: string): Buffer => Buffer.from(`\ufeff${text}`, 'utf16le');

test.each<[string, Buffer, string | undefined]>([
  ['UTF-8', Buffer.from('größer'), 'text/plain'],
  ['UTF-8 with a mark', Buffer.from('\ufeffgrößer'), 'text/plain'],
  ['UTF-16', wide('größer\r\n\t'), 'text/plain'],
  ['UTF-16 the other way', wide('größer').swap16(), 'text/plain'],
  ['UTF-16 with a control character', wide('a\u0007'), undefined],
  ['UTF-16 with NUL', wide('a\0'), undefined],
  ['half of UTF-16', wide('größer').subarray(0, 5), undefined],
  ['UTF-16 without a mark', Buffer.from('abc', 'utf16le'), undefined],
  ['UTF-32', Buffer.from('fffe000061000000', 'hex'), undefined],
  ['another encoding', Buffer.from('gr\xf6\xdfer', 'latin1'), undefined],
  ['a picture, though FF comes first', Buffer.from('ffd8ffe0', 'hex'), 'image/jpeg'],
  ['nothing', Buffer.alloc(0), undefined],
])('a file that is sent and is %s is known by its bytes, whole or in parts', (_, bytes, type) => {
  expect(detectFileType(bytes)).toBe(type);
  if (type?.startsWith('image/') === true || bytes.length < 6) return;
  const check = createTextCheck();
  const parts = [bytes.subarray(0, 3), bytes.subarray(3, 4), bytes.subarray(4)];
  expect(parts.every((part) => check(part)) && check()).toBe(type === 'text/plain');
});

test.each([Buffer.from('\ufeffone'), wide('one'), wide('one').swap16()])(
  'a text file stands in its message without its mark: %#',
  (bytes) => {
    expect(withTextFile('Read this.', { name: 'a.txt', bytes })).toMatch(/a\.txt"\]\none$/);
  },
);
