/** Clients of other people's before a gateway in the process of the test. */
import type { GatewayApp } from '../../src/gateway/context.js';

/** Their `fetch`: a request goes to the app as if it had come over HTTP. */
export function fetchInto(app: GatewayApp): typeof fetch {
  return async (input, init) => {
    const request = new Request(input, init);
    const headers = new Headers(request.headers);
    headers.set('host', 'localhost');
    return app.fetch(new Request(request, { headers }));
  };
}
