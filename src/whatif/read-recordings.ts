/** Recorded conversations as Temporal and the store have them: each run of a conversation is fetched and replayed when it is its turn. */
import type { Run } from '../conversation/replay/past.js';
import { findRuns, readPages, type FoundRun, type History, type HistoryEvent, type HistoryService } from '../heal/fetch-runs.js';
import { counted } from '../records/text.js';
import type { ConversationKey, Store } from '../stores/store.js';
import type { RecordedConversation, Recordings } from './recording.js';

export interface RecordingAccess {
  readonly service: HistoryService;
  readonly namespace: string;
  readonly store: Store;
  readonly findKey: (id: string) => Promise<ConversationKey>;
  /** By the workflow's code. */
  readonly replay: (
    id: string,
    histories: readonly History[],
  ) => Promise<{ readonly runs: readonly (Run | undefined)[]; readonly problems: readonly string[] }>;
}

export function readRecordings({ service, namespace, store, findKey, replay }: RecordingAccess): Recordings {
  const replayed = async (id: string, run: FoundRun): Promise<Run> => {
    const events: HistoryEvent[] = [];
    for await (const page of readPages(service, run)) events.push(...page);
    const { runs, problems } = await replay(id, [{ events }]);
    const [found] = runs;
    // Of a run that does not replay there is a part: what came after it would be made up.
    if (found && problems.length === 0) return found;
    throw new Error(
      problems[0] === undefined
        ? `cannot play ${id}: no worker has worked it yet`
        : `cannot play ${id}: its history is not replayed by this version (${problems[0]}); \`perdura check-upgrade\` says of all which are`,
    );
  };
  return {
    store,
    async open(id): Promise<RecordedConversation> {
      const key = await findKey(id);
      const [deleted] = await store.lives.deleted(key);
      if (deleted?.life === key.life) throw new Error(`cannot play ${id}: it was deleted`);
      const { runs, complete } = await findRuns(service, { namespace, workflowId: id });
      const each = async function* (): AsyncGenerator<Run> {
        for (const run of runs) yield await replayed(id, run);
      };
      return { id, key, runs: each(), gaps: await findGaps(store, key, complete) };
    },
  };
}

async function findGaps(store: Store, key: ConversationKey, complete: boolean): Promise<string[]> {
  const [forgotten, page] = await Promise.all([store.documents.forgotten(key), store.entries.page(key, 0, 1)]);
  return [
    ...(complete ? [] : ['its first runs are past the retention of Temporal: it is played from the first run that is left']),
    ...(forgotten.length > 0
      ? [`${counted(forgotten.length, 'thing')} of its scope ${forgotten.length === 1 ? 'was' : 'were'} forgotten, and are in no prompt`]
      : []),
    ...(page.last === 0 ? ['the store has none of its messages'] : []),
  ];
}
