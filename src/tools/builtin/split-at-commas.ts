/** `a, b` as words. */
export function splitAtCommas(text: string | undefined): string[] | undefined {
  const words = (text ?? '').split(',').flatMap((word) => (word.trim() === '' ? [] : [word.trim()]));
  return words.length === 0 ? undefined : words;
}
