import type { PerduraClient } from '../../../src/client.js';

/** For routes that ask no client: whatever is asked of it fails the test. */
export const NO_CLIENT = new Proxy({} as PerduraClient, {
  get: (_client, name) => {
    throw new Error(`the client was asked for ${String(name)}`);
  },
});
