/** Cells of a text, near enough for these tests; the program itself asks string-width, which jest cannot load. */
export function measure(text: string): number {
  return Array.from(text).reduce((sum, character) => {
    if (/\p{Mark}/u.test(character)) return sum;
    return sum + (/[\p{Script=Han}\p{Script=Hangul}\p{Script=Hiragana}\p{Script=Katakana}\p{Emoji_Presentation}]/u.test(character) ? 2 : 1);
  }, 0);
}
