/** A store's own name, made once: what tells two stores apart that are reached by the same words, and knows one by two. */
import { randomInt } from 'node:crypto';

const DIGITS = '0123456789abcdefghijklmnopqrstuvwxyz';
const LENGTH = 6;

export function freshStoreId(): string {
  return Array.from({ length: LENGTH }, () => DIGITS[randomInt(DIGITS.length)]).join('');
}

export function isStoreId(text: string): boolean {
  return /^[0-9a-z]{6}$/.test(text);
}
