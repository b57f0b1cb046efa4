/** A certificate authority of a test's own, by openssl, as docs/operations/temporal-cluster.md makes one. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

export interface Authority {
  /** Its own certificate. */
  readonly ca: string;
  /** Paths of a certificate for this name, of a server or a client. */
  issue(name: string): Certificate;
}

export function createAuthority(dir: string, name: string): Authority {
  const file = (what: string): string => join(dir, `${name}-${what}`);
  const openssl = (...args: readonly string[]): void => {
    const { status, stderr, error } = spawnSync('openssl', args, { encoding: 'utf8' });
    if (status !== 0) throw new Error(`openssl ${args.join(' ')}: ${error?.message ?? stderr}`);
  };
  const keyed = (path: string): readonly string[] => ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', path];
  const [ca, caKey] = [file('ca.pem'), file('ca.key')];
  openssl('req', '-x509', ...keyed(caKey), '-out', ca, '-days', '2', '-subj', `/CN=${name}`);
  return {
    ca,
    issue(of) {
      const [cert, key, request, extensions] = [file(`${of}.pem`), file(`${of}.key`), file(`${of}.csr`), file(`${of}.ext`)];
      writeFileSync(extensions, `subjectAltName=DNS:${of}\nextendedKeyUsage=serverAuth,clientAuth\n`);
      openssl('req', ...keyed(key), '-out', request, '-subj', `/CN=${of}`);
      openssl(
        'x509',
        '-req',
        '-in',
        request,
        '-CA',
        ca,
        '-CAkey',
        caKey,
        '-CAcreateserial',
        '-out',
        cert,
        '-days',
        '2',
        '-extfile',
        extensions,
      );
      return { cert, key };
    },
  };
}
