/**
 * What leaves this machine by an address or an argument is looked at for secrets: those that are known here by their values, what looks
 * like a token of a well-known kind, and what is too random to be a word. No more than that: a secret written in words is not found.
 */
import { REDACTED, withoutEscapes, type KnownSecrets } from '../platform/known-secrets.js';
import type { Examined } from './tool.js';

/** By their prefix and length, as those who give them out write them. */
const TOKENS: readonly (readonly [what: string, pattern: RegExp])[] = [
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
const LEAST_BITS = 4.2;

export interface Leaving {
  /** For a person; without the secret. */
  readonly what: string;
  /** Known by its value or its form, and not only by chance. */
  readonly isSure: boolean;
}

export function secretLeaving(text: string, known?: Pick<KnownSecrets, 'isIn'>): Leaving | undefined {
  if (known?.isIn(text)) return { what: 'a secret that this program was given', isSure: true };
  const read = [text, withoutEscapes(text)];
  const token = TOKENS.find(([, pattern]) => read.some((one) => pattern.test(one)));
  if (token) return { what: `what looks like ${token[0]}`, isSure: true };
  if ((text.match(RANDOM) ?? []).some(isRandom)) return { what: 'what looks like a random token', isSure: false };
  return undefined;
}

/** What a tool says of a call that carries such. Where that is only likely, a rule that allows the call goes first. */
export function examineLeaving(text: string, to: string, known?: Pick<KnownSecrets, 'isIn'>): Examined {
  const leaving = secretLeaving(text, known);
  if (!leaving) return {};
  return { asks: { why: `it would send ${leaving.what} to ${to}`, ...(leaving.isSure && { overRules: true }) } };
}

/** For what is sent without anybody being asked. */
export function withoutSecrets(text: string, known: Pick<KnownSecrets, 'text'>): string {
  return TOKENS.reduce((rest, [, pattern]) => rest.replace(new RegExp(pattern.source, 'g'), REDACTED), known.text(text));
}

/** Letters of both cases and digits in no order; neither a name of parts, nor hex, nor a UUID. */
function isRandom(token: string): boolean {
  if (!/[a-z]/.test(token) || !/[A-Z]/.test(token) || !/\d/.test(token)) return false;
  if (/^[0-9a-fA-F-]+$/.test(token)) return false;
  const parts = token.split(/[-_+=]+/).flatMap((part) => part.match(/[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+/g) ?? []);
  // `How-To-Set-Up-Node20-In2024` and `getUserById2FromCache` are made of words.
  if (token.length / Math.max(1, parts.length) >= 3.5) return false;
  return bitsPerCharacter(token) >= LEAST_BITS;
}

/** Shannon's entropy. */
function bitsPerCharacter(text: string): number {
  const counts = new Map<string, number>();
  for (const character of text) counts.set(character, (counts.get(character) ?? 0) + 1);
  return [...counts.values()].reduce((bits, count) => bits - (count / text.length) * Math.log2(count / text.length), 0);
}
