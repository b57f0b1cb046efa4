/** The protocol's official library, loaded at its first request. */
import { A2A_PACKAGE, loadOptional } from '../../platform/optional-package.js';
import { toProblem } from '../core/errors.js';

export function loadSdk() {
  return loadOptional([A2A_PACKAGE], async () => {
    const [types, server, legacy, errors] = await Promise.all([
      import('@a2a-js/sdk'),
      import('@a2a-js/sdk/server'),
      import('@a2a-js/sdk/compat/v0_3/server'),
      import('@a2a-js/sdk/errors'),
    ]);
    return { types, server, legacy, errors };
  });
}

export type Sdk = Awaited<ReturnType<typeof loadSdk>>;

/** The error as one that the library knows; undefined where the client did not cause it. */
export function toRefusal({ errors }: Sdk, error: unknown): Error | undefined {
  if (error instanceof errors.A2AError) return error;
  const { status, message, type } = toProblem(error);
  if (status === 415) return new errors.ContentTypeNotSupportedError(message);
  if (status === 409 || type === 'unsupported') return new errors.UnsupportedOperationError(message);
  return status < 429 ? new errors.RequestMalformedError(message) : undefined;
}
