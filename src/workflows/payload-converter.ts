/**
 * JSON, never throwing on input. A payload that cannot be decoded would fail the workflow task again and again, for ever
 * (measured); here it becomes a value that says so, and the handler that gets it refuses it by name.
 */
import { METADATA_ENCODING_KEY, type Payload, type PayloadConverter } from '@temporalio/common';
import { decode } from '@temporalio/common/lib/encoding';
import { defaultPayloadConverter } from '@temporalio/common/lib/converter/payload-converter';
import { UNREADABLE } from '../conversation/protocol/fields.js';

export const payloadConverter: PayloadConverter = {
  toPayload: (value) => defaultPayloadConverter.toPayload(value),
  fromPayload<T>(payload: Payload): T {
    try {
      return defaultPayloadConverter.fromPayload<T>(payload);
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
  return (error instanceof Error ? error.message : String(error)).slice(0, 120);
}
