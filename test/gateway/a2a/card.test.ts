/** Where the card says that the agent is: as its reader reaches it, by the word of proxies that are trusted and of no other. */
import { oneToken } from '../../../src/gateway/access/entrance.js';
import { serveGateway } from '../../../src/gateway/index.js';
import { unreachedClient } from '../../support/fake-client.js';

const FORWARDED = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'agents.example', 'x-forwarded-for': '203.0.113.7' };

test.each([
  ['a proxy that is trusted', ['127.0.0.1'], 'https://agents.example/a2a'],
  ['anybody', [], undefined],
])('behind %s', async (_who, trustedProxies, expected) => {
  const served = await serveGateway({
    ...{ client: unreachedClient().client, authenticate: oneToken('a-token-that-only-tests-have'), port: 0 },
    ...{ hosts: ['agents.example'], trustedProxies },
  });
  try {
    const response = await fetch(`${served.url}/.well-known/agent-card.json`, { headers: FORWARDED });
    const card = (await response.json()) as { supportedInterfaces: { url: string }[] };
    for (const { url } of card.supportedInterfaces) expect(url).toBe(expected ?? `${served.url}/a2a`);
    expect(response.headers.get('vary')).toContain('x-forwarded-host');
  } finally {
    await served.close();
  }
});
