/** Temporal is not where the settings say, or does not let this client in. What speaks TLS here stands before the tests' own server. */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAuthority, type Certificate } from './certificates.js';
import { portOf } from './scene.js';
import { startTlsFront } from './tls-front.js';

type Settings = Readonly<Record<string, string>>;

export interface Unreachable {
  readonly dir: string;
  readonly cases: readonly UnreachableCase[];
  /** Of a client that is let in. */
  readonly good: Settings;
  close(): void;
}

export interface UnreachableCase {
  readonly what: string;
  readonly settings: Settings;
  /** What commands say of it. */
  readonly message: RegExp;
  /** It is known only once a connection has had its time. */
  readonly takesLong?: boolean;
}

const NAME = 'temporal.test';

export async function startUnreachable(): Promise<Unreachable> {
  const dir = mkdtempSync(join(tmpdir(), 'perdura-unreachable-'));
  const [ours, theirs] = [createAuthority(dir, 'ours'), createAuthority(dir, 'theirs')];
  const [server, client, stranger] = [ours.issue(NAME), ours.issue('client.test'), theirs.issue('stranger.test')];
  const target = portOf(process.env['PERDURA_TEST_ADDRESS'] ?? '');
  const [open, closed] = [await startTlsFront(target, server), await startTlsFront(target, server, ours)];
  const silent = createServer(() => undefined);
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const tls = { TEMPORAL_ADDRESS: open.address, TEMPORAL_TLS_SERVER_NAME: NAME, TEMPORAL_TLS_SERVER_CA_CERT_PATH: ours.ca };
  const certified = ({ cert, key }: Certificate): Settings => ({ TEMPORAL_TLS_CLIENT_CERT_PATH: cert, TEMPORAL_TLS_CLIENT_KEY_PATH: key });
  const cases: readonly UnreachableCase[] = [
    {
      what: 'an address where nothing listens',
      settings: { TEMPORAL_ADDRESS: '127.0.0.1:1' },
      message: /: nothing listens there; check TEMPORAL_ADDRESS/,
      takesLong: true,
    },
    {
      what: 'a host that does not exist',
      settings: { TEMPORAL_ADDRESS: 'no-such.invalid:7233' },
      message: /: (there is no host of that name|.* cannot be looked up now); check/,
      takesLong: true,
    },
    {
      what: 'a program that says nothing',
      settings: { TEMPORAL_ADDRESS: `127.0.0.1:${(silent.address() as AddressInfo).port}` },
      message: /^cannot reach Temporal at 127.*; check TEMPORAL_ADDRESS/m,
      takesLong: true,
    },
    {
      what: 'a namespace that does not exist',
      settings: { TEMPORAL_NAMESPACE: 'no-such' },
      message: /namespace no-such: it does not exist; create it with/,
    },
    {
      what: 'a server that speaks TLS, without TLS',
      settings: { TEMPORAL_ADDRESS: open.address },
      message: /: it speaks TLS alone; set TEMPORAL_TLS=true/,
    },
    {
      what: 'a server that does not speak TLS, with TLS',
      settings: { TEMPORAL_TLS: 'true' },
      message: /: it does not speak TLS \(\w+\); unset TEMPORAL_TLS/,
    },
    {
      what: 'a name that its certificate does not have',
      settings: { ...tls, TEMPORAL_TLS_SERVER_NAME: 'other.test' },
      message: /: its certificate is for temporal\.test, and not for other\.test; set TEMPORAL_TLS_SERVER_NAME/,
    },
    {
      what: 'an authority that did not make its certificate',
      settings: { ...tls, TEMPORAL_TLS_SERVER_CA_CERT_PATH: theirs.ca },
      message: /from an authority that is not trusted here \(\w+\); set TEMPORAL_TLS_SERVER_CA_CERT_PATH/,
    },
    {
      what: 'no certificate where one is wanted',
      settings: { ...tls, TEMPORAL_ADDRESS: closed.address },
      message: /: it asks for a client's certificate \(\w+\); set TEMPORAL_TLS_CLIENT_CERT_PATH/,
    },
    {
      what: 'a certificate of a stranger',
      settings: { ...tls, TEMPORAL_ADDRESS: closed.address, ...certified(stranger) },
      message: /: it refuses this client's certificate \(\w+\); set TEMPORAL_TLS_CLIENT_CERT_PATH/,
    },
  ];
  return {
    dir,
    cases,
    good: { ...tls, TEMPORAL_ADDRESS: closed.address, ...certified(client) },
    close() {
      open.close();
      closed.close();
      silent.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
