/** Long texts as files named by their hash: `bodies/<sha256>`, written beside and renamed, so none is ever half there. */
import { mkdir, readFile, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import writeFileAtomic from 'write-file-atomic';
import { hashInRef, toBodyRef, verified } from '../body-ref.js';
import { isAbsent, isForeign, toUnavailable } from './errors.js';
import { conversationDir } from './paths.js';
import type { Bodies } from '../store.js';

export function createFileBodies(dir: string): Bodies {
  const bodies: Bodies = {
    async put(key, text) {
      const ref = toBodyRef(text);
      if ((await bodies.get(key, ref.ref)) !== undefined) return ref;
      const folder = join(conversationDir(dir, key), 'bodies');
      const path = join(folder, ref.sha256);
      try {
        await mkdir(folder, { recursive: true });
        await writeFileAtomic(path, text);
        // A write cut short by a full disk is no error to write-file-atomic.
        if ((await stat(path)).size !== ref.bytes) {
          await unlink(path);
          throw new Error('it was written in part only, the disk may be full');
        }
        return ref;
      } catch (error) {
        throw toUnavailable(`store a body of ${ref.bytes} bytes of ${key.conversation}`, path, error);
      }
    },

    async get(key, ref) {
      const sha256 = hashInRef(ref);
      if (sha256 === undefined) return undefined;
      const path = join(conversationDir(dir, key), 'bodies', sha256);
      try {
        return verified(await readFile(path, 'utf8'), sha256);
      } catch (error) {
        if (isAbsent(error) || isForeign(error)) return undefined;
        throw toUnavailable(`read body ${ref} of ${key.conversation}`, path, error);
      }
    },
  };
  return bodies;
}
