/**
 * What leaves this machine by an address or an argument is looked at for secrets: those that are known here by their values, what looks
 * like a token of a well-known kind, and what is too random to be a word. No more than that: a secret written in words is not found.
 */
import { REDACTED, withoutEscapes, type KnownSecrets } from '../platform/known-secrets.js';
import { hasRandomToken, SECRET_FORMS, withoutSecretForms } from '../records/secret-forms.js';
import type { Examined } from './tool.js';

export interface Leaving {
  /** For a person; without the secret. */
  readonly what: string;
  /** Known by its value or its form, and not only by chance. */
  readonly isSure: boolean;
}

export function secretLeaving(text: string, known?: Pick<KnownSecrets, 'isIn'>): Leaving | undefined {
  if (known?.isIn(text)) return { what: 'a secret that this program was given', isSure: true };
  const read = [text, withoutEscapes(text)];
  const token = SECRET_FORMS.find(([, pattern]) => read.some((one) => pattern.test(one)));
  if (token) return { what: `what looks like ${token[0]}`, isSure: true };
  if (hasRandomToken(text)) return { what: 'what looks like a random token', isSure: false };
  return undefined;
}

/** What a tool says of a call that carries such. Where that is only likely, a rule that allows the call goes first. */
export function examineLeaving(text: string, to: string, known?: Pick<KnownSecrets, 'isIn'>): Examined {
  const leaving = secretLeaving(text, known);
  if (!leaving) return {};
  return { asks: { why: `it would send ${leaving.what} to ${to}`, ...(leaving.isSure && { overRules: true }) } };
}

/** For what is sent without a person's approval. */
export function withoutSecrets(text: string, known: Pick<KnownSecrets, 'text'>): string {
  return withoutSecretForms(known.text(text), REDACTED);
}
