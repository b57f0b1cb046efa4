/** A title made of a person's first message: its first words, on one line, without what must not stand in a list. */
import { createKnownSecrets, type KnownSecrets } from '../../platform/known-secrets.js';
import { firstWords } from '../../records/first-words.js';
import { secretLeaving } from '../../tools/egress-scan.js';

const LONGEST = 60;

/** Undefined where nothing is left of it that says something. */
export function toTitle(
  text: string,
  known: Pick<KnownSecrets, 'text' | 'isIn'> = createKnownSecrets(),
  longest = LONGEST,
): string | undefined {
  const words = firstWords(text, { longest, withoutKnown: known.text });
  return words === undefined || secretLeaving(words, known) ? undefined : words;
}
