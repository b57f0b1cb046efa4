/** What a secret looks like whose value no setting names: a token of a well-known kind, or what is too random to be a word. Pure. */

/** By their prefix and length, as those who give them out write them. */
export const SECRET_FORMS: readonly (readonly [what: string, pattern: RegExp])[] = [
  ['a key of Anthropic', /\bsk-ant-[\w-]{16,}/],
  ['a key of OpenAI or the like', /\bsk-(?:proj-|svcacct-|or-v1-)?[A-Za-z0-9_-]{20,}/],
  ['a token of GitHub', /\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{40,})/],
  ['a token of GitLab', /\bgl(?:pat|dt|rt|ptt|cbt|oas)-[\w-]{20,}/],
  ['a key of AWS', /\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b/],
  ['a key of Google', /\bAIza[\w-]{35}|\bya29\.[\w-]{20,}|\bGOCSPX-[\w-]{20,}/],
  ['a token of Slack', /\bxox[abeoprs]-[\w-]{10,}|\bxapp-\d-[\w-]{10,}|hooks\.slack\.com\/services\/T\w+\/B\w+\/\w{16,}/],
  ['a key of Stripe', /\b(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}|\bwhsec_[A-Za-z0-9]{24,}/],
  ['a token of npm', /\bnpm_[A-Za-z0-9]{36}\b/],
  ['a token of PyPI', /\bpypi-AgE[\w-]{40,}/],
  ['a token of Hugging Face', /\bhf_[A-Za-z0-9]{30,}/],
  ['a key of SendGrid, Twilio or Mailgun', /\bSG\.[\w-]{20,}\.[\w-]{20,}|\bSK[0-9a-f]{32}\b|\bkey-[0-9a-f]{32}\b/],
  ['a token of DigitalOcean, Shopify or Vault', /\bdop_v1_[0-9a-f]{60,}|\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}|\bhvs\.[\w-]{24,}/],
  ['a token of a bot of Telegram or Discord', /\b\d{8,10}:AA[\w-]{33}\b|\b[MNO][\w-]{23,25}\.[\w-]{6}\.[\w-]{27,}/],
  ['a signed token (JWT)', /(?<![\w-])eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}/],
  ['a private key', /-----BEGIN(?: [A-Z]+){0,3} PRIVATE KEY(?:-----[^-]{0,20000})?/],
];

/** Characters: what is shorter is a word or a number, what is longer is data. */
const RANDOM = /[A-Za-z0-9_+=-]{24,200}/g;
const MIN_BITS = 4.2;

export function hasRandomToken(text: string): boolean {
  return (text.match(RANDOM) ?? []).some(isRandom);
}

/** Made once: each turn asks several times, and a replay again. */
const EVERYWHERE = SECRET_FORMS.map(([, pattern]) => new RegExp(pattern.source, 'g'));

export function withoutSecretForms(text: string, replacement: string): string {
  return EVERYWHERE.reduce((rest, pattern) => rest.replace(pattern, replacement), text);
}

/** Letters of both cases and digits in no order; neither a name of parts, nor hex, nor a UUID. */
function isRandom(token: string): boolean {
  if (!/[a-z]/.test(token) || !/[A-Z]/.test(token) || !/\d/.test(token)) return false;
  if (/^[0-9a-fA-F-]+$/.test(token)) return false;
  const parts = token.split(/[-_+=]+/).flatMap((part) => part.match(/[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+/g) ?? []);
  // `How-To-Set-Up-Node20-In2024` and `getUserById2FromCache` are made of words.
  if (token.length / Math.max(1, parts.length) >= 3.5) return false;
  return bitsPerCharacter(token) >= MIN_BITS;
}

/** Shannon's entropy. */
function bitsPerCharacter(text: string): number {
  const counts = new Map<string, number>();
  for (const character of text) counts.set(character, (counts.get(character) ?? 0) + 1);
  return [...counts.values()].reduce((bits, count) => bits - (count / text.length) * Math.log2(count / text.length), 0);
}

// The first words of a text, on one line, without what must not stand in a list: control characters, marks of Markdown, secrets by their
// form. Pure.

/** Of the text that is looked at. */
const READ = 4_000;
const REDACTED = '[redacted]';

interface FirstWords {
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
