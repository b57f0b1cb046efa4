/**
 * Where content is encrypted, messages and stack traces of failures are content: they travel in a payload, which the codec encrypts (Temporal's
 * `encodeCommonAttributes`). The SDK loads this file by its path.
 */
import { DefaultFailureConverter } from '@temporalio/common';

export const failureConverter = new DefaultFailureConverter({ encodeCommonAttributes: true });
