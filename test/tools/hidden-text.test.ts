import { countHidden, hasHidden, plainOutput, showHidden } from '../../src/tools/hidden-text.js';

describe('S37 what nobody sees', () => {
  it.each([
    ['zero width', 'a\u200bb\u2060c\ufeffd', 'a\\u{200b}b\\u{2060}c\\u{feff}d'],
    ['a turn of direction', 'exe\u202etxt.\u2066x\u2069', 'exe\\u{202e}txt.\\u{2066}x\\u{2069}'],
    ['tags', 'hi\u{e0049}\u{e0067}', 'hi\\u{e0049}\\u{e0067}'],
    ['variation selectors that carry bytes', 'x\u{e0100}\u{e01ef}', 'x\\u{e0100}\\u{e01ef}'],
    ['fillers', '\u3164\u115f\u034f', '\\u{3164}\\u{115f}\\u{34f}'],
    ['a joiner in a Latin word', 'pay\u200dpal \u200c', 'pay\\u{200d}pal \\u{200c}'],
    ['control characters', 'a\u0007\u001b[31m\u009b1m\u0000', 'a\\u{7}\\u{1b}[31m\\u{9b}1m\\u{0}'],
    ['other line ends', 'a\u2028b\u0085c', 'a\\u{2028}b\\u{85}c'],
  ])('is shown by its code: %s', (_, text, shown) => {
    expect(showHidden(text)).toBe(shown);
    expect(hasHidden(text)).toBe(true);
    expect(hasHidden(shown)).toBe(false);
  });

  it.each([
    ['plain text', 'a\tb\nc äöü 日本語 📝'],
    ['a joined emoji', '👨‍👩‍👧 👩🏽‍💻 ❤️‍🔥'],
    ['joiners inside words that use them', 'می‌خواهم क्‍ष'],
    ['marks of direction', 'שלום\u200e (abc)\u200f'],
    ['nothing', ''],
  ])('leaves alone what has a use: %s', (_, text) => {
    expect(showHidden(text)).toBe(text);
    expect(hasHidden(text)).toBe(false);
  });

  it('is counted, and of a long run only the beginning is shown', () => {
    const run = '\u{e0041}'.repeat(1_000);

    expect(countHidden(`a${run}b\u202e`)).toBe(1_001);
    expect(showHidden(run)).toBe(`${'\\u{e0041}'.repeat(16)}[and 984 more that no person sees]`);
  });
});

describe('the output of a command', () => {
  it.each([
    ['colours', '\u001b[1;31mred\u001b[0m', 'red'],
    ['a title', '\u001b]0;evil\u0007text', 'text'],
    ['the clipboard', '\u001b]52;c;BASE64\u0007text', 'text'],
    ['a link', '\u001b]8;;http://evil\u001b\\ok\u001b]8;;\u001b\\', 'ok'],
    ['a line that was written over', '50%\r100%\r\n', '50%\n100%\n'],
    ['an escape without an end', 'a\u001b]never', 'a\\u{1b}]never'],
  ])('has none of what steers a terminal: %s', (_, text, plain) => {
    expect(plainOutput(text)).toBe(plain);
  });
});
