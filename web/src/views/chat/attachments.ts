/** Files that go along with a message: sent before it, so that the message only names them. What a file is the gateway says, by its content. */
import type { Media, NamedMedia } from '../../api/entries.js';
import { addressOf, ask } from '../../api/request.js';
import { bytes } from '../../ui/words.js';

export interface Attachment {
  readonly key: string;
  readonly name: string;
  readonly media: NamedMedia;
  /** Of a picture: an address of the browser's own. */
  readonly shown?: string;
}

const PICTURES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];
/** What a browser offers first; the gateway takes any text in UTF-8. */
export const OFFERED = [...PICTURES, 'application/pdf', 'text/*', '.md', '.json', '.csv', '.yaml', '.log'].join(',');
/** The gateway may take less, and then says so. */
const MAX_BYTES = 10 * 1024 * 1024;
const MAX_FILES = 8;

export async function fromFiles(files: readonly File[], known: readonly Attachment[]): Promise<Attachment[]> {
  for (const { name, type, size } of files) {
    const shown = name.slice(0, 80);
    if (type.startsWith('image/') && !PICTURES.includes(type)) {
      throw new Error(`${shown} cannot be sent: pictures are PNG, JPEG, GIF or WebP`);
    }
    if (size > MAX_BYTES) throw new Error(`${shown} (${bytes(size)}) is too large: a file may have ${bytes(MAX_BYTES)}`);
  }
  if (known.length + files.length > MAX_FILES) throw new Error(`a message takes ${MAX_FILES} files here`);
  const sent = await Promise.all(files.map(send));
  return [...known, ...sent];
}

export function isPicture({ mediaType }: Media): boolean {
  return mediaType.startsWith('image/');
}

async function send(file: File): Promise<Attachment> {
  const answer = await ask(addressOf('/v1/attachments'), { method: 'POST', body: file });
  const { ref, mediaType } = (await answer.json()) as { readonly ref: string; readonly mediaType: string };
  const name = file.name.slice(0, 80);
  const media = mediaType.startsWith('image/') ? { mediaType, ref } : { mediaType, ref, name };
  return { key: crypto.randomUUID(), name, media, ...(isPicture(media) && { shown: URL.createObjectURL(file) }) };
}
