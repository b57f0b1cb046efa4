/**
 * Encryption of what Temporal keeps: inputs, results, signals, updates, queries' answers, memos, summaries, heartbeats and the words of failures.
 * An encrypted payload has the form of Temporal's samples of codecs, so that programs in other languages can read it: `encoding` is
 * `binary/encrypted`, `encryption-key-id` names the key, and the data is nonce, ciphertext and tag of the payload as protobuf. What comes in
 * plain, from a client that does not encrypt or from before, is taken as it is. Ids, types and search attributes are never encrypted:
 * Temporal looks for them.
 */
import { Client, type ConnectionLike } from '@temporalio/client';
import type { DataConverter, Payload, PayloadCodec } from '@temporalio/common';
import { temporal } from '@temporalio/proto';
import { decrypt, deriveAtRestKeys, encrypt, keyMissing, type AtRestKey } from '../../platform/at-rest.js';

export const ENCRYPTED = 'binary/encrypted';
const ENCODING = 'encoding';
const KEY_ID = 'encryption-key-id';
const Proto = temporal.api.common.v1.Payload;

/** `roots`: 32 bytes each, the newest first, which encrypts; each decrypts. Decoding throws `KeyMissing` and `SealBroken`. */
export function createEncryptionCodec(roots: readonly Uint8Array[]): PayloadCodec {
  const keys = deriveAtRestKeys(roots, 'temporal');
  const [newest] = keys;
  return {
    encode: async (payloads) => (newest === undefined ? payloads : payloads.map((payload) => toEncrypted(newest, payload))),
    decode: async (payloads) => payloads.map((payload) => toPlain(keys, payload)),
  };
}

function toEncrypted(key: AtRestKey, payload: Payload): Payload {
  return {
    metadata: { [ENCODING]: Buffer.from(ENCRYPTED), [KEY_ID]: Buffer.from(key.id) },
    data: encrypt(key, Proto.encode(payload).finish()),
  };
}

function toPlain(keys: readonly AtRestKey[], payload: Payload): Payload {
  if (textIn(payload, ENCODING) !== ENCRYPTED) return payload;
  const id = textIn(payload, KEY_ID) ?? '';
  const key = keys.find((one) => one.id === id);
  if (key === undefined) throw keyMissing(id.slice(0, 40), keys);
  return Proto.decode(decrypt(key, payload.data ?? new Uint8Array()));
}

function textIn({ metadata }: Payload, name: string): string | undefined {
  const value = metadata?.[name];
  return value ? Buffer.from(value).toString('utf8') : undefined;
}

/** For clients and workers; undefined where nothing is encrypted. Messages and stack traces of failures are encrypted with it too. */
export function encryptingConverter(roots: readonly Uint8Array[]): DataConverter | undefined {
  if (roots.length === 0) return undefined;
  return { payloadCodecs: [createEncryptionCodec(roots)], failureConverterPath: require.resolve('./failure-converter') };
}

const CONVERTER = Symbol('data converter');

type Encrypting = { [CONVERTER]?: DataConverter };

/** The same connection: clients of `openClient` encrypt on it, and histories that it fetches are plain. */
export function encryptOn<Connection extends ConnectionLike>(connection: Connection, roots: readonly Uint8Array[]): Connection {
  const converter = encryptingConverter(roots);
  const [codec] = converter?.payloadCodecs ?? [];
  if (converter === undefined || codec === undefined || CONVERTER in connection) return connection;
  const { workflowService: plain } = connection;
  const decoded =
    <Call extends (...args: never[]) => Promise<unknown>>(call: Call) =>
    async (...args: unknown[]) =>
      decodePayloads(codec, await (Reflect.apply(call, plain, args) as Promise<unknown>));
  const service: unknown = Object.create(plain, {
    getWorkflowExecutionHistory: { value: decoded(plain.getWorkflowExecutionHistory) },
    getWorkflowExecutionHistoryReverse: { value: decoded(plain.getWorkflowExecutionHistoryReverse) },
  });
  return Object.defineProperties(connection, {
    [CONVERTER]: { value: converter },
    workflowService: { value: service },
  });
}

/** Temporal's client on a connection, encrypting where the connection does. */
export function openClient({ connection, namespace }: { readonly connection: ConnectionLike; readonly namespace: string }): Client {
  const { [CONVERTER]: dataConverter } = connection as Encrypting;
  return new Client({ connection, namespace, ...(dataConverter && { dataConverter }) });
}

/** In place, in all that a history has. What this process has no key for stays as it is: what reads it says that it is no JSON. */
export async function decodePayloads<Value>(codec: PayloadCodec, value: Value): Promise<Value> {
  for (const { holder, name, payload } of findPayloads(value)) {
    const [plain] = await codec.decode([payload]).catch(() => [payload]);
    holder[name] = plain;
    if (name === 'encodedAttributes' && plain !== undefined && plain !== payload) showFailure(holder, plain);
  }
  return value;
}

interface Found {
  readonly holder: Record<string, unknown>;
  readonly name: string;
  readonly payload: Payload;
}

function findPayloads(value: unknown): Found[] {
  const found: Found[] = [];
  const waiting: unknown[] = [value];
  while (waiting.length > 0) {
    const holder = waiting.pop();
    if (typeof holder !== 'object' || holder === null || ArrayBuffer.isView(holder)) continue;
    for (const [name, one] of Object.entries(holder) as [string, unknown][]) {
      if (isEncrypted(one)) found.push({ holder: holder as Record<string, unknown>, name, payload: one });
      else waiting.push(one);
    }
  }
  return found;
}

function isEncrypted(value: unknown): value is Payload {
  if (typeof value !== 'object' || value === null || !('metadata' in value) || !('data' in value)) return false;
  return textIn(value as Payload, ENCODING) === ENCRYPTED;
}

/** As `DefaultFailureConverter` hides it, by `encodeCommonAttributes`. */
function showFailure(failure: Record<string, unknown>, { data }: Payload): void {
  const { message, stack_trace: stackTrace } = JSON.parse(Buffer.from(data ?? []).toString('utf8')) as Record<string, unknown>;
  Object.assign(failure, {
    ...(typeof message === 'string' && { message }),
    ...(typeof stackTrace === 'string' && { stackTrace }),
    encodedAttributes: undefined,
  });
}
