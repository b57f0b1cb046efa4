/**
 * A file that the provider refuses costs its turn nothing but a word: the request is made without it, and from then on words replace it.
 * They are in the store, so later prompts have the same bytes; a store that lost them learns them again by the next refusal.
 *
 * Which file it was, no provider says in a form that programs read: those of the newest message are left out first, one by one, then all. A
 * refused request costs nothing, and there are six of them at most.
 */
import type { MediaKind, MediaSource } from '../../records/message.js';
import { mapMedia, shownText, sourcesIn } from '../../records/message.js';
import { truncate } from '../../records/text.js';
import { ModelFailure, type ModelRequest } from '../../models/model.js';
import type { ContextMessage } from '../context/context.js';
import type { ConversationDependencies } from '../dependencies.js';

export interface FileInPrompt {
  /** Under which the words in its place are stored. */
  readonly id: string;
  readonly slot: number;
  readonly kind: MediaKind;
  readonly source: MediaSource;
}

/** The words that replace files, by their ids: a file keeps its id when others of its message are gone. */
type Words = ReadonlyMap<string, string>;

const STATUSES: readonly number[] = [400, 413, 415, 422];
const ONE_BY_ONE = 3;
const NAMES: Readonly<Record<MediaKind, string>> = { images: 'picture', audio: 'recording', video: 'video', documents: 'document' };

/** Of messages that are stored, newest first. */
export function listFiles(messages: readonly ContextMessage[]): FileInPrompt[] {
  return messages.toReversed().flatMap(({ message, slot }) => {
    if (message.role !== 'user' || slot === undefined) return [];
    return sourcesIn(message).map(({ kind, source }, at) => ({ id: `file/${slot}/${at}`, slot, kind, source }));
  });
}

export function withoutFiles(messages: readonly ContextMessage[], words: Words): readonly ContextMessage[] {
  if (words.size === 0) return messages;
  return messages.map((one) => {
    const { message, slot } = one;
    if (message.role !== 'user' || !sourcesIn(message).some((_, at) => words.has(`file/${slot}/${at}`))) return one;
    const { images: _i, audio: _a, video: _v, documents: _d, ...plain } = message;
    let at = 0;
    const left = mapMedia({ ...message }, (list) => list.filter(() => !words.has(`file/${slot}/${at++}`)));
    const kept = Object.fromEntries(Object.entries(left).filter(([, list]) => (list as readonly unknown[]).length > 0));
    const inPlace = sourcesIn(message).flatMap((_, n) => words.get(`file/${slot}/${n}`) ?? []);
    return { ...one, message: { ...plain, ...kept, text: [...inPlace, shownText(message.text)].join('\n') } };
  });
}

/** The words that are stored for files which were refused before. */
export async function readRefused(
  { store, key }: Pick<ConversationDependencies, 'store' | 'key'>,
  messages: readonly ContextMessage[],
): Promise<Words> {
  const ids = listFiles(messages).map(({ id }) => id);
  const words = ids.length === 0 ? [] : await store.items.citations(key, ids);
  return new Map(ids.flatMap((id, at) => (words[at] ? [[id, words[at]] as const] : [])));
}

export interface Asking<T> {
  readonly request: ModelRequest;
  readonly files: readonly FileInPrompt[];
  /** The request with words in the place of files. */
  readonly without: (words: Words) => ModelRequest;
  readonly ask: (request: ModelRequest) => Promise<T>;
  /** Stores the words of a request that was answered; called before its answer counts. */
  readonly onRefused: (words: Words) => Promise<void>;
}

/** Throws what the whole request was refused with, where it is refused without any file too. */
export async function askWithoutRefused<T>({ request, files, without, ask, onRefused }: Asking<T>): Promise<T> {
  try {
    return await ask(request);
  } catch (refusal) {
    if (!mayBeFile(refusal)) throw refusal;
    for (const left of listTries(files)) {
      const words = new Map(left.map((file) => [file.id, describeRefused(file, refusal)]));
      const answer = await ask(without(words)).catch((again: unknown) => {
        if (mayBeFile(again)) return undefined;
        throw again;
      });
      if (answer === undefined) continue;
      await onRefused(words);
      return answer;
    }
    throw refusal;
  }
}

function mayBeFile(error: unknown): error is ModelFailure {
  if (!(error instanceof ModelFailure)) return false;
  return ['invalid-request', 'too-large'].includes(error.kind) && STATUSES.includes(error.options.status ?? 0);
}

function listTries(files: readonly FileInPrompt[]): (readonly FileInPrompt[])[] {
  const newest = files.filter(({ slot }) => slot === files[0]?.slot);
  const single = newest.length > 1 && newest.length <= ONE_BY_ONE ? newest.map((file) => [file]) : [];
  return [...single, newest, ...(files.length > newest.length ? [files] : [])].filter(({ length }) => length > 0);
}

function describeRefused({ kind, source }: FileInPrompt, { message }: ModelFailure): string {
  const size =
    'base64' in source ? `, ${describeBytes((source.base64.length * 3) / 4)}` : 'url' in source ? ` at ${truncate(source.url, 200)}` : '';
  const why = truncate(message.replace(/^cannot get an answer from [^:]*: /, ''), 300);
  return `[A ${NAMES[kind]} (${source.mediaType}${size}) that the provider could not read, and that is left out: ${why}]`;
}

function describeBytes(bytes: number): string {
  return bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} KB` : `${(bytes / 1e6).toFixed(1)} MB`;
}
