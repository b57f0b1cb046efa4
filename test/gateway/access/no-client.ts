import type { PerduraClient } from '../../../src/client.js';

const WHERE: Readonly<Record<string, string>> = { namespace: 'default', taskQueue: 'perdura' };

/** For routes that ask no client: it says where it is, and whatever else is asked of it fails the test. */
export const NO_CLIENT = new Proxy({} as PerduraClient, {
  get: (_client, name) => {
    const where = WHERE[String(name)];
    if (where !== undefined) return where;
    throw new Error(`the client was asked for ${String(name)}`);
  },
});
