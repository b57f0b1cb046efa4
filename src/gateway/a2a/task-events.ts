/**
 * A turn's live events as the updates of a task. Pure.
 *
 * - Each text of the model is an artifact, in appended chunks.
 * - The text of a failed attempt is taken back: nothing replaces its artifact, and the next attempt is appended to that.
 * - At the end every artifact is as recorded: missing text is appended, different text is replaced. The last update has the final state.
 */
import { callTexts, type TurnView } from '../../records/turn-view.js';
import type { Change } from '../core/turn-stream.js';
import { renderArtifacts, artifact, byAgent, renderStatus, type TaskFacts } from './task.js';
import type { TaskName } from './task-id.js';
import type { Artifact, Part, Status, Update } from './wire.js';

export interface TaskEvents {
  /** Its turn has begun. */
  begin(): Update;
  /** Its texts have come so far. */
  show(view: TurnView): readonly Update[];
  /** All other events of the task, except its end and its questions. */
  take(change: Change): readonly Update[];
  /** It waits for a person. */
  ask(facts: TaskFacts): readonly Update[];
  end(facts: TaskFacts): readonly Update[];
  /** As they are now. */
  artifacts(): readonly Artifact[];
}

interface Shown {
  readonly text: string;
  readonly isOpen: boolean;
}

const MAX_WORDS = 500;

export function createTaskEvents(name: TaskName): TaskEvents {
  const ids = { taskId: name.task, contextId: name.context };
  const shown: Shown[] = [];

  const update = (at: number, part: Part, how: { append: boolean; lastChunk: boolean }): Update => ({
    artifactUpdate: { ...ids, artifact: artifact(name, at, part), ...how },
  });
  const working = (metadata?: Readonly<Record<string, string>>, words?: string): Update => {
    const status: Status = {
      state: 'TASK_STATE_WORKING',
      ...(words !== undefined && { message: byAgent(name, 'status', [{ text: words.slice(0, MAX_WORDS) }]) }),
    };
    return { statusUpdate: { ...ids, status, ...(metadata && { metadata }) } };
  };

  /** `isOver`: nothing more comes of any. */
  const turnInto = (next: readonly { readonly part: Part; readonly isOpen: boolean }[], isOver: boolean): Update[] => {
    const updates: Update[] = [];
    for (const [at, { part, isOpen }] of next.entries()) {
      const was = shown[at];
      const text = 'text' in part ? part.text : undefined;
      if (was === undefined || text?.startsWith(was.text) !== true) {
        updates.push(update(at, part, { append: false, lastChunk: !isOpen }));
      } else if (text !== was.text || (was.isOpen && !isOpen)) {
        updates.push(update(at, { text: text.slice(was.text.length) }, { append: true, lastChunk: !isOpen }));
      }
      shown[at] = { text: text ?? '', isOpen };
    }
    for (const [at, { text }] of shown.entries()) {
      if (at < next.length || text === '') continue;
      updates.push(update(at, { text: '' }, { append: false, lastChunk: isOver }));
      shown[at] = { text: '', isOpen: !isOver };
    }
    return updates;
  };

  return {
    begin: () => working(),
    show: (view) =>
      turnInto(
        callTexts(view).map(({ text, isOpen }) => ({ part: { text }, isOpen })),
        false,
      ),
    take(change) {
      switch (change.kind) {
        case 'tool-started':
          return [working({ tool: change.name, callId: change.callId })];
        case 'decided':
          return [working({ decided: change.decision, callId: change.callId })];
        case 'waiting':
          return [working(undefined, change.for)];
        default:
          return [];
      }
    },
    ask: (facts) => [{ statusUpdate: { ...ids, status: renderStatus(facts) } }],
    end(facts) {
      const texts = renderArtifacts(facts).map(({ parts: [part = { text: '' }] }) => ({ part, isOpen: false }));
      const stopReason = facts.end?.stopReason;
      const metadata = stopReason !== undefined && { metadata: { stopReason } };
      return [...turnInto(texts, true), { statusUpdate: { ...ids, status: renderStatus(facts), ...metadata } }];
    },
    artifacts: () => shown.flatMap(({ text }, at) => (text === '' ? [] : [artifact(name, at, { text })])),
  };
}
