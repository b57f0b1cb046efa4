/** A store's own name, made once: it distinguishes two stores that are reached by the same address, and identifies one that is reached by two. */
import { randomInt } from 'node:crypto';

const DIGITS = '0123456789abcdefghijklmnopqrstuvwxyz';
const LENGTH = 6;

export function freshStoreId(): string {
  return Array.from({ length: LENGTH }, () => DIGITS[randomInt(DIGITS.length)]).join('');
}

export function isStoreId(text: string): boolean {
  return /^[0-9a-z]{6}$/.test(text);
}
