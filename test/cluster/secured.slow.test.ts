/**
 * Clusters that do not let everyone in: by certificates of clients (mutual TLS), and by API keys, which the open server takes as tokens
 * (JWT) with permissions. Settings are Temporal's own, `TEMPORAL_TLS_*` and `TEMPORAL_API_KEY`, as for Temporal Cloud.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Connection, type ConnectionOptions } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import { createClient } from '../../src/client.js';
import { loadConfig } from '../../src/config.js';
import { createAuthority } from '../support/certificates.js';
import { answerTo, echo } from '../support/echo-model.js';
import { startMessagesApi, type MessagesApi } from '../support/provider-apis/messages-api.js';
import { runPerdura, startPerdura, type Ran } from '../support/run-perdura.js';
import { figure, seconds, until } from '../support/scene.js';
import { NO_CLUSTER, startCluster, type Cluster } from '../support/temporal-cluster.js';
import { startWorkerProcess } from '../support/worker-process.js';

type Settings = Readonly<Record<string, string>>;
type Access = Pick<ConnectionOptions, 'tls' | 'apiKey'>;

const NAME = 'temporal.test';
/** What hangs is ended; each case says how long it took. */
const HANGS_MS = 60_000;

if (NO_CLUSTER) test.skip(NO_CLUSTER, () => undefined);
else {
  const dir = mkdtempSync(join(tmpdir(), 'perdura-secured-'));
  const [ours, theirs] = [createAuthority(dir, 'ours'), createAuthority(dir, 'theirs')];
  const [server, client, stranger] = [ours.issue(NAME), ours.issue('client.test'), theirs.issue('stranger.test')];
  const serverTls = { certFile: server.cert, keyFile: server.key };
  /** How the cluster's own worker service reaches its frontends. */
  const inside = { serverName: NAME, rootCaFiles: [ours.ca] };
  const trusting = { serverNameOverride: NAME, serverRootCACertificate: readFileSync(ours.ca) };
  const toTls = (address: string): Settings => ({
    ...{ TEMPORAL_ADDRESS: address, TEMPORAL_TLS_SERVER_NAME: NAME, TEMPORAL_TLS_SERVER_CA_CERT_PATH: ours.ca },
  });

  let api: MessagesApi;
  beforeAll(async () => {
    mkdirSync(join(dir, 'agents', 'default'), { recursive: true });
    writeFileSync(join(dir, 'agents', 'default', 'agent.json'), '{}');
    api = await startMessagesApi({ answer: (request) => echo(request) });
  });
  afterAll(async () => {
    await api.close();
    rmSync(dir, { recursive: true, force: true });
  });

  /** A worker, a client and commands with these settings: a message is answered, and the list has it. */
  const talk = async (settings: Settings, id: string): Promise<void> => {
    const env = {
      ...{ ANTHROPIC_BASE_URL: api.url, ANTHROPIC_API_KEY: 'test', PERDURA_TASK_QUEUE: 'secured' },
      PERDURA_AGENTS_DIR: join(dir, 'agents'),
      ...{ PERDURA_MEMORY_DIR: join(dir, settings['TEMPORAL_NAMESPACE'] ?? 'memory'), ...settings },
    };
    const worker = startWorkerProcess({ env, cwd: dir });
    const perdura = await createClient(loadConfig(env, dir));
    try {
      await worker.ready;
      expect(await perdura.send(id, 'hello', { start: {} })).toMatchObject({ text: answerTo('hello'), stopReason: 'end' });
      await until('it in the list', async () => (await perdura.list({ limit: 10 })).some((one) => one.id === id));
    } finally {
      await perdura.close();
      await worker.stop();
    }
  };
  const ran = (settings: Settings, args: readonly string[]): Promise<Ran> =>
    runPerdura({ dir, taskQueue: 'secured' }, args, { env: settings });
  const refuses = async (what: string, settings: Settings, message: RegExp, commands = ['list', 'serve', 'worker']): Promise<void> => {
    const env = { ...settings, PERDURA_LOG_LEVEL: 'error' };
    for (const command of commands) {
      const begin = Date.now();
      const running = startPerdura({ dir, taskQueue: 'secured' }, [command, ...(command === 'serve' ? ['--port', '0'] : [])], { env });
      const timer = setTimeout(() => running.kill('SIGKILL'), HANGS_MS);
      const { code, stderr } = await running.ended;
      clearTimeout(timer);
      figure(`${what}: perdura ${command} ended with ${code} after ${seconds(Date.now() - begin)}`);
      expect([command, code, stderr]).toEqual([command, 3, expect.stringMatching(message)]);
    }
  };

  describe('mutual TLS', () => {
    let cluster: Cluster;
    let plain: Settings;
    let good: Settings;
    const access: Access = { tls: { ...trusting, clientCertPair: { crt: readFileSync(client.cert), key: readFileSync(client.key) } } };
    beforeAll(async () => {
      const frontend = { server: { ...serverTls, requireClientAuth: true, clientCaFiles: [ours.ca] }, client: inside };
      const systemWorker = { certFile: client.cert, keyFile: client.key, client: inside };
      cluster = await startCluster({ each: 1, tls: { frontend, systemWorker }, admin: access });
      plain = toTls(cluster.address);
      good = { ...plain, TEMPORAL_TLS_CLIENT_CERT_PATH: client.cert, TEMPORAL_TLS_CLIENT_KEY_PATH: client.key };
    });
    afterAll(() => cluster.stop());

    test('with a certificate a conversation goes on, and one of the same id in another namespace is another one', async () => {
      await talk(good, 'same-id');
      const connection = await Connection.connect({ ...access, address: cluster.address });
      await connection.workflowService.registerNamespace({ namespace: 'agents', workflowExecutionRetentionPeriod: msToTs('1 day') });
      await connection.close();
      const there = { ...good, TEMPORAL_NAMESPACE: 'agents' };
      await until('the namespace everywhere', async () => (await ran(there, ['list'])).code === 0);
      expect((await ran(there, ['list', '-o', 'json'])).stdout).not.toContain('same-id');
      await talk(there, 'same-id');
    });

    test('admin setup registers search attributes by the operator service, and sets the retention: of that namespace alone', async () => {
      const first = await ran(good, ['admin', 'setup']);
      expect(first).toMatchObject({ code: 0, stdout: expect.stringMatching(/registered AgentName, .*\nretention: set from 1 to 30 days/) });
      const again = await ran(good, ['admin', 'setup']);
      expect(again.stdout).toMatch(/all were registered already .*\nretention: is 30 days already/);
      const other = await ran({ ...good, TEMPORAL_NAMESPACE: 'agents' }, ['doctor']);
      expect(other.stdout).toMatch(/Namespace +agents, history is kept 1 day/);
      expect(other.stdout).toMatch(/not registered: AgentName/);
    });

    test('who is not let in reads why, from list, serve and worker: exit code 3', async () => {
      const unreachable = { ...good, TEMPORAL_ADDRESS: '127.0.0.1:1' };
      await refuses(
        'a wrong address',
        unreachable,
        /^cannot reach Temporal at 127\.0\.0\.1:1: nothing listens there; check TEMPORAL_ADDRESS/m,
      );
      await refuses('no TLS', { TEMPORAL_ADDRESS: cluster.address }, /: it speaks TLS alone; set TEMPORAL_TLS=true/);
      const misnamed = { ...good, TEMPORAL_TLS_SERVER_NAME: 'other.test' };
      await refuses(
        'a wrong name',
        misnamed,
        /: its certificate is for temporal\.test, and not for other\.test; set TEMPORAL_TLS_SERVER_NAME/,
      );
      await refuses('a wrong authority', { ...good, TEMPORAL_TLS_SERVER_CA_CERT_PATH: theirs.ca }, /set TEMPORAL_TLS_SERVER_CA_CERT_PATH/);
      await refuses('no client certificate', plain, /: it asks for a client's certificate .*; set TEMPORAL_TLS_CLIENT_CERT_PATH/);
      const strange = { ...good, TEMPORAL_TLS_CLIENT_CERT_PATH: stranger.cert, TEMPORAL_TLS_CLIENT_KEY_PATH: stranger.key };
      await refuses("a stranger's certificate", strange, /: it refuses this client's certificate .*; set TEMPORAL_TLS_CLIENT_CERT_PATH/);
      await refuses(
        'no such namespace',
        { ...good, TEMPORAL_NAMESPACE: 'nowhere' },
        /namespace nowhere: it does not exist; create it with/,
      );
    });
  });

  describe('API keys', () => {
    let cluster: Cluster;
    let keys: Server;
    let withKey: (key?: string) => Settings;
    let sign: (permissions: readonly string[], more?: { readonly expires?: string; readonly strange?: boolean }) => Promise<string>;
    beforeAll(async () => {
      const { exportJWK, generateKeyPair, SignJWT } = await import('jose');
      const [known, strange] = [await generateKeyPair('RS256', { extractable: true }), await generateKeyPair('RS256')];
      const jwk = { ...(await exportJWK(known.publicKey)), kid: 'ours', alg: 'RS256', use: 'sig' };
      keys = createServer((_, response) => response.end(JSON.stringify({ keys: [jwk] }))).listen(0, '127.0.0.1');
      await new Promise((resolve) => keys.once('listening', resolve));
      sign = (permissions, { expires = '1h', strange: isStrange = false } = {}) =>
        new SignJWT({ permissions })
          .setProtectedHeader({ alg: 'RS256', kid: 'ours' })
          .setSubject('perdura')
          .setIssuedAt()
          .setExpirationTime(expires)
          .sign(isStrange ? strange.privateKey : known.privateKey);
      const jwtKeyProvider = { keySourceURIs: [`http://127.0.0.1:${(keys.address() as AddressInfo).port}/`], refreshInterval: '1m' };
      cluster = await startCluster({
        each: 1,
        tls: { frontend: { server: serverTls, client: inside } },
        authorization: { jwtKeyProvider, permissionsClaimName: 'permissions', authorizer: 'default', claimMapper: 'default' },
        admin: { tls: trusting, apiKey: await sign(['temporal-system:admin', 'default:admin']) },
      });
      withKey = (key) => ({ ...toTls(cluster.address), ...(key !== undefined && { TEMPORAL_API_KEY: key }) });
    });
    afterAll(async () => {
      await cluster.stop();
      keys.close();
    });

    test('a key that may write in the namespace is all that a conversation needs', async () => {
      await talk(withKey(await sign(['default:write'])), 'by-key');
    });

    test('a key that may not register search attributes is told whom to ask; an administrator may', async () => {
      const refused = await ran(withKey(await sign(['default:write'])), ['admin', 'setup']);
      expect(refused).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/cannot register search attributes .*; ask who runs that server/),
      });
      const granted = await ran(withKey(await sign(['temporal-system:admin', 'default:admin'])), ['admin', 'setup']);
      expect(granted).toMatchObject({ code: 0, stdout: expect.stringContaining('registered AgentName') });
    });

    test('a key without permission is said, by list, serve and worker: exit code 3', async () => {
      const refusal =
        /does not open namespace default: the key in TEMPORAL_API_KEY does not allow that, or has expired .*; set one that may/;
      await refuses('no key', withKey(), /does not open namespace default: it asks for an API key .*; set TEMPORAL_API_KEY/);
      await refuses('a key that is none', withKey('no-token'), refusal);
      await refuses('a key of another namespace', withKey(await sign(['other:admin'])), refusal);
      await refuses('a key that has expired', withKey(await sign(['default:admin'], { expires: '-1h' })), refusal);
      await refuses('a key that another has signed', withKey(await sign(['default:admin'], { strange: true })), refusal);
    });

    test('a key that may only read lists conversations, and is no key for a worker', async () => {
      const reading = withKey(await sign(['default:read']));
      expect(await ran(reading, ['list'])).toMatchObject({ code: 0 });
      await refuses(
        'a key that may only read',
        reading,
        /does not let this worker take work in namespace default .*; set a TEMPORAL_API_KEY/,
        ['worker'],
      );
    });
  });
}
