/** Pictures that go along with a message: in it, as the API takes them where nothing was uploaded before. */
import type { Media } from '../../api/entries.js';
import { bytes } from '../../ui/words.js';

export interface Picture {
  readonly key: string;
  readonly name: string;
  readonly media: Media;
  /** An address of the browser's own. */
  readonly shown: string;
}

const TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];
/** Of all together, as base64: a message may have 1 MiB. */
const MAX_ENCODED = 900_000;
const MAX_PICTURES = 8;

export async function fromFiles(files: readonly File[], known: readonly Picture[]): Promise<Picture[]> {
  const all = [...known];
  for (const file of files) {
    if (!TYPES.includes(file.type)) throw new Error(`${file.name.slice(0, 80)} cannot be sent: pictures are PNG, JPEG, GIF or WebP`);
    if (all.length >= MAX_PICTURES) throw new Error(`a message takes ${MAX_PICTURES} pictures here`);
    const base64 = await encoded(file);
    const sum = all.reduce((size, { media }) => size + ('base64' in media ? media.base64.length : 0), base64.length);
    if (sum > MAX_ENCODED)
      throw new Error(
        `${file.name.slice(0, 80)} (${bytes(file.size)}) is too large: a message takes ${bytes(MAX_ENCODED * 0.75)} of pictures`,
      );
    all.push({
      key: crypto.randomUUID(),
      name: file.name.slice(0, 80),
      media: { mediaType: file.type, base64 },
      shown: `data:${file.type};base64,${base64}`,
    });
  }
  return all;
}

function encoded(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).replace(/^data:[^,]*,/, ''));
    reader.onerror = () => reject(new Error(`${file.name.slice(0, 80)} cannot be read`));
    reader.readAsDataURL(file);
  });
}
