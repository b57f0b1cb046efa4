import fc from 'fast-check';
import { toTerminalJson, toTerminalLine, toTerminalText } from '../../../src/cli/terminal/terminal-text.js';

/** What must never be written, in code points: controls but \n and \t, C1, bidi, zero width, tags. */
const FORBIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/u;

const ATTACKS: Readonly<Record<string, string>> = {
  'clipboard (OSC 52)': '\x1b]52;c;ZXZpbA==\x07',
  'false link (OSC 8)': '\x1b]8;;http://evil.example\x07ok\x1b]8;;\x07',
  'false link ended by ST': '\x1b]8;;http://evil.example\x1b\\ok\x1b]8;;\x1b\\',
  'window title': '\x1b]0;you have mail\x07',
  'screen cleared': '\x1b[2J\x1b[H',
  'colour in C1': '\x9b31mred',
  'OSC in C1': '\x9d52;c;ZXZpbA==\x9c',
  'device control': '\x1bP$q"p\x1b\\',
  'answer typed into the shell': '\x1b[6n\x1b[c',
  'line overwritten': 'rm -rf /\rls      ',
  'text erased by backspaces': 'evil\b\b\b\bgood',
  'bidi override': 'access \u202egnp.exe\u202c',
  'bidi isolate': '\u2066hidden\u2069',
  'zero width': 'pass\u200bword\u200d\u2060\ufeff',
  'tag characters': 'hi\u{e0069}\u{e0067}\u{e006e}\u{e006f}\u{e0072}\u{e0065}',
  'variation selectors of the supplement': 'a\u{e0100}\u{e0101}',
  'null and bell': '\u0000\u0007',
  'bracketed paste ended': '\x1b[201~rm -rf /\n',
  'shift out': '\x0e\x0f',
  'lone surrogate': 'a\ud800b',
};

test.each(Object.entries(ATTACKS))('nothing that could act on a terminal is left of: %s', (_name, attack) => {
  expect(toTerminalText(attack)).not.toMatch(FORBIDDEN);
  expect(toTerminalLine(attack, 80)).not.toMatch(FORBIDDEN);
});

test.each(Object.entries(ATTACKS))('split over two chunks anywhere, still nothing is left of: %s', (_name, attack) => {
  for (let at = 0; at <= attack.length; at += 1) {
    expect(toTerminalText(attack.slice(0, at)) + toTerminalText(attack.slice(at))).not.toMatch(FORBIDDEN);
  }
});

test('no text at all lets a forbidden character through', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      expect(toTerminalText(text)).not.toMatch(FORBIDDEN);
    }),
    { numRuns: 500 },
  );
});

test('a control character is shown as its picture, so that a person sees that something was there', () => {
  expect(toTerminalText('a\x1b[31mb\x07\x7f\x9b')).toBe('a␛[31mb␇␡\ufffd');
});

test('line ends and tabs pass; a carriage return is dropped', () => {
  expect(toTerminalText('a\r\nb\tc\rd')).toBe('a\nb\tcd');
});

test('text of all languages and emoji pass unchanged', () => {
  const text = 'Grüße, 你好, שלום, مرحبا, नमस्ते, ❤️ 😀 🇩🇪 …';
  expect(toTerminalText(text)).toBe(text);
});

test('a line is one line and never longer than the width', () => {
  expect(toTerminalLine('a\n  b\t c', 80)).toBe('a b c');
  expect(toTerminalLine('x'.repeat(100_000), 10)).toBe(`${'x'.repeat(9)}…`);
  expect(toTerminalLine('0123456789', 10)).toBe('0123456789');
});

test('JSON holds no forbidden character and still means the same', () => {
  const value = Object.fromEntries(Object.entries(ATTACKS).filter(([name]) => name !== 'lone surrogate'));
  const json = toTerminalJson(value);
  expect(json).not.toMatch(FORBIDDEN);
  expect(JSON.parse(json)).toEqual(value);
});
