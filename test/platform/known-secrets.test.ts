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

const long = 'sk-ant-api03-Zk9_q7Wm2LxT4vBn8RcY1dHs6JfPgKe3UaXo5iEw0QtVyNlMbCzDrSuIhGpOjA';
const holder = createKnownSecrets([long]);
const lines = (value: string, width: number, end = '\n'): string => value.replace(new RegExp(`.{${width}}(?=.)`, 'g'), `$&${end}`);
const base64 = Buffer.from(`key=${long};`).toString('base64');
const hex = Buffer.from(long).toString('hex');

test.each<[string, string]>([
  ['base64 in lines', lines(base64, 76)],
  ['base64 in lines of Windows, indented', lines(base64, 40, '\r\n  ')],
  ['base64 in lines, in JSON', JSON.stringify(lines(base64, 76))],
  ['base64 in a URL', encodeURIComponent(Buffer.from(`\u00ff\u00fe?>${long}`).toString('base64'))],
  ['hex in lines', lines(hex, 60)],
  ['hex in pairs', hex.replace(/..(?=.)/g, '$& ')],
  ['hex with colons', hex.toUpperCase().replace(/..(?=.)/g, '$&:')],
  ['hex in a source', hex.replace(/../g, '0x$&, ')],
  ['hex in a string', hex.replace(/../g, '\\x$&')],
  ['hex in a string, in JSON', JSON.stringify(hex.replace(/../g, '\\x$&'))],
  ['escapes of JSON', [...long].map((one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')],
  ['JSON in JSON', JSON.stringify(JSON.stringify(`"${long}"`))],
  ['invisible characters', long.replace(/.{9}/g, '$&\u200b')],
  ['cut off', `${long.slice(0, 60)}…`],
])('a long one: %s', (_, spelled) => {
  const shown = holder.redact(`before ${spelled} after`);
  expect(shown).toContain(REDACTED);
  expect(shown.length).toBeLessThan(90);
  expect(shown).toMatch(/^before .* after$/s);
  expect(holder.isIn(spelled)).toBe(true);
});

test('reversed, or with words in between, it is not found', () => {
  const reversed = [...long].reverse().join('');
  const split = `${long.slice(0, 30)} and then ${long.slice(30, 60)}`;
  expect([holder.redact(reversed), holder.redact(split)]).toEqual([reversed, split]);
});

test('of what conversations keep, one word and what is short are left: they are there by chance', () => {
  const words = createKnownSecrets(['postgres', 'pass', '20261127', 'hunter2x']);
  expect(words.redact('postgres, pass and hunter2x since 20261127')).toBe(`postgres, pass and ${REDACTED} since 20261127`);
  expect(words.text('postgres, pass and hunter2x since 20261127')).toBe(`${REDACTED}, ${REDACTED} and ${REDACTED} since ${REDACTED}`);
});

test('an address is taken out as a whole: others begin as it does', () => {
  const hook = createKnownSecrets(['https://hooks.example.com/services/T01/B02/x7Yz9Qw3']);
  expect(hook.redact('see https://hooks.example.com/services/T01/B02/x7Yz9Qw3 or https://hooks.example.com/services/about')).toBe(
    `see ${REDACTED} or https://hooks.example.com/services/about`,
  );
});

test('in every text of a value, and a value that has none is the same', () => {
  const clean = { a: ['b', 1, null], c: { d: true } };
  expect(holder.redactIn(clean)).toBe(clean);
  expect(holder.redactIn({ [long]: [`x${long}`, 2], at: new Date(0) })).toEqual({ [REDACTED]: [`x${REDACTED}`, 2], at: new Date(0) });
});

test('in pieces of any length the same is taken out as in the whole, and nothing of it is shown before', () => {
  const spelled = fc.constantFrom(
    ...[long, base64, lines(base64, 20), hex, hex.replace(/../g, '\\x$&'), encodeURIComponent(long), long.replace(/.{9}/g, '$&\u200b')],
    ...[hex.replace(/../g, '%$&'), JSON.stringify(lines(base64, 76)), long.slice(0, 50), hex.replace(/../g, '0x$&, ')],
  );
  const between = fc.constantFrom('', ' ', 'sk-ant-', 'the key ', '\n', '%', '\\', '736b', 'a0', '\ud83d\ude00', base64.slice(0, 30));
  const parts = fc.array(fc.tuple(between, spelled, between), { maxLength: 3 });
  fc.assert(
    fc.property(parts, fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 30 }), (all, sizes) => {
      const whole = all.flat().join('');
      const followed = holder.follow();
      const shown: string[] = [];
      for (let at = 0, i = 0; at < whole.length; i++) {
        const size = sizes[i % sizes.length] ?? 1;
        shown.push(followed.push(whole.slice(at, at + size)));
        at += size;
      }
      shown.push(followed.end());
      expect(shown.join('')).toBe(holder.redact(whole));
    }),
    { numRuns: 150 },
  );
});

test('what cannot be the beginning of one is shown at once', () => {
  const followed = holder.follow();
  expect([followed.push('The answer is '), followed.push('s'), followed.push('k'), followed.push('y.'), followed.end()]).toEqual([
    ...['The answer is ', '', '', 'sky.', ''],
  ]);
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
