/** What addresses and secrets of webhooks may be, in a variable as in a file. */

/** `user:password@` would stand in the address of each request, which `fetch` refuses. */
export function isWebhookUrl(value: string): boolean {
  if (!URL.canParse(value)) return false;
  const { protocol, username, password } = new URL(value);
  return /^https?:$/.test(protocol) && username + password === '';
}

export const WEBHOOK_URL = 'a URL that begins with http:// or https://, without a user in it';
export const WEBHOOK_SECRET = 'whsec_ and the base64 of 24 to 64 bytes, such as what `openssl rand -base64 32` prints';

/** Several while one takes the place of another. */
export function secretsIn(text: string): string[] {
  return text.split(/[\s,]+/).filter((one) => one !== '');
}

export function isWebhookSecret(secret: string): boolean {
  const [, base64 = ''] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret) ?? [];
  const { length } = Buffer.from(base64, 'base64');
  return length >= 24 && length <= 64;
}
