/** Where a request comes from, whatever its headers claim. */
import { createProxies, toNetwork, parseProxy } from '../../../src/gateway/access/proxies.js';

const seen = (peer: string | undefined, headers: Record<string, string>, trusted: readonly string[] = ['10.0.0.0/8', 'fd00::/8']) =>
  createProxies(trusted)({
    url: 'http://own.example/',
    header: (name) => headers[name],
    ...(peer !== undefined && { peer }),
  });

const CLAIMS = {
  host: 'own.example',
  'x-forwarded-for': '203.0.113.9',
  'x-forwarded-proto': 'https',
  'x-forwarded-host': 'public.example',
};

test('of a trusted proxy all three count', () => {
  expect(seen('10.1.2.3', CLAIMS)).toEqual({ address: '203.0.113.9', host: 'public.example', isSecure: true });
  // As a socket that takes both kinds has it.
  expect(seen('::ffff:10.1.2.3', CLAIMS)).toMatchObject({ address: '203.0.113.9' });
  expect(seen('fd00::1', CLAIMS)).toMatchObject({ address: '203.0.113.9' });
});

test.each(['203.0.113.1', '11.0.0.1', '::1', 'fe80::1', 'nonsense', undefined])(
  'from %s they are claims, and count for nothing',
  (peer) => {
    expect(seen(peer, CLAIMS)).toEqual({ ...(peer !== undefined && { address: peer }), host: 'own.example', isSecure: false });
  },
);

test('without a named proxy none counts, loopback neither', () => {
  expect(seen('127.0.0.1', CLAIMS, [])).toEqual({ address: '127.0.0.1', host: 'own.example', isSecure: false });
});

test.each([
  ['what a client writes in front', '1.1.1.1, 203.0.113.9', '203.0.113.9'],
  ['a chain of trusted ones', '1.1.1.1, 203.0.113.9, 10.9.9.9, fd00::7', '203.0.113.9'],
  ['trusted ones alone', '10.9.9.9, 10.8.8.8', '10.9.9.9'],
  ['ports', '203.0.113.9:4711, [fd00::7]:80', '203.0.113.9'],
  ['nonsense before the last', 'nonsense, 10.9.9.9', '10.9.9.9'],
  ['nonsense as the last', '203.0.113.9, nonsense', '10.1.2.3'],
  ['nothing', '', '10.1.2.3'],
  ['thousands', `${'1.1.1.1, '.repeat(3_000)}203.0.113.9`, '203.0.113.9'],
])('%s: the client is the last that no trusted proxy is', (_what, forwarded, address) => {
  expect(seen('10.1.2.3', { ...CLAIMS, 'x-forwarded-for': forwarded })).toMatchObject({ address });
});

test('of many words for the protocol and the host the nearest proxy’s counts', () => {
  const given = { ...CLAIMS, 'x-forwarded-proto': 'https, http', 'x-forwarded-host': 'evil.example, public.example' };
  expect(seen('10.1.2.3', given)).toMatchObject({ isSecure: false, host: 'public.example' });
});

test.each(['10.0.0.0/33', '10.0.0', 'localhost', '', '::/129', '10.0.0.0/8/8'])('%j is no range', (text) => {
  expect(() => parseProxy(text)).toThrow('is no range of addresses: write such as 10.0.0.0/8');
});

test('who has a network of IPv6 addresses is counted once', () => {
  expect(toNetwork('2001:db8:1:2:3:4:5:6')).toBe(toNetwork('2001:db8:1:2::ffff'));
  expect(toNetwork('2001:db8:1:3::1')).not.toBe(toNetwork('2001:db8:1:2::1'));
  expect(toNetwork('::ffff:192.0.2.1')).toBe('192.0.2.1');
  expect(toNetwork(undefined)).toBe('unknown');
});
