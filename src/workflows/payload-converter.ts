/**
 * JSON, never throwing on input. A payload that cannot be decoded would fail the workflow task again and again, for ever
 * (measured); here it becomes a value that says so, and the handler that gets it refuses it by name. What is handed to a next run is marked
 * for the worker, which may have a key to sign it with.
 */
import { METADATA_ENCODING_KEY, type Payload, type PayloadConverter } from '@temporalio/common';
import { decode, encode } from '@temporalio/common/lib/encoding';
import { defaultPayloadConverter } from '@temporalio/common/lib/converter/payload-converter';
import { UNREADABLE } from '../conversation/protocol/schema.js';
import { isHandedOver, SEAL, SEAL_PROBLEM, withSealProblem } from '../conversation/protocol/state-seal.js';
import { errorMessage } from '../platform/errors.js';

export const payloadConverter: PayloadConverter = {
  toPayload(value) {
    const payload = defaultPayloadConverter.toPayload(value);
    return isHandedOver(value) ? { ...payload, metadata: { ...payload.metadata, [SEAL]: encode('') } } : payload;
  },
  fromPayload<T>(payload: Payload): T {
    try {
      const value = defaultPayloadConverter.fromPayload<T>(payload);
      const problem = payload.metadata?.[SEAL_PROBLEM];
      return problem ? withSealProblem(value, decode(problem).slice(0, 200)) : value;
    } catch (error) {
      return { [UNREADABLE]: `${encodingOf(payload)}: ${reasonOf(error)}` } as T;
    }
  },
};

function encodingOf(payload: Payload): string {
  const encoding = payload.metadata?.[METADATA_ENCODING_KEY];
  return encoding ? decode(encoding).slice(0, 64) : 'no encoding';
}

function reasonOf(error: unknown): string {
  return errorMessage(error).slice(0, 120);
}
