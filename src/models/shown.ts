/** How texts and pictures of a conversation are put to a model, whichever it is. */
import { shownText, type Body, type ImageSource } from '../conversation/message.js';
import { toWellFormed } from './well-formed.js';

/** Blank text is refused everywhere: it becomes none. */
export function sentText(body: Body): string {
  const text = toWellFormed(shownText(body));
  return text.trim() === '' ? '' : text;
}

export type SentImage =
  | { readonly kind: 'base64'; readonly mediaType: string; readonly base64: string }
  | { readonly kind: 'url'; readonly mediaType: string; readonly url: string }
  /** One that the API would refuse becomes a word that it was there: one bad picture must not end a conversation. */
  | { readonly kind: 'words'; readonly text: string };

export interface TakenImages {
  /** Media types that the API takes. */
  readonly types: readonly string[];
  /** Whether it fetches pictures itself. */
  readonly urls: boolean;
}

export function sentImage(image: ImageSource, { types, urls }: TakenImages): SentImage {
  const { mediaType } = image;
  if ('base64' in image && types.includes(mediaType) && image.base64 !== '') return { kind: 'base64', mediaType, base64: image.base64 };
  if (urls && isWebAddress(image)) return { kind: 'url', mediaType, url: toWellFormed(image.url) };
  const at = isWebAddress(image) ? ` at ${image.url}` : '';
  const where = 'ref' in image ? ` It is kept as ${image.ref}.` : '';
  return { kind: 'words', text: toWellFormed(`[An image (${mediaType || 'unknown type'})${at} that cannot be shown here.${where}]`) };
}

function isWebAddress(image: ImageSource): image is Extract<ImageSource, { url: string }> {
  return 'url' in image && /^https?:\/\//i.test(image.url);
}
