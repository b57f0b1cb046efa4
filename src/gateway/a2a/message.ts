/** A client's message: words, data, files; and its settings. Pure. */
import { z } from 'zod';
import { type Message, ID_PATTERN, LIMITS } from '../../conversation/protocol/contract.js';
import type { JsonObject, JsonValue, MediaKind, MediaSource } from '../../records/message.js';
import { toFile } from '../core/attachments.js';
import { readAs } from '../core/read-body.js';
import { invalid } from '../core/errors.js';
import { MAX_CONTEXT } from './task-id.js';

const MAX_PARTS = 200;

/** As the library has read it. */
export interface GivenPart {
  readonly content?:
    | { readonly $case: 'text' | 'url'; readonly value: string }
    | { readonly $case: 'raw'; readonly value: Uint8Array }
    | { readonly $case: 'data'; readonly value: unknown };
  readonly mediaType: string;
  readonly filename?: string;
}
type Metadata = Readonly<Record<string, unknown>> | undefined;

export interface GivenMessage {
  readonly messageId: string;
  readonly contextId: string;
  readonly taskId: string;
  readonly role: number;
  readonly parts: readonly GivenPart[];
  readonly metadata: Metadata;
}

export interface ParsedRequest {
  readonly messageId: string;
  /** Empty: none was named. */
  readonly context: string;
  readonly task: string;
  readonly text: string;
  readonly data: readonly JsonValue[];
  readonly message: Message & { readonly id: string };
  readonly agent?: string;
}

const ROLE_USER = 1;
const metadata = z.looseObject({
  agent: z.string().regex(ID_PATTERN, 'is no name of an agent').optional(),
  output: z.record(z.string(), z.unknown()).optional(),
});

/** Throws a refusal that names the field. */
export function readRequest(given: GivenMessage | undefined, beside: Metadata): ParsedRequest {
  if (given === undefined) throw invalid('message is missing', 'message');
  const { messageId, contextId, taskId, role, parts } = given;
  if (messageId === '' || messageId.length > LIMITS.idLength)
    throw invalid(`message.messageId must have 1 to ${LIMITS.idLength} characters`);
  if (contextId.length > MAX_CONTEXT) throw invalid(`message.contextId may have ${MAX_CONTEXT} characters`);
  if (role !== ROLE_USER) throw invalid('message.role must be ROLE_USER');
  if (parts.length === 0 || parts.length > MAX_PARTS) throw invalid(`message.parts must have 1 to ${MAX_PARTS} parts`);
  const { agent, output } = readAs(metadata, { ...beside, ...given.metadata });
  const text = parts.flatMap(({ content }) => (content?.$case === 'text' ? [content.value] : [])).join('\n\n');
  const data = parts.flatMap(({ content }) => (content?.$case === 'data' ? [content.value as JsonValue] : []));
  const media: Partial<Record<MediaKind, MediaSource[]>> = {};
  for (const [at, part] of parts.entries()) {
    if (part.content === undefined) throw invalid(`message.parts.${at} has none of text, data, raw and url`);
    if (part.content.$case === 'text' || part.content.$case === 'data') continue;
    const { kind, source } = fileIn(part, at);
    (media[kind] ??= []).push(source);
  }
  return {
    messageId,
    context: contextId,
    task: taskId,
    text,
    data,
    message: {
      id: messageId,
      text,
      ...media,
      ...(data.length > 0 && { payload: data.length === 1 ? (data[0] ?? null) : data }),
      ...(output && { output: output as JsonObject }),
    },
    ...(agent !== undefined && { agent }),
  };
}

function fileIn({ content, mediaType, filename: name }: GivenPart, at: number): ReturnType<typeof toFile> {
  const url = content?.$case === 'raw' ? `data:;base64,${Buffer.from(content.value).toString('base64')}` : String(content?.value);
  return toFile({ mediaType, url, ...(name !== undefined && name !== '' && { name }) }, `message.parts.${at}`);
}
