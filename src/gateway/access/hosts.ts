/**
 * Names by which the gateway may be reached. A page of another site may make its name lead to this machine (DNS rebinding): it sends that
 * name, and is refused. A page at another address sends its origin, and is refused unless the origin is allowed.
 */
const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];

export interface Hosts {
  isAllowedHost(host: string | undefined): boolean;
  /** Absent: not a browser, or the same site. */
  isAllowedOrigin(origin: string | undefined, host: string | undefined): boolean;
}

/** `names`: beside loopback, `name` or `name:port`; `origins`: such as `https://app.example`. */
export function createHosts({ names, origins }: { readonly names: readonly string[]; readonly origins: readonly string[] }): Hosts {
  const known = new Set([...LOOPBACK, ...names].map((name) => name.toLowerCase()));
  const allowed = new Set(origins.map((origin) => origin.toLowerCase()));
  return {
    isAllowedHost(host) {
      if (host === undefined) return false;
      const given = host.toLowerCase();
      return known.has(given) || known.has(given.replace(/:\d{1,5}$/, ''));
    },
    isAllowedOrigin(origin, host) {
      if (origin === undefined) return true;
      const given = origin.toLowerCase();
      if (allowed.has(given)) return true;
      return host !== undefined && (given === `http://${host.toLowerCase()}` || given === `https://${host.toLowerCase()}`);
    },
  };
}
