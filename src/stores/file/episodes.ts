/** `episodic.jsonl` in the conversation's folder: its summaries, the seed's fields first. */
import { join } from 'node:path';
import { byAge } from '../../records/memory/items.js';
import { toUnavailable } from './errors.js';
import { changeList, readList, type ListFile } from './lists.js';
import { conversationDir } from './paths.js';
import { decodeEpisode, encodeEpisode } from '../codecs/memory-codec.js';
import type { ConversationKey, EpisodeRecord, Episodes } from '../store.js';

export function createFileEpisodes(dir: string): Episodes {
  return {
    async add(key, episode) {
      const file = fileOf(dir, key);
      await inWords(file, `add episode ${episode.id} of ${key.conversation}`, () =>
        changeList(file, (episodes) => (episodes.some(({ id }) => id === episode.id) ? undefined : [...episodes, episode])),
      );
    },

    async list(key, { session, limit = Infinity } = {}) {
      const file = fileOf(dir, key);
      const { items, skipped } = await inWords(file, `read the episodes of ${key.conversation}`, () => readList(file));
      const episodes = items.filter((episode) => session === undefined || episode.session === session);
      return { episodes: episodes.sort(byAge).slice(0, limit), skipped };
    },

    async remove(key, id) {
      const file = fileOf(dir, key);
      await inWords(file, `remove episode ${id} of ${key.conversation}`, () =>
        changeList(file, (episodes) =>
          episodes.some((episode) => episode.id === id) ? episodes.filter((episode) => episode.id !== id) : undefined,
        ),
      );
    },
  };
}

function fileOf(dir: string, key: ConversationKey): ListFile<EpisodeRecord> {
  const folder = conversationDir(dir, key);
  return { path: join(folder, 'episodic.jsonl'), lock: join(folder, 'episodic.lock'), decode: decodeEpisode, encode: encodeEpisode };
}

async function inWords<T>({ path }: ListFile<EpisodeRecord>, attempt: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw toUnavailable(attempt, path, error);
  }
}
