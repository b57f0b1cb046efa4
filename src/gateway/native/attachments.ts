/** Files that are sent once, and named by their reference in a message of any protocol (core/attachments.ts). */
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from '@hono/zod-openapi';
import { requestSignal, type GatewayApp, type GatewayContext } from '../context.js';
import { UNTOLD } from '../core/attachments.js';
import { GatewayError, invalid } from '../core/errors.js';
import { add } from './operation.js';

const tag = 'attachments';
const ENDINGS: Readonly<Record<string, string>> = {
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'image/gif': 'gif',
  'image/webp': 'webp',
  'application/pdf': 'pdf',
  'text/plain': 'txt',
};

const onAttachment = z.object({ ref: z.string().max(100).openapi({ example: 'att_0123456789abcdef0123456789abcdef' }) });
const attachment = z
  .object({
    ref: z.string(),
    mediaType: z.string().openapi({ description: 'by the content' }),
    bytes: z.int(),
    sha256: z.string(),
    expiresAt: z.string().openapi({ description: 'from when it cannot be named any more; what a conversation has of it stays' }),
    used: z.boolean().openapi({ description: 'a conversation has it, and it goes with that' }),
  })
  .openapi('Attachment');

export function addAttachments(app: GatewayApp): void {
  add(app, {
    name: 'uploadFile',
    method: 'post',
    path: '/v1/attachments',
    tag,
    summary: 'Send a file, for messages that will name it',
    description:
      'The body is the file itself: PNG, JPEG, GIF or WebP, PDF, or text in UTF-8 or UTF-16, by its content. The answer’s `ref` can ' +
      'stand in a message of any protocol in place of bytes. The same file again is the same `ref`. One that no message names within 24 hours is gone. With `Content-Digest` ' +
      '(RFC 9530, sha-256) a file that came otherwise than it was sent is refused.',
    takesFile: true,
    status: 201,
    answer: attachment,
    async act({ client }, { context }) {
      const { silenceMs: _, ...options } = { ...context.get('uploads'), ...readDigest(context) };
      try {
        return await client.upload(arriving(context), options);
      } catch (error) {
        // The rest of the body is not read, so that nothing else can come on this connection.
        context.header('connection', 'close');
        throw error;
      }
    },
  });
  add(app, {
    name: 'getFile',
    method: 'get',
    path: '/v1/attachments/{ref}',
    tag,
    summary: 'What a file is',
    params: onAttachment,
    answer: attachment,
    act: ({ client }, { params: { ref } }) => client.uploaded(ref),
  });
  add(app, {
    name: 'downloadFile',
    method: 'get',
    path: '/v1/attachments/{ref}/content',
    tag,
    summary: 'The file itself',
    params: onAttachment,
    answersFile: [UNTOLD, ...Object.keys(ENDINGS)],
    async act({ client }, { params: { ref }, context }) {
      const { mediaType } = await client.uploaded(ref);
      const bytes = await client.uploadedBytes(ref);
      const ending = ENDINGS[mediaType];
      // Browsers show an uploaded file as a picture or save it, and never run it.
      return context.body(new Uint8Array(bytes), 200, {
        'content-type': ending === undefined ? UNTOLD : mediaType,
        'content-length': String(bytes.byteLength),
        'content-disposition': `attachment; filename="${ref}.${ending ?? 'bin'}"`,
        'x-content-type-options': 'nosniff',
        'content-security-policy': "default-src 'none'; sandbox",
        'cross-origin-resource-policy': 'same-origin',
        'cache-control': 'private, no-store',
      });
    },
  });
}

/** The body as it comes. Throws where it ends early, is silent, or is of another length than was announced. */
async function* arriving(context: GatewayContext): AsyncGenerator<Uint8Array> {
  const body = context.req.raw.body as ReadableStream<Uint8Array> | null;
  if (body === null) return;
  const announced = context.req.header('content-length');
  const { maxBytes, silenceMs } = context.get('uploads');
  // Not one byte of it is waited for.
  if (Number(announced) > maxBytes) throw tooLarge(maxBytes);
  const reader = body.getReader();
  const gone = requestSignal(context);
  let received = 0;
  try {
    for (;;) {
      const part = await readPart(reader, { received, silenceMs, gone });
      if (part === undefined) break;
      received += part.byteLength;
      yield part;
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
  if (announced !== undefined && Number(announced) !== received) {
    throw invalid(`the file has ${received} bytes and Content-Length says ${announced.slice(0, 20)}: send it again`);
  }
}

async function readPart(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  { received, silenceMs, gone }: { readonly received: number; readonly silenceMs: number; readonly gone: AbortSignal },
): Promise<Uint8Array | undefined> {
  const waited = new AbortController();
  try {
    const silence = sleep(silenceMs, undefined, { signal: AbortSignal.any([waited.signal, gone]) });
    const read = await Promise.race([reader.read(), silence]);
    if (read !== undefined) return read.done ? undefined : read.value;
  } catch (error) {
    const message = `the file broke off after ${received} bytes; nothing of it is kept: send it again`;
    throw Object.assign(new GatewayError({ status: 400, type: 'invalid', message }), { cause: error });
  } finally {
    waited.abort();
  }
  const message = `nothing of the file came for ${silenceMs / 1000} seconds, after ${received} bytes; nothing of it is kept: send it again`;
  throw new GatewayError({ status: 408, type: 'timeout', message });
}

function tooLarge(maxBytes: number): GatewayError {
  const message = `a file may have ${maxBytes} bytes here; \`perdura serve --max-attachment\` sets that`;
  return new GatewayError({ status: 413, type: 'too-large', message });
}

/** `Content-Digest: sha-256=:…:`; other algorithms are not looked at. */
function readDigest(context: GatewayContext): { readonly sha256?: string } {
  const given = /(?:^|[,\s])sha-256=:([^:]{0,100}):/.exec(context.req.header('content-digest') ?? '')?.[1];
  return given === undefined ? {} : { sha256: Buffer.from(given, 'base64').toString('hex') };
}
