/** What comes with a person's text: pictures, sound, video. A list that is empty is none, and stays absent where it is stored. */
import type { Media, MediaSource } from './message.js';

export type MediaKind = keyof Media;

export const MEDIA_KINDS: readonly MediaKind[] = ['images', 'audio', 'video'];

/** Each list that has something in it, in one order; other fields of what carries them are left out. */
export function mediaOf(carrier: Media): Media {
  return mapMedia(carrier, (list) => list);
}

export function mapMedia(carrier: Media, change: (list: readonly MediaSource[], kind: MediaKind) => readonly MediaSource[]): Media {
  const lists = MEDIA_KINDS.flatMap((kind) => {
    const list = carrier[kind] ?? [];
    return list.length === 0 ? [] : [[kind, change(list, kind)] as const];
  });
  return Object.fromEntries(lists);
}

export function sourcesIn(carrier: Media): { readonly kind: MediaKind; readonly source: MediaSource }[] {
  return MEDIA_KINDS.flatMap((kind) => (carrier[kind] ?? []).map((source) => ({ kind, source })));
}

/** As they travel: what is elsewhere has none. */
export function mediaBytes(carrier: Media): number {
  return sourcesIn(carrier).reduce((sum, { source }) => sum + ('base64' in source ? source.base64.length : 0), 0);
}
