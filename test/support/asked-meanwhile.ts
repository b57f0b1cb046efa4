/**
 * A question to a workflow ends the workflow task that it came with, also while a local step runs: what came of that step is told in the
 * next task, on replay in one activation with what else came before that.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { temporal } from '@temporalio/proto';
import type { InputProcessor } from '../../src/memory/processors.js';
import { gate, type Reply } from '../../src/testing/reply.js';
import type { World } from './world.js';

/** Of what comes while a task is worked on, Temporal keeps a hundred. */
const REPETITIONS = 80;

const doors = new Map<string, Promise<void>>();

/** Lets a message into the store when its door is open; of the others it takes no notice. */
export const doorkeeper: InputProcessor = {
  name: 'doorkeeper',
  order: 500,
  async process(words) {
    await doors.get(words);
    return words;
  },
};

function door(words: string): () => void {
  let open = (): void => undefined;
  doors.set(words, new Promise((resolve) => (open = resolve)));
  return open;
}

/**
 * The step that records "c" outlives its task, and the answer that a reset has stopped comes between; for that `laterMs` has to be met,
 * on which it depends when the answer is let go. The world needs the doorkeeper; `play` is told what the model says.
 */
export async function askMeanwhile(world: World, id: string, play: (reply: Reply) => void, laterMs: number): Promise<void> {
  const handle = world.temporal.workflow.getHandle(id);
  const words = (name: string): string => `${id} ${name}`;
  const message = (name: string): Promise<void> => handle.signal('message', { id: name, text: words(name) });
  const [recordB, recordC] = [door(words('b')), door(words('c'))];
  const answer = gate();
  play({ text: 'This is the answer.', hold: answer });

  await world.client.start(id);
  await message('a');
  await answer.reached;
  await handle.signal('new', {});
  await message('b');
  await sleep(50);
  // What comes now waits for the task that records "b", and is much for the next.
  const status = world.client.status(id);
  await message('c');
  await Promise.all(Array.from({ length: REPETITIONS }, () => message('b')));
  recordB();
  await Promise.all([sleep(20).then(() => message('d')), sleep(laterMs).then(() => answer.release())]);
  await status;
  await sleep(100);
  recordC();
}

/** Whether a run has a local step that ended in a later task than it began in, and a result between. */
export function hasOutlivedItsTask(events: readonly temporal.api.history.v1.IHistoryEvent[]): boolean {
  let taskBegan = 0;
  let [result, resultInTask] = [false, false];
  for (const event of events) {
    if (event.activityTaskCompletedEventAttributes) result = true;
    if (event.workflowTaskStartedEventAttributes) {
      taskBegan = secondsOf(event.eventTime);
      [result, resultInTask] = [false, result];
    }
    const { markerName, details } = event.markerRecordedEventAttributes ?? {};
    const data = details?.['data']?.payloads?.[0]?.data;
    if (markerName !== 'core_local_activity' || !data) continue;
    const { original_schedule_time: began } = JSON.parse(Buffer.from(data).toString()) as { original_schedule_time: Time };
    if (resultInTask && secondsOf(began) < taskBegan) return true;
  }
  return false;
}

type Time = { seconds?: unknown; nanos?: number | null } | null | undefined;

function secondsOf(time: Time): number {
  return Number(time?.seconds ?? 0) + (time?.nanos ?? 0) / 1e9;
}
