/** A title of what a person has said first: its first words, on one line, without what must not stand in a list. */
import { createKnownSecrets, REDACTED, type KnownSecrets } from '../../platform/known-secrets.js';
import { secretLeaving, withoutSecrets } from '../../tools/egress-scan.js';

/** Of the text that is looked at, and of a title. */
const READ = 4_000;
const LONGEST = 60;

/** Undefined where nothing is left of it that says something. */
export function titleOf(text: string, known: Pick<KnownSecrets, 'text' | 'isIn'> = createKnownSecrets()): string | undefined {
  // What a cut would leave half of is no secret any more that could be recognised: first taken out, then cut.
  const safe = withoutSecrets(text.slice(0, READ), known);
  const line = safe
    .replace(/[\p{C}\p{Z}\s]+/gu, ' ')
    .replace(/^[\s#>*_`~-]+/, '')
    .trim();
  const words = shortened(line);
  const says = words.replaceAll(REDACTED, '');
  return !/[\p{L}\p{N}]/u.test(says) || secretLeaving(words, known) ? undefined : words;
}

/** At a blank, where there is one late enough: not every language has them. */
function shortened(line: string): string {
  const characters = [...line];
  if (characters.length <= LONGEST) return line;
  const beginning = characters.slice(0, LONGEST - 1).join('');
  const blank = beginning.lastIndexOf(' ');
  return `${(blank > LONGEST / 2 ? beginning.slice(0, blank) : beginning).trimEnd()}…`;
}
