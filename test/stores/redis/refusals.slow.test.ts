/** A Redis that cannot be used says why, in a sentence with what to do, within ten seconds, with exit code 3: servers that are really so. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { toExitCode } from '../../../src/cli/terminal/exit.js';
import { createRedisStore } from '../../../src/stores/redis/index.js';
import { awaitRedis } from '../../../src/stores/redis/upkeep.js';
import { openRedisLink } from '../../../src/stores/redis/link.js';
import { freePort } from '../../../src/testing/temporal-server.js';
import { startRedis, type RedisServer, type RedisServerOptions } from '../../support/redis-server.js';
import { startPerdura } from '../../support/run-perdura.js';
import { aConversation, userEntry } from '../builders.js';

/** What a worker waits for, and the sentence beyond it. */
const PATIENCE_MS = 1_000;
let dir: string;
const servers: RedisServer[] = [];
const start = async (options?: RedisServerOptions): Promise<RedisServer> => {
  const server = await startRedis(options);
  servers.push(server);
  return server;
};
const ask = async (url: string, ...[name = '', ...rest]: string[]): Promise<void> => {
  const link = openRedisLink({ url, commandTimeoutMs: 5_000 });
  await link.redis.call(name, ...rest);
  await link.close();
};

beforeAll(async () => (dir = await mkdtemp(join(tmpdir(), 'perdura-redis-refusals-'))));
afterAll(async () => {
  await Promise.all(servers.map((server) => server.stop()));
  await rm(dir, { recursive: true, force: true });
});

async function refusalOf(url: string): Promise<string> {
  const error: unknown = await awaitRedis(url, PATIENCE_MS).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect([url, toExitCode(error)]).toEqual([url, 3]);
  const { message } = error as Error;
  expect(message).not.toContain('hunter2');
  return message;
}

const withoutScheme = (url: string): string => url.replace(/^redis:\/\//, '');

// Bounded by the time in which a sentence is promised.
describe('within ten seconds', () => {
  // clock: this is the time in which a sentence is promised
  jest.setTimeout(10_000);

  test.each(['redis://:hunter2@127.0.0.1:1', 'redis+cluster://:hunter2@127.0.0.1:1,127.0.0.1:2', 'redis+sentinel://127.0.0.1:1?name=m'])(
    '%s: nothing is there',
    async (url) => expect(await refusalOf(url)).toMatch(/ECONNREFUSED.*; see that redis runs and can be reached/),
  );

  test.each(['redis://no-such-host.invalid', 'redis+cluster://no-such-host.invalid', 'redis+sentinel://no-such-host.invalid?name=m'])(
    '%s: no such name',
    async (url) => expect(await refusalOf(url)).toMatch(/no-such-host\.invalid.*; see that redis runs/),
  );

  test('a replica takes no writes', async () => {
    const primary = await start();
    const replica = await start({ args: ['--replicaof', '127.0.0.1', String(primary.port), '--repl-diskless-sync-delay', '0'] });
    expect(await refusalOf(replica.url)).toMatch(/it is a replica, which takes no writes; point the redis url at the primary/);
    const store = createRedisStore({ url: replica.url });
    await expect(store.entries.record(aConversation(), [userEntry(1)])).rejects.toMatchObject({ name: 'StoreUnavailable' });
    await store.close();
  });

  test('a password is missing, or is another one, or the user may not', async () => {
    const acl = [
      '--user',
      'default',
      'off',
      '--user',
      'ada',
      'on',
      '>hunter2',
      '~perdura:*',
      '&*',
      '+@all',
      '--user',
      'eve',
      'on',
      '>hunter2',
    ];
    const { url } = await start({ args: acl });
    const at = withoutScheme(url);
    const modes = ['redis', 'redis+cluster'];
    for (const mode of modes) {
      expect(await refusalOf(`${mode}://${at}`)).toMatch(/NOAUTH.*; it asks for a password: put it into the redis url/);
      expect(await refusalOf(`${mode}://ada:hunter22@${at}`)).toMatch(/WRONGPASS.*; check user and password in the redis url/);
      expect(await refusalOf(`${mode}://eve:hunter2@${at}`)).toMatch(/NOPERM.*; its ACL does not allow this user the command/);
    }
    await awaitRedis(`redis://ada:hunter2@${at}`, 0);
  });

  test('half of the slots have no node', async () => {
    const { url } = await start({ args: ['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1'] });
    await ask(url, 'CLUSTER', 'ADDSLOTSRANGE', '0', '8191');
    const refusal = await refusalOf(url.replace('redis:', 'redis+cluster:'));
    expect(refusal).toMatch(
      /CLUSTERDOWN 8192 of its 16384 slots have no node; the cluster lacks a node: start it again, or give its slots to others/,
    );
  });

  test('a worker ends with such a sentence and exit code 3, and takes no work before', async () => {
    const { url } = await start({ args: ['--requirepass', 'hunter2'] });
    const { code, stderr } = await startPerdura({ dir, taskQueue: 'none' }, ['worker'], {
      env: { REDIS_URL: url, PERDURA_LOG_LEVEL: 'error' },
    }).ended;
    expect({ code, stderr }).toEqual({
      code: 3,
      stderr: expect.stringMatching(/^cannot reach the store that REDIS_URL names: .*NOAUTH.*put it into the redis url$/m) as string,
    });
  });

  test('what is no cluster, no Sentinel, or one node of a cluster', async () => {
    const [plain, node] = [await start(), await start({ args: ['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1'] })];
    await ask(node.url, 'CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
    expect(await refusalOf(plain.url.replace('redis:', 'redis+cluster:'))).toMatch(
      /cluster support disabled\)?; it is no cluster: begin the redis url with redis:/,
    );
    expect(await refusalOf(`${plain.url.replace('redis:', 'redis+sentinel:')}?name=m`)).toMatch(
      /; it is no Sentinel: begin the redis url with/,
    );
    expect(await refusalOf(node.url)).toMatch(/it is one node of a cluster; begin the redis url with redis\+cluster:/);
  });

  test('the certificate is for another name, or signed by nobody that is known; with both corrected it serves', async () => {
    const [key, crt, port] = [join(dir, 'redis.key'), join(dir, 'redis.crt'), await freePort()];
    await Promise.all([writeFile(key, KEY), writeFile(crt, CERTIFICATE)]);
    const tls = ['--tls-cert-file', crt, '--tls-key-file', key, '--tls-ca-cert-file', crt, '--tls-auth-clients', 'no'];
    const cluster = [
      '--cluster-enabled',
      'yes',
      '--tls-cluster',
      'yes',
      '--cluster-node-timeout',
      '500',
      '--cluster-announce-ip',
      '127.0.0.1',
    ];
    await start({ port, args: [...tls, ...cluster, '--port', '0', '--tls-port', String(port)] });
    const scheme = 'rediss+cluster://127.0.0.1';
    expect(await refusalOf(`${scheme}:${port}`)).toMatch(/self[- ]signed certificate.*; add \?ca=FILE to the redis url/);
    expect(await refusalOf(`${scheme}:${port}?ca=${crt}`)).toMatch(
      /altnames.*; correct the host in the redis url, or add \?servername=NAME/,
    );
    expect(await refusalOf(`redis+cluster://127.0.0.1:${port}`)).toMatch(/see that redis runs/);
    expect(await refusalOf(`${scheme}:${port}?ca=${join(dir, 'none')}`)).toMatch(
      /cannot read the file that \?ca= of the redis url names: ENOENT/,
    );
    const right = `${scheme}:${port}?ca=${crt}&servername=redis.example&timeout=3000`;
    await ask(right.replace('+cluster', ''), 'CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
    await awaitRedis(right, 5 * PATIENCE_MS);
    const store = createRedisStore({ url: right });
    await store.entries.record(aConversation(), [userEntry(1)]);
    await store.close();
  });
});

/** Of redis.example, for a hundred years; its key opens nothing. */
const CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBoTCCAUegAwIBAgIUY6jBM324a4TWTqhyGt1Ry3dnUEYwCgYIKoZIzj0EAwIw
GDEWMBQGA1UEAwwNcmVkaXMuZXhhbXBsZTAgFw0yNjExMjkxNzAyMDNaGA8yMTI2
MTEwNTE3MDIwM1owGDEWMBQGA1UEAwwNcmVkaXMuZXhhbXBsZTBZMBMGByqGSM49
AgEGCCqGSM49AwEHA0IABNT/WdBFHueH4a3RiDywWvTH3M41TAZ0dj8FvCaRtSLC
a0Jh5ked8am0nWo1rl/xA2LlxOHjKMZ4KaO4+z0lXXSjbTBrMB0GA1UdDgQWBBQO
oKX7sUSRifl5jNb/sGifII+BxjAfBgNVHSMEGDAWgBQOoKX7sUSRifl5jNb/sGif
II+BxjAPBgNVHRMBAf8EBTADAQH/MBgGA1UdEQQRMA+CDXJlZGlzLmV4YW1wbGUw
CgYIKoZIzj0EAwIDSAAwRQIgOvikp73S1q32Zh4eeQdej8xLkLgnrEFiUcUZUwHs
DxkCIQC4PNaFK7h5Sf1wmZ3EftQorDdSxUssrZ0yEzmxK1oFHg==
-----END CERTIFICATE-----
`;
const KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQghhXCxqSwRzG7+XjH
zKRA0il9CLve0Uj7d0wqu5s8aIihRANCAATU/1nQRR7nh+Gt0Yg8sFr0x9zONUwG
dHY/BbwmkbUiwmtCYeZHnfGptJ1qNa5f8QNi5cTh4yjGeCmjuPs9JV10
-----END PRIVATE KEY-----
`;
