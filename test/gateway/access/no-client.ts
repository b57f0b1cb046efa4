import type { PerduraClient } from '../../../src/client.js';

/** For routes that ask no client: whatever is asked of it fails the test, but for where it is. */
export const NO_CLIENT = new Proxy({ namespace: 'none', taskQueue: 'none' } as PerduraClient, {
  get: (client, name) => {
    if (Object.hasOwn(client, name)) return client[name as 'namespace'];
    throw new Error(`the client was asked for ${String(name)}`);
  },
});
