/** Long texts travel by reference: to the store first, then as `{ ref, sha256, bytes, preview }` (design section 2). */
import { createHash } from 'node:crypto';
import { withSortedKeys } from '../platform/json.js';
import {
  pickMedia,
  sourcesIn,
  isBodyRef,
  type AssistantBlock,
  type Body,
  type ConversationMessage,
  type Entry,
  type JsonValue,
  type Media,
  type MediaSource,
} from '../records/message.js';
import type { ConversationKey, Store } from '../stores/store.js';

/** UTF-8 bytes. */
export const TEXT_INLINE = 16 * 1024;
export const RESULT_INLINE = 4 * 1024;

export async function toBody(store: Store, key: ConversationKey, text: string, inline: number): Promise<Body> {
  return Buffer.byteLength(text) <= inline ? text : store.bodies.put(key, text);
}

/** Like `toBody`, but with the store away the text stays as it is and travels through history: an answer is never lost. */
export async function toBodyOrText(store: Store, key: ConversationKey, text: string, inline: number): Promise<Body> {
  try {
    return await toBody(store, key, text, inline);
  } catch {
    return text;
  }
}

export async function withLongBlocksStored(
  store: Store,
  key: ConversationKey,
  blocks: readonly AssistantBlock[],
): Promise<AssistantBlock[]> {
  return Promise.all(
    blocks.map(async (block): Promise<AssistantBlock> => {
      if (block.kind === 'text' && typeof block.text === 'string') {
        return { ...block, text: await toBodyOrText(store, key, block.text, TEXT_INLINE) };
      }
      if (block.kind !== 'tool-call') return block;
      const body = await toBodyOrText(store, key, JSON.stringify(block.input), TEXT_INLINE);
      return isBodyRef(body) ? { ...block, input: null, inputRef: body } : block;
    }),
  );
}

/** What is long goes to the store. `inline`: characters of base64. */
export async function mediaToRefs(store: Store, key: ConversationKey, media: Media, inline = TEXT_INLINE): Promise<Media> {
  return changed(media, async (source) => {
    if (!('base64' in source) || source.base64.length <= inline) return [source];
    const { ref } = await store.bodies.put(key, source.base64);
    return [{ mediaType: source.mediaType, ref }];
  });
}

/** Long conversations are mostly short messages: these cost nothing here, not even a promise. */
export function hasBodies(message: ConversationMessage): boolean {
  switch (message.role) {
    case 'user':
    case 'tool':
      return typeof message.text !== 'string' || sourcesIn(message).some(({ source }) => 'ref' in source);
    case 'assistant':
      return message.blocks.some((block) => (block.kind === 'text' ? typeof block.text !== 'string' : 'inputRef' in block));
  }
}

/** References to all that is stored elsewhere. */
export function listBodyRefs({ message }: Entry): string[] {
  const toRefs = (body: unknown): string[] =>
    typeof body === 'object' && body !== null && 'ref' in body && typeof body.ref === 'string' ? [body.ref] : [];
  switch (message.role) {
    case 'user':
      return [...toRefs(message.text), ...toRefs(message.tools), ...sourcesIn(message).flatMap(({ source }) => toRefs(source))];
    case 'tool':
      return [...toRefs(message.text), ...sourcesIn(message).flatMap(({ source }) => toRefs(source))];
    case 'assistant':
      return message.blocks.flatMap((block) =>
        block.kind === 'text' ? toRefs(block.text) : block.kind === 'tool-call' ? toRefs(block.inputRef) : [],
      );
  }
}

/** The message as the model must see it, with every text at hand. A body that the store has lost is named in its place. */
export async function withBodies(store: Store, key: ConversationKey, { message }: Pick<Entry, 'message'>): Promise<ConversationMessage> {
  switch (message.role) {
    case 'user':
    case 'tool':
      return { ...message, text: await readText(store, key, message.text), ...(await mediaFromRefs(store, key, message)) };
    case 'assistant':
      return {
        ...message,
        blocks: await Promise.all(
          message.blocks.map(async (block): Promise<AssistantBlock> => {
            if (block.kind === 'text') return { ...block, text: await readText(store, key, block.text) };
            return block.kind === 'tool-call' ? { ...block, input: await readInput(store, key, block) } : block;
          }),
        ),
      };
  }
}

export async function readInput(
  store: Store,
  key: ConversationKey,
  block: Extract<AssistantBlock, { kind: 'tool-call' }>,
): Promise<JsonValue> {
  if (!block.inputRef) return block.input;
  const text = await store.bodies.get(key, block.inputRef.ref);
  return text === undefined
    ? { _lost: `the arguments (${block.inputRef.bytes} bytes) are no longer in the store` }
    : (JSON.parse(text) as JsonValue);
}

export async function readText(store: Store, key: ConversationKey, body: Body): Promise<string> {
  if (typeof body === 'string') return body;
  const text = await store.bodies.get(key, body.ref);
  return text ?? `${body.preview}\n[The rest of this text, ${body.bytes} bytes in all, is no longer in the store.]`;
}

async function mediaFromRefs(store: Store, key: ConversationKey, media: Media): Promise<Media> {
  return changed(media, async (source) => {
    if (!('ref' in source)) return [source];
    const base64 = await store.bodies.get(key, source.ref);
    return base64 === undefined ? [] : [{ mediaType: source.mediaType, base64 }];
  });
}

async function changed(media: Media, change: (source: MediaSource) => Promise<readonly MediaSource[]>): Promise<Media> {
  const lists = await Promise.all(
    Object.entries(pickMedia(media)).map(async ([kind, list]) => [kind, (await Promise.all(list.map(change))).flat()] as const),
  );
  return Object.fromEntries(lists);
}

// The arguments of a call that waits for a person: they are in the store, with the answer that made the call.

/** Undefined where the store does not have it. */
export async function readArguments(
  store: Store,
  key: ConversationKey,
  { callId, askedIn }: { readonly callId: string; readonly askedIn: number },
): Promise<JsonValue | undefined> {
  const [entry] = await store.entries.read(key, [askedIn]);
  const blocks = entry?.message.role === 'assistant' ? entry.message.blocks : [];
  const block = blocks.find((one) => one.kind === 'tool-call' && one.callId === callId);
  return block?.kind === 'tool-call' ? readInput(store, key, block) : undefined;
}

/**
 * A call's tool and arguments, in 64 characters: SHA-256 of the tool's name and its arguments as JSON with sorted keys. History has it;
 * the arguments are in the store. The code that shows them to a person or runs them compares: a change in the store between showing and
 * running does not run.
 */
export function callFingerprint(tool: string, input: JsonValue): string {
  return createHash('sha256')
    .update(JSON.stringify([tool, withSortedKeys(input)]))
    .digest('hex');
}
