/** An archive in a bucket of S3, or of what speaks as S3 does. Requests are signed by aws4fetch, which is an optional peer. */
import type { AwsClient } from 'aws4fetch';
import { errorCode } from '../../platform/errors.js';
import { loadOptional, S3_PACKAGE } from '../../platform/optional-package.js';
import { timeoutSignal } from '../../platform/promises.js';
import type { ArchivedObject, ArchivePlace } from '../whole-ports.js';
import { archiveUnavailable } from './place.js';

export interface S3Settings {
  readonly bucket: string;
  /** Of all names; without slashes at its ends. */
  readonly prefix: string;
  /** Default: Amazon's of the region. */
  readonly endpoint?: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

/** Of one object, which has a few MiB. */
const REQUEST_MS = 60_000;
const ATTEMPTS = 3;

export function createS3Archive(settings: S3Settings): ArchivePlace {
  const { bucket, prefix, endpoint, region, accessKeyId, secretAccessKey, sessionToken } = settings;
  const where = `s3://${[bucket, prefix].filter((part) => part !== '').join('/')}`;
  // With the bucket in the path: what speaks as S3 does knows that everywhere.
  const root = `${(endpoint ?? `https://s3.${region}.amazonaws.com`).replace(/\/+$/, '')}/${encodeURIComponent(bucket)}`;
  let client: Promise<AwsClient> | undefined;
  const open = (): Promise<AwsClient> =>
    (client ??= loadOptional([S3_PACKAGE], async () => {
      const { AwsClient: Client } = await import('aws4fetch');
      return new Client({ accessKeyId, secretAccessKey, sessionToken, region, service: 's3', retries: 0 });
    }));
  const toKey = (name: string): string => (prefix === '' ? name : `${prefix}/${name}`);
  const toUrl = (name: string): string => `${root}/${toKey(name).split('/').map(encodeURIComponent).join('/')}`;

  /** Tried again where the server says that it is busy, or says nothing. */
  const send = async (attempt: string, url: string, init: RequestInit): Promise<Response> => {
    for (let tried = 1; ; tried += 1) {
      try {
        const response = await (await open()).fetch(url, { ...init, signal: timeoutSignal(REQUEST_MS) });
        if (response.ok || response.status === 404) return response;
        const text = await response.text();
        const refusal = new Error(`it answers ${response.status} ${/<Code>([^<]*)/.exec(text)?.[1] ?? response.statusText}`);
        if (response.status < 500 && response.status !== 429) throw Object.assign(refusal, { isFinal: true });
        throw refusal;
      } catch (error) {
        const isFinal = (error as { readonly isFinal?: unknown }).isFinal === true || (error as Error).name === 'MissingPackage';
        if (isFinal || tried === ATTEMPTS) throw archiveUnavailable(attempt, where, describeCause(error));
      }
    }
  };

  return {
    where,

    async put(name, bytes) {
      const response = await send('write an archive', toUrl(name), { method: 'PUT', body: new Uint8Array(bytes) });
      if (response.status === 404) throw archiveUnavailable('write an archive', where, new Error(`there is no bucket ${bucket}`));
      await response.arrayBuffer();
    },

    async get(name) {
      const response = await send('read an archive', toUrl(name), { method: 'GET' });
      const bytes = Buffer.from(await response.arrayBuffer());
      if (response.status !== 404) return bytes;
      // A bucket that is gone is no missing object.
      if (bytes.includes('NoSuchBucket')) throw archiveUnavailable('read an archive', where, new Error(`there is no bucket ${bucket}`));
      return undefined;
    },

    async *list(below) {
      let token: string | undefined;
      do {
        const query = new URLSearchParams({
          'list-type': '2',
          'encoding-type': 'url',
          prefix: toKey(below),
          ...(token !== undefined && { 'continuation-token': token }),
        });
        const response = await send('list archives', `${root}?${query.toString()}`, { method: 'GET' });
        const text = await response.text();
        if (response.status === 404) throw archiveUnavailable('list archives', where, new Error(`there is no bucket ${bucket}`));
        for (const [, content = ''] of text.matchAll(/<Contents>(.*?)<\/Contents>/gs)) {
          const object = readObject(content, prefix);
          if (object) yield object;
        }
        token = readElement(text, 'NextContinuationToken');
      } while (token !== undefined);
    },

    async remove(name) {
      await (await send('remove an archive', toUrl(name), { method: 'DELETE' })).arrayBuffer();
    },
  };
}

function readObject(content: string, prefix: string): ArchivedObject | undefined {
  const key = readElement(content, 'Key');
  if (key === undefined) return undefined;
  const name = decodeURIComponent(key.replaceAll('+', '%20'));
  return {
    name: prefix === '' ? name : name.slice(prefix.length + 1),
    bytes: Number(readElement(content, 'Size') ?? 0),
    at: Date.parse(readElement(content, 'LastModified') ?? '') || 0,
  };
}

/** Of an answer that is XML. Keys are percent-encoded in it, so that only tokens have entities. */
function readElement(xml: string, name: string): string | undefined {
  const text = new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1];
  return text?.replace(/&(lt|gt|quot|apos|amp);/g, (entity) => ENTITIES[entity] ?? entity);
}

const ENTITIES: Readonly<Record<string, string>> = { '&lt;': '<', '&gt;': '>', '&quot;': '"', '&apos;': "'", '&amp;': '&' };

/** `fetch` says in its cause what is wrong with the connection. */
function describeCause(error: unknown): unknown {
  const { cause } = (error ?? {}) as { readonly cause?: unknown };
  if (cause === undefined) return error;
  // Not by its class: `fetch` makes it elsewhere.
  const { message } = cause as { readonly message?: unknown };
  return new Error(typeof message === 'string' && message !== '' ? message : (errorCode(cause) ?? 'no answer'), { cause });
}
