/** Pictures that go along with a message: sent before it, so that the message only names them. */
import type { Media } from '../../api/entries.js';
import { addressOf, ask } from '../../api/request.js';
import { bytes } from '../../ui/words.js';

export interface Picture {
  readonly key: string;
  readonly name: string;
  readonly media: Media;
  /** An address of the browser's own. */
  readonly shown: string;
}

const TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];
/** The gateway may take less, and then says so. */
const MAX_BYTES = 10 * 1024 * 1024;
const MAX_PICTURES = 8;

export async function fromFiles(files: readonly File[], known: readonly Picture[]): Promise<Picture[]> {
  const names = files.map(({ name }) => name.slice(0, 80));
  for (const [at, file] of files.entries()) {
    if (!TYPES.includes(file.type)) throw new Error(`${names[at]} cannot be sent: pictures are PNG, JPEG, GIF or WebP`);
    if (file.size > MAX_BYTES) throw new Error(`${names[at]} (${bytes(file.size)}) is too large: a picture may have ${bytes(MAX_BYTES)}`);
  }
  if (known.length + files.length > MAX_PICTURES) throw new Error(`a message takes ${MAX_PICTURES} pictures here`);
  const sent = await Promise.all(files.map(send));
  return [...known, ...sent];
}

async function send(file: File): Promise<Picture> {
  const answer = await ask(addressOf('/v1/attachments'), { method: 'POST', body: file });
  const { ref, mediaType } = (await answer.json()) as { readonly ref: string; readonly mediaType: string };
  return { key: crypto.randomUUID(), name: file.name.slice(0, 80), media: { mediaType, ref }, shown: URL.createObjectURL(file) };
}
