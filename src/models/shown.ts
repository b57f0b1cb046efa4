/** How texts, results of tools, pictures, sound and video of a conversation are put to a model, whichever it is. */
import {
  shownText,
  type AssistantBlock,
  type Body,
  type Media,
  type MediaSource,
  type ToolOutcome,
  type ToolResultMessage,
} from '../records/message.js';
import { toWellFormed } from './wire.js';

/** Blank text is refused everywhere: it becomes none. */
export function sentText(body: Body): string {
  const text = toWellFormed(shownText(body));
  return text.trim() === '' ? '' : text;
}

/** An assistant's text, joined, and its calls: for an API that has one place for each. */
export function textAndCalls(blocks: readonly AssistantBlock[]) {
  const texts = blocks.flatMap((block) => (block.kind === 'text' ? [sentText(block.text)] : []));
  return {
    text: texts.filter((part) => part !== '').join('\n\n'),
    calls: blocks.flatMap((block) => (block.kind === 'tool-call' ? [block] : [])),
  };
}

/** Chat templates of many models want user and assistant in turns: what two user messages say becomes one. `join` keeps their order. */
export function inTurns<M extends { readonly role?: string }>(messages: readonly M[], join: (last: M, next: M) => M): M[] {
  return messages.reduce<M[]>((out, message) => {
    const last = out[out.length - 1];
    if (last?.role === 'user' && message.role === 'user') out[out.length - 1] = join(last, message);
    else out.push(message);
    return out;
  }, []);
}

export type SentMedia =
  | { readonly kind: 'base64'; readonly mediaType: string; readonly base64: string }
  | { readonly kind: 'url'; readonly mediaType: string; readonly url: string }
  /** What the API would refuse becomes a word that it was there: one bad picture must not end a conversation. */
  | { readonly kind: 'words'; readonly text: string };

export interface Taken {
  /** Media types that the API takes. */
  readonly types: readonly string[];
  /** Whether it fetches what is elsewhere. */
  readonly urls: boolean;
}

export function sentImage(image: MediaSource, taken: Taken): SentMedia {
  const sent = sentAsIs(image, taken);
  if (sent) return sent;
  const at = isWebAddress(image) ? ` at ${image.url}` : '';
  const where = 'ref' in image ? ` It is kept as ${image.ref}.` : '';
  return { kind: 'words', text: toWellFormed(`[An image (${image.mediaType || 'unknown type'})${at} that cannot be shown here.${where}]`) };
}

export const PDF_TYPE = 'application/pdf' as const;

export function sentDocument(source: MediaSource, { urls }: Pick<Taken, 'urls'>): SentMedia {
  return sentAsIs(source, { types: [PDF_TYPE], urls }) ?? { kind: 'words', text: describeDocument(source) };
}

/** For those who take none, and of those that are gone. */
export function describeDocument(source: MediaSource): string {
  return toWellFormed(`[document: ${source.mediaType || 'unknown type'}, ${describeSource(source)}; this model is not known to read it]`);
}

export function sentRecording(kind: 'audio' | 'video', source: MediaSource, taken: Taken): SentMedia {
  const sent = sentAsIs(source, taken);
  if (sent) return sent;
  const mediaType = source.mediaType || 'unknown type';
  const refused = taken.types.length === 0 ? kind : `${mediaType} like this`;
  return { kind: 'words', text: toWellFormed(`[${kind}: ${mediaType}, ${describeSource(source)}; this model does not take ${refused}]`) };
}

/** What Gemini's models take, in the words of their API. */
export const AUDIO_TYPES: readonly string[] = ['wav', 'mp3', 'aiff', 'aac', 'ogg', 'flac'].map((type) => `audio/${type}`);
export const VIDEO_TYPES: readonly string[] = ['mp4', 'mpeg', 'quicktime', 'mov', 'avi', 'x-flv', 'mpg', 'webm', 'wmv', '3gpp'].map(
  (type) => `video/${type}`,
);

/** It has other words for the two most usual ones. */
export function withGeminiType(source: MediaSource): MediaSource {
  const mediaType = { 'audio/mpeg': 'audio/mp3', 'audio/x-wav': 'audio/wav' }[source.mediaType] ?? source.mediaType;
  return { ...source, mediaType };
}

/** For those who take neither. */
export function describeRecordings({ audio = [], video = [] }: Media): string[] {
  const words = (kind: 'audio' | 'video') => (source: MediaSource) => {
    const sent = sentRecording(kind, source, { types: [], urls: false });
    return sent.kind === 'words' ? [sent.text] : [];
  };
  return [...audio.flatMap(words('audio')), ...video.flatMap(words('video'))];
}

function sentAsIs(source: MediaSource, { types, urls }: Taken): SentMedia | undefined {
  const { mediaType } = source;
  if ('base64' in source && types.includes(mediaType) && source.base64 !== '') return { kind: 'base64', mediaType, base64: source.base64 };
  return urls && isWebAddress(source) ? { kind: 'url', mediaType, url: toWellFormed(source.url) } : undefined;
}

function describeSource(source: MediaSource): string {
  if ('url' in source) return isWebAddress(source) ? `at ${source.url}` : 'at an address that cannot be used';
  if ('ref' in source) return `kept as ${source.ref}`;
  return `${Math.floor((source.base64.replace(/=+$/, '').length * 3) / 4)} bytes`;
}

function isWebAddress(source: MediaSource): source is Extract<MediaSource, { url: string }> {
  return 'url' in source && /^https?:\/\//i.test(source.url);
}

const BECAME: Record<ToolOutcome, string> = {
  ok: '',
  error: '',
  rejected: 'Rejected: this call did not run.',
  cancelled: 'Cancelled: this call was stopped before it started and did not run.',
  unknown: 'Outcome unknown: this call was interrupted and may or may not have had its effect. Check before repeating it.',
};

/**
 * What a model reads of a tool's result, after a sentence on what became of the call. Long ones were cited before:
 * memory/channel/citations.ts.
 */
export function toolResultText(result: ToolResultMessage): string {
  const text = toWellFormed(shownText(result.text));
  const lines = [BECAME[result.outcome], text].filter((part) => part.trim() !== '').join('\n');
  // Providers refuse blank text.
  return lines === '' ? '(no output)' : lines;
}

/** For APIs that have no mark for a failed call: the words must say it. */
export function markedResultText(result: ToolResultMessage): string {
  const text = toolResultText(result);
  return result.outcome === 'error' && !/^\s*error\b/i.test(text) ? `Error: ${text}` : text;
}
