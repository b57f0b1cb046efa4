/** The vectors of a life's texts as JSON, each once per model, size and text. */
import { z } from 'zod';
import { decodeJson } from '../codecs.js';
import { addOnce, type OpenCollection, type RecordCodec } from './collection.js';
import type { ConversationKey, StoredVector, Vectors } from '../store.js';

const MAX_BASE64 = 16_384;

const schema = z.object({
  v: z.literal(1),
  model: z.string().min(1).max(200),
  text: z.int().min(0).max(0xffffffff),
  values: z.base64().min(4).max(MAX_BASE64),
});

const VECTORS: RecordCodec<StoredVector> = {
  identify: ({ model, text, values }) => JSON.stringify([model, values.length, text]),
  encode: ({ model, text, values }) =>
    JSON.stringify({ v: 1, model, text, values: Buffer.from(values.buffer, values.byteOffset, values.length).toString('base64') }),
  decode(line) {
    const read = schema.safeParse(decodeJson(line)).data;
    if (read === undefined) return undefined;
    const bytes = Buffer.from(read.values, 'base64');
    return { model: read.model, text: read.text, values: new Int8Array(bytes.buffer, bytes.byteOffset, bytes.length).slice() };
  },
};

export function createVectors(open: OpenCollection): Vectors {
  const vectorsIn = (key: ConversationKey) => open({ name: 'vectors', key }, VECTORS);
  return {
    async add(key, vectors) {
      if (vectors.length === 0) return;
      await addOnce(vectorsIn(key), VECTORS.identify, `write ${vectors.length} vectors of ${key.conversation}`, ...vectors);
    },

    async read(key, model) {
      const { items } = await vectorsIn(key).read(`read vectors of ${key.conversation}`);
      return items.filter((vector) => vector.model === model);
    },

    async keep(key, listTexts) {
      const vectors = vectorsIn(key);
      const attempt = `take away vectors of ${key.conversation}`;
      const { items } = await vectors.read(attempt);
      if (items.length === 0) return;
      const texts = await listTexts();
      const gone = items.filter(({ text }) => !texts.has(text)).map(VECTORS.identify);
      if (gone.length > 0) await vectors.change(attempt, () => [], gone);
    },
  };
}
