/** Secrets that are known by their values are found in every spelling that they travel in, and nothing else is taken for one. */
import fc from 'fast-check';
import { createKnownSecrets, isSecretSetting, REDACTED } from '../../src/platform/known-secrets.js';

const secret = 'sk-test-Ab+/9"z \u00e9';
const known = createKnownSecrets([secret, 'abc', 'pass']);

test.each<[string, string]>([
  ['as it is', secret],
  ['in a URL', encodeURIComponent(secret)],
  ['in a URL, in lower case', encodeURIComponent(secret).replace(/%../g, (escape) => escape.toLowerCase())],
  ['with every byte escaped', Buffer.from(secret).toString('hex').replace(/../g, '%$&')],
  ['in JSON', JSON.stringify(secret).slice(1, -1)],
  ['in hex', Buffer.from(secret).toString('hex')],
  ['in upper hex', Buffer.from(secret).toString('hex').toUpperCase()],
  ['in base64', Buffer.from(secret).toString('base64')],
  ['in base64url', Buffer.from(secret).toString('base64url')],
])('%s', (_, spelled) => {
  expect(known.text(`a ${spelled} b`)).toMatch(/^a \[redacted\]\S{0,3} b$/);
  expect(known.isIn(`https://a.example/?q=${spelled}&r`)).toBe(true);
});

test('in base64 of any text around it, and no byte but those at its ends is left', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'binary' }),
      fc.string({ unit: 'binary' }),
      fc.constantFrom('base64' as const, 'base64url' as const),
      (before, after, how) => {
        const spelled = Buffer.from(`${before}${secret}${after}`).toString(how);
        expect(known.isIn(spelled)).toBe(true);
        const [left = '', right = ''] = known.text(spelled).split(REDACTED);
        expect(Buffer.from(left, how).toString()).not.toContain(secret.slice(0, 3));
        expect(right).not.toContain(Buffer.from(secret.slice(3)).toString(how).slice(0, 8));
      },
    ),
  );
});

test('with some of its letters escaped it is still on its way', () => {
  expect(known.isIn('https://a.example/%73k-test-Ab%2B%2f9%22z%20\u00e9')).toBe(true);
});

test('short ones are taken out as they are, held against nobody, and shorter ones left', () => {
  expect(known.text('a pass, abc')).toBe(`a ${REDACTED}, abc`);
  expect([known.isIn('a pass'), known.isIn('nothing of the kind'), known.isIn('')]).toEqual([false, false, false]);
});

test.each<[string, string, boolean]>([
  ['GITHUB_TOKEN', 'ghp_0123456789', true],
  ['AWS_SECRET_ACCESS_KEY', 'wJalrXUtnFEMI', true],
  ['x-api-key', '0123456789', true],
  ['Authorization', 'Bearer 0123456789', true],
  ['SSH_AUTH_SOCK', '/tmp/ssh-agent.1', false],
  ['KEYBOARD', 'german-de', false],
  ['PATH', 'somewhere', false],
  ['API_KEY', 'short', false],
])('the setting %s of %j is a secret: %p', (name, value, isSecret) => {
  expect(isSecretSetting(name, value)).toBe(isSecret);
});
