/**
 * Input that the provider refuses costs its turn nothing but a word: the request is made without it, and from then on words replace it. They
 * are in the store, so later prompts have the same bytes; a store that lost them learns them again by the next refusal.
 *
 * Which input it was, no provider says in a form that programs read. Files go first: those of this turn one by one, then all. Then what no
 * request with an answer has had in it yet, once the same request was refused again: earlier messages without an answer, the last round of
 * tools, the answer that called them. What is older goes last, once a shorter prompt has not helped either. A refused request costs nothing, and there are six of them at most.
 */
import type { MediaKind, MediaSource, ToolResultMessage } from '../../records/message.js';
import { withoutMedia } from '../../records/message-media.js';
import { mapMedia, shownText, sourcesIn } from '../../records/message.js';
import { truncate } from '../../records/text.js';
import { ModelFailure, type ModelFailureKind, type ModelRequest, type ModelUsage } from '../../models/model.js';
import { BASE } from '../../conversation/context/learning.js';
import { isTransient } from '../../records/turn-end.js';
import type { ContextMessage } from '../context/context.js';
import type { ConversationDependencies } from '../dependencies.js';

export interface FileInPrompt {
  /** Under which the words in its place are stored. */
  readonly id: string;
  readonly slot: number;
  readonly turn: string;
  readonly kind: MediaKind;
  readonly source: MediaSource;
}

/** The words that replace files and messages, by their ids: a file keeps its id when others of its message are gone. */
type Words = ReadonlyMap<string, string>;

/** What a provider says of a request that it will not take; a gateway or a filter before it may say 403 or 404. */
const REFUSALS: readonly ModelFailureKind[] = ['invalid-request', 'too-large', 'forbidden', 'not-found'];
const ONE_BY_ONE = 3;
const MAX_TRIES = 5;
const NAMES: Readonly<Record<MediaKind, string>> = { images: 'picture', audio: 'recording', video: 'video', documents: 'document' };

/** Of messages that are stored, newest first. */
export function listFiles(messages: readonly ContextMessage[]): FileInPrompt[] {
  return messages.toReversed().flatMap(({ message, slot, turn = '' }) => {
    if (message.role === 'assistant' || slot === undefined) return [];
    return sourcesIn(message).map(({ kind, source }, at) => ({ id: `file/${slot}/${at}`, slot, turn, kind, source }));
  });
}

export function withoutFiles(messages: readonly ContextMessage[], words: Words): readonly ContextMessage[] {
  if (words.size === 0) return messages;
  return messages.map((one) => {
    const { message, slot } = one;
    if (message.role === 'assistant' || !sourcesIn(message).some((_, at) => words.has(`file/${slot}/${at}`))) return one;
    let at = 0;
    const left = mapMedia({ ...message }, (list) => list.filter(() => !words.has(`file/${slot}/${at++}`)));
    const kept = Object.fromEntries(Object.entries(left).filter(([, list]) => (list as readonly unknown[]).length > 0));
    const inPlace = sourcesIn(message).flatMap((_, n) => words.get(`file/${slot}/${n}`) ?? []);
    const text = [...inPlace, shownText(message.text)].join('\n');
    return { ...one, message: { ...withoutMedia(message), ...kept, text } };
  });
}

/** The words that are stored for files which were refused before, and for the messages of `slots`. */
export async function readRefused(
  { store, key }: Pick<ConversationDependencies, 'store' | 'key'>,
  messages: readonly ContextMessage[],
  slots: readonly number[],
): Promise<Words> {
  const ids = [...listFiles(messages).map(({ id }) => id), ...slots.map(messageId)];
  const words = ids.length === 0 ? [] : await store.items.citations(key, ids);
  const lost = new Map(slots.map((slot) => [messageId(slot), 'the provider refused it'] as const));
  return new Map([...lost, ...ids.flatMap((id, at) => (words[at] ? [[id, words[at]] as const] : []))]);
}

/** With one notice in the place of neighbours that are left out. A call that stays keeps a result. */
export function withoutMessages(messages: readonly ContextMessage[], words: Words): readonly ContextMessage[] {
  if (words.size === 0 || !messages.some(({ slot }) => slot !== undefined && words.has(messageId(slot)))) return messages;
  const calls = new Set<string>();
  const left: ContextMessage[] = [];
  let run: { readonly at: number; count: number; readonly why: string; readonly called: string[] } | undefined;
  for (const one of messages) {
    const { message, slot = -1 } = one;
    const why = words.get(messageId(slot));
    if (message.role === 'tool' && why !== undefined) {
      if (calls.has(message.callId)) left.push({ ...one, message: withoutText(message, why) });
      continue;
    }
    if (why === undefined) {
      if (message.role === 'assistant') for (const block of message.blocks) if (block.kind === 'tool-call') calls.add(block.callId);
      run = undefined;
      left.push(one);
      continue;
    }
    run ??= { at: left.push(one) - 1, count: 0, why, called: [] };
    run.count += 1;
    if (message.role === 'assistant')
      run.called.push(...message.blocks.flatMap((block) => (block.kind === 'tool-call' ? [block.name] : [])));
    left[run.at] = { ...one, message: { role: 'user', from: 'notice', text: describeLeftOut(run) } };
  }
  return left;
}

function withoutText({ item: _, ...message }: ToolResultMessage, why: string): ToolResultMessage {
  return { ...message, text: `[The result of ${message.name} is left out, since the provider refused it: ${why}]` };
}

function describeLeftOut({
  count,
  why,
  called,
}: {
  readonly count: number;
  readonly why: string;
  readonly called: readonly string[];
}): string {
  const what = count === 1 ? 'A message is left out here' : `${count} messages are left out here`;
  const ran = called.length === 0 ? '' : ` Among them were calls, which have run: ${called.join(', ')}.`;
  return `[${what}, since the provider refused the request with it: ${why}. The traces have it.${ran}]`;
}

/** True: what this epoch begins with is left out too. */
export function leavesBase(words: Words): boolean {
  return words.has(messageId(BASE));
}

function messageId(slot: number): string {
  return `message/${slot}`;
}

/** Messages that may be left out together. */
export interface Unproven {
  readonly slots: readonly number[];
  /** True: so much that one answer without it may be a coincidence; only where the refusal cannot be about the size. */
  readonly isAll: boolean;
}

/**
 * The groups that are tried, each with those before it: first what no answered request has had in it, then everything but this turn's
 * messages, with what the epoch begins with.
 */
export function listUnproven(
  messages: readonly ContextMessage[],
  { turn, hasBase }: { readonly turn: string; readonly hasBase: boolean },
): readonly Unproven[] {
  const last = messages.findLastIndex(({ message }) => message.role === 'assistant');
  const slots = (some: readonly ContextMessage[]): number[] => some.flatMap(({ slot }) => slot ?? []);
  const isAsked = (one: ContextMessage): boolean => one.message.role === 'user' && one.turn === turn;
  const since = messages.slice(last + 1);
  const earlier = slots(since.filter((one) => one.message.role === 'user' && one.turn !== turn));
  const results = slots(since.filter(({ message }) => message.role === 'tool'));
  const groups: readonly Unproven[] = [
    { slots: earlier, isAll: false },
    { slots: [...earlier, ...results], isAll: false },
    { slots: [...earlier, ...results, ...slots(messages.slice(Math.max(0, last), last + 1))], isAll: false },
    { slots: [...(hasBase ? [BASE] : []), ...slots(messages.filter((one) => !isAsked(one)))], isAll: true },
  ];
  return groups.filter((group, at) => group.slots.length > (groups[at - 1]?.slots.length ?? 0));
}

export interface Asking<T> {
  readonly request: ModelRequest;
  readonly turn: string;
  /** Looked for only once a request is refused. */
  readonly files: () => readonly FileInPrompt[];
  /** Of `listUnproven`. */
  readonly unproven: () => readonly Unproven[];
  /** True: a prompt as long was never answered, and a shorter one has not been tried. */
  readonly doubtsSize: boolean;
  /** The request with words in the place of files and messages. */
  readonly without: (words: Words) => ModelRequest;
  readonly ask: (request: ModelRequest) => Promise<T>;
  /** True: what else has been tried has not helped, so any failure may be about what is in the request. */
  readonly doubtsReason: boolean;
  /** True: a failure that may pass is tried no more for now. */
  readonly isLastAttempt: boolean;
  /** Given what a request has cost that came to nothing. */
  readonly onFailed: (usage: ModelUsage) => Promise<void>;
  /** Stores the words of a request that was answered; called before its answer counts. */
  readonly onRefused: (words: Words) => Promise<void>;
}

/** What is answered, and the messages that it was answered without. */
export interface Answered<T> {
  readonly answer: T;
  readonly leftOut?: Unproven;
}

interface Part {
  readonly files: readonly FileInPrompt[];
  readonly group?: Unproven;
}

/** Throws what the whole request was refused with, where it is refused without any of them too. */
export async function askWithoutRefused<T>(asking: Asking<T>): Promise<Answered<T>> {
  const { request, without, ask, onFailed, onRefused } = asking;
  try {
    return { answer: await ask(request) };
  } catch (refusal) {
    if (!mayBeInput(refusal, asking)) throw refusal;
    const note = async ({ options: { usage } }: ModelFailure): Promise<undefined> => {
      if (usage) await onFailed(usage);
    };
    const tries = listTries(asking, refusal);
    if (tries.length > 0) await note(refusal);
    for (const { files, group } of tries) {
      const words = new Map([
        ...files.map((file) => [file.id, describeRefused(file, refusal)] as const),
        ...(group?.slots ?? []).map((slot) => [messageId(slot), reasonIn(refusal)] as const),
      ]);
      const answer = await ask(without(words)).catch((again: unknown) => {
        if (mayBeInput(again, asking)) return note(again);
        throw again;
      });
      if (answer === undefined) continue;
      if (words.size > 0) await onRefused(words);
      return { answer, ...(group && { leftOut: group }) };
    }
    throw tries.length > 0 ? withoutUsage(refusal) : refusal;
  }
}

/** It is counted. */
function withoutUsage({ kind, message, options: { usage: _, ...options } }: ModelFailure): ModelFailure {
  return new ModelFailure(kind, message, options);
}

function mayBeInput(
  error: unknown,
  { doubtsReason, isLastAttempt }: Pick<Asking<unknown>, 'doubtsReason' | 'isLastAttempt'>,
): error is ModelFailure {
  if (!(error instanceof ModelFailure)) return false;
  const { kind, options } = error;
  // Some refuse under a good status.
  if (REFUSALS.includes(kind)) return kind === 'invalid-request' || (options.status ?? 0) >= 400;
  return doubtsReason && (kind === 'context-full' || (isLastAttempt && isTransient(kind)));
}

function listTries(
  {
    turn,
    files: listed,
    unproven: groupsLeft,
    doubtsSize,
    doubtsReason,
  }: Pick<Asking<unknown>, 'turn' | 'files' | 'unproven' | 'doubtsSize' | 'doubtsReason'>,
  { kind }: ModelFailure,
): readonly Part[] {
  const [files, unproven] = [listed(), groupsLeft()];
  const newest = files.filter((file) => file.turn === turn);
  const single = newest.length > 1 && newest.length <= ONE_BY_ONE ? newest.map((file) => [file]) : [];
  const groups = [...single, newest, ...(files.length > newest.length ? [files] : [])].filter(({ length }) => length > 0);
  const mayBeLong = doubtsSize && kind === 'invalid-request';
  // A gateway may refuse once what it takes a moment later: no message is left out for that.
  const again = groups.length === 0 && !doubtsReason && unproven.length > 0 ? [{ files: [] }] : [];
  const messages = unproven.filter(({ isAll }) => !(isAll && mayBeLong)).map((group) => ({ files: [], group }));
  return [...groups.map((some) => ({ files: some })), ...again, ...messages].slice(0, MAX_TRIES);
}

function describeRefused({ kind, source }: FileInPrompt, refusal: ModelFailure): string {
  const size =
    'base64' in source ? `, ${describeBytes((source.base64.length * 3) / 4)}` : 'url' in source ? ` at ${truncate(source.url, 200)}` : '';
  const what = `A ${NAMES[kind]} (${source.mediaType}${size})`;
  return `[${what} that the provider could not read, and that is left out: ${reasonIn(refusal)}]`;
}

function reasonIn({ message }: ModelFailure): string {
  return truncate(message.replace(/^cannot get an answer from [^:]*: /, '').replace(/\.$/, ''), 300);
}

function describeBytes(bytes: number): string {
  return bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} KB` : `${(bytes / 1e6).toFixed(1)} MB`;
}
