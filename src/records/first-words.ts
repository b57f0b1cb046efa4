/** The first words of a text, on one line, without what must not stand in a list: control characters, marks of Markdown, secrets by their form. Pure. */
import { hasRandomToken, SECRET_FORMS, withoutSecretForms } from './secret-forms.js';

/** Of the text that is looked at. */
const READ = 4_000;
const REDACTED = '[redacted]';

export interface FirstWords {
  /** Characters of the answer. */
  readonly longest: number;
  /** Characters of the text that are looked at; default 4,000. */
  readonly read?: number;
  /** Takes out the secrets that are known by their values. */
  readonly withoutKnown?: (text: string) => string;
}

/** Undefined where nothing is left of it that says something. */
export function firstWords(text: string, { longest, read = READ, withoutKnown = (all) => all }: FirstWords): string | undefined {
  // What a cut would leave half of is no secret any more that could be recognised: first taken out, then cut.
  const safe = withoutSecretForms(withoutKnown(text.slice(0, read)), REDACTED);
  const line = safe
    .replace(/[\p{C}\p{Z}\s]+/gu, ' ')
    .replace(/^[\s#>*_`~-]+/, '')
    .trim();
  const words = shortened(line, longest);
  const says = words.replaceAll(REDACTED, '');
  if (!/[\p{L}\p{N}]/u.test(says) || hasRandomToken(words) || SECRET_FORMS.some(([, form]) => form.test(words))) return undefined;
  return words;
}

/** At a blank, where there is one late enough: not every language has them. */
function shortened(line: string, longest: number): string {
  const characters = [...line];
  if (characters.length <= longest) return line;
  const beginning = characters.slice(0, longest - 1).join('');
  const blank = beginning.lastIndexOf(' ');
  return `${(blank > longest / 2 ? beginning.slice(0, blank) : beginning).trimEnd()}…`;
}
