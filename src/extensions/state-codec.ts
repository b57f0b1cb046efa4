/**
 * Signs what a run hands to the next and checks it before the next one reads it (PERDURA_SECRET): otherwise all who may start
 * workflows could let a forged one continue as a conversation, with any state. It works outside of the sandbox, on payloads as they
 * leave and enter the worker, so a hand-over is as clean as without it and no history has more than the signature.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Payload, PayloadCodec, SerializationContext } from '@temporalio/common';
import type { Secrets } from '../config/settings.js';
import { SEAL, SEAL_PROBLEM } from '../conversation/protocol/state-seal.js';
import { deriveKey } from '../platform/seal.js';

/** The first secret's key signs, each is good for a check. */
export function createStateCodec({ all, acceptsUnsigned }: Secrets): PayloadCodec {
  const keys = all.map((secret) => deriveKey(secret, 'state'));
  const [newest] = keys;
  const isSigned = (payload: Payload, context: SerializationContext | undefined, seal: Uint8Array): boolean =>
    keys.some((key) => {
      const wanted = sign(key, payload, context);
      return seal.length === wanted.length && timingSafeEqual(seal, wanted);
    });

  const checked = (payload: Payload, context: SerializationContext | undefined): Payload => {
    // An answer to an activity is nothing that a run was handed.
    if (context?.type !== 'workflow') return payload;
    const { [SEAL]: seal, [SEAL_PROBLEM]: _claimed, ...metadata } = payload.metadata ?? {};
    const isUnsigned = seal === undefined || seal === null || seal.length === 0;
    const problem = isUnsigned
      ? acceptsUnsigned
        ? undefined
        : 'it is not signed'
      : isSigned(payload, context, seal)
        ? undefined
        : 'its signature is not of a secret that this worker has';
    return { ...payload, metadata: problem === undefined ? metadata : { ...metadata, [SEAL_PROBLEM]: Buffer.from(problem) } };
  };

  return {
    encode: async (payloads, context) =>
      payloads.map((payload) => {
        if (newest === undefined || payload.metadata?.[SEAL] === undefined) return payload;
        return { ...payload, metadata: { ...payload.metadata, [SEAL]: sign(newest, payload, context) } };
      }),
    decode: async (payloads, context) => payloads.map((payload) => checked(payload, context)),
  };
}

/** Over the bytes as they travel. The state names its life, which is the run that its chain began with. */
function sign(key: Buffer, { data }: Payload, context: SerializationContext | undefined): Buffer {
  const place = JSON.stringify(context?.workflowId ?? '');
  return createHmac('sha256', key)
    .update(`perdura-state ${place} `)
    .update(data ?? '')
    .digest();
}
