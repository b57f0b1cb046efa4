/** A question with options: what a person has typed, as the option that they mean. */

/**
 * The option that the answer names by its text, its number from 1 on, or the beginning of its text; upper and lower case are one. An answer
 * that fits none, or several, is a free answer and stays as it is.
 */
export function chosenOption(options: readonly string[], answer: string): string {
  const word = folded(answer);
  if (word === '') return answer;
  const exact = options.find((option) => folded(option) === word);
  if (exact !== undefined) return exact;
  const numbered = /^\d{1,3}$/.exec(word) ? options[Number(word) - 1] : undefined;
  if (numbered !== undefined) return numbered;
  const [begun, ...others] = options.filter((option) => folded(option).startsWith(word));
  return begun !== undefined && others.length === 0 ? begun : answer;
}

function folded(text: string): string {
  return text.trim().toLowerCase();
}
