/**
 * A file that the provider refuses costs its turn nothing but a word: the request is made without it, and from then on words replace it.
 * They are in the store, so later prompts have the same bytes; a store that lost them learns them again by the next refusal.
 *
 * Which file it was, no provider says in a form that programs read: those of the newest message are left out first, one by one, then all. A
 * refused request costs nothing, and there are six of them at most.
 *
 * A text may be refused too (Azure's filter of contents answers 400). It costs its turn; what was never answered is left out of a later turn
 * that is refused with it and passes without it, so that the conversation goes on.
 */
import type { MediaKind, MediaSource } from '../../records/message.js';
import { mapMedia, shownText, sourcesIn } from '../../records/message.js';
import { truncate } from '../../records/text.js';
import { ModelFailure, type ModelRequest } from '../../models/model.js';
import type { ContextMessage } from '../context/context.js';
import type { ConversationDependencies } from '../dependencies.js';

export type FileInPrompt = {
  /** Under which the words in its place are stored. */
  readonly id: string;
  readonly slot: number;
} & ({ readonly kind: MediaKind; readonly source: MediaSource } | { readonly kind: 'text'; readonly name: 'message' | 'result' });

/** The words that replace files, by their ids: a file keeps its id when others of its message are gone. */
type Words = ReadonlyMap<string, string>;

const TOO_LARGE: readonly number[] = [400, 413, 422];
const ONE_BY_ONE = 3;
/** Beside the whole request. */
const MOST_TRIES = 5;
const NAMES: Readonly<Record<MediaKind, string>> = { images: 'picture', audio: 'recording', video: 'video', documents: 'document' };

/** Of messages that are stored, newest first; and the texts which no answer followed. */
export function listFiles(messages: readonly ContextMessage[]): FileInPrompt[] {
  const found: FileInPrompt[] = [];
  let next: ContextMessage['message']['role'] | undefined;
  for (const { message, slot } of messages.toReversed()) {
    const { role } = message;
    if (slot !== undefined && role === 'user') {
      found.push(...sourcesIn(message).map(({ kind, source }, at) => ({ id: `file/${slot}/${at}`, slot, kind, source })));
    }
    if (slot !== undefined && role !== 'assistant' && next === 'user') {
      found.push({ id: `text/${slot}`, slot, kind: 'text', name: role === 'user' ? 'message' : 'result' });
    }
    if (role !== 'tool') next = role;
  }
  return found;
}

export function withoutFiles(messages: readonly ContextMessage[], words: Words): readonly ContextMessage[] {
  if (words.size === 0) return messages;
  return messages.map((whole) => {
    const one = withoutText(whole, words.get(`text/${whole.slot}`));
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

function withoutText(one: ContextMessage, words: string | undefined): ContextMessage {
  if (words === undefined || one.message.role === 'assistant') return one;
  return { ...one, message: { ...one.message, text: words } };
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
  return error.kind === 'invalid-request' || (error.kind === 'too-large' && TOO_LARGE.includes(error.options.status ?? 0));
}

function listTries(all: readonly FileInPrompt[]): (readonly FileInPrompt[])[] {
  const files = all.filter(({ kind }) => kind !== 'text');
  const newest = files.filter(({ slot }) => slot === files[0]?.slot);
  const single = newest.length > 1 && newest.length <= ONE_BY_ONE ? newest.map((file) => [file]) : [];
  const ofFiles = [...single, newest, ...(files.length > newest.length ? [files] : [])].filter(({ length }) => length > 0);
  if (files.length === all.length) return ofFiles;
  // Texts alone where the last tries would be too many, then all that may be it.
  const texts = all.filter(({ kind }) => kind === 'text');
  return [...ofFiles.slice(0, MOST_TRIES - (files.length > 0 ? 2 : 1)), texts, ...(files.length > 0 ? [all] : [])];
}

function describeRefused(file: FileInPrompt, { message }: ModelFailure): string {
  const why = truncate(message.replace(/^cannot get an answer from [^:]*: /, ''), 300);
  if (file.kind === 'text') return `[A ${file.name} that the provider refuses, and that is left out: ${why}]`;
  const { kind, source } = file;
  const size =
    'base64' in source ? `, ${describeBytes((source.base64.length * 3) / 4)}` : 'url' in source ? ` at ${truncate(source.url, 200)}` : '';
  return `[A ${NAMES[kind]} (${source.mediaType}${size}) that the provider could not read, and that is left out: ${why}]`;
}

function describeBytes(bytes: number): string {
  return bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} KB` : `${(bytes / 1e6).toFixed(1)} MB`;
}
