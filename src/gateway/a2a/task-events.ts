/**
 * A turn's live events as the updates of a task. Pure.
 *
 * - Each text of the model is an artifact, in appended chunks.
 * - The text of a failed attempt is taken back: nothing replaces its artifact, and the next attempt is appended to that.
 * - At the end every artifact is as recorded: missing text is appended, different text is replaced. The last update has the final state.
 */
import type { AnswerEvent } from '../core/turns/answer-parts.js';
import type { CallEvent } from '../core/calls/tool-calls.js';
import { artifactsOf, artifact, byAgent, statusOf, type TaskFacts } from './task.js';
import type { TaskName } from './task-id.js';
import type { Artifact, Part, Status, Update } from './wire.js';

export interface TaskEvents {
  /** Its turn has begun. */
  begin(): Update;
  take(event: Exclude<CallEvent, Extract<AnswerEvent, { readonly kind: 'finished' | 'asked' }>>): readonly Update[];
  /** It waits for a person. */
  ask(facts: TaskFacts): readonly Update[];
  end(facts: TaskFacts): readonly Update[];
  /** As they are now. */
  artifacts(): readonly Artifact[];
}

interface Shown {
  text: string;
  isOpen: boolean;
  readonly parts: string[];
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

  const close = (): Update[] => {
    const open = shown.at(-1);
    if (open?.isOpen !== true) return [];
    open.isOpen = false;
    return [update(shown.length - 1, { text: '' }, { append: true, lastChunk: true })];
  };

  const grow = (part: string, text: string): Update[] => {
    const open = shown.at(-1);
    if (open?.isOpen === true) {
      open.text += text;
      open.parts.push(part);
      return [update(shown.length - 1, { text }, { append: true, lastChunk: false })];
    }
    shown.push({ text, isOpen: true, parts: [part] });
    return [update(shown.length - 1, { text }, { append: false, lastChunk: false })];
  };

  const takeBack = (gone: readonly string[]): Update[] => {
    const open = shown.at(-1);
    if (open?.parts.some((part) => gone.includes(part)) !== true || open.text === '') return [];
    open.text = '';
    open.isOpen = true;
    return [update(shown.length - 1, { text: '' }, { append: false, lastChunk: false })];
  };

  return {
    begin: () => working(),
    take(event) {
      switch (event.kind) {
        case 'call':
          return close();
        case 'grow':
          return event.of === 'text' ? grow(event.part, event.text) : [];
        case 'void':
          return takeBack(event.parts);
        case 'tool-started':
          return [...close(), working({ tool: event.name, callId: event.callId })];
        case 'decided':
          return [...close(), working({ decided: event.decision, callId: event.callId })];
        case 'waiting':
          return [working(undefined, event.for)];
        case 'begin':
        case 'end':
        case 'tool-called':
        case 'tool-finished':
        case 'paused':
        case 'fallback':
          return [];
      }
    },
    ask: (facts) => [...close(), { statusUpdate: { ...ids, status: statusOf(facts) } }],
    end(facts) {
      const updates: Update[] = [];
      const whole = artifactsOf(facts);
      for (const [at, { parts }] of whole.entries()) {
        const [part = { text: '' }] = parts;
        const was = shown[at];
        const isBeginning = was !== undefined && 'text' in part && part.text.startsWith(was.text);
        if (!isBeginning) updates.push(update(at, part, { append: false, lastChunk: true }));
        else if (was.isOpen || part.text !== was.text) {
          updates.push(update(at, { text: part.text.slice(was.text.length) }, { append: true, lastChunk: true }));
        }
      }
      for (const [at, was] of shown.entries()) {
        if (at >= whole.length && was.text !== '') updates.push(update(at, { text: '' }, { append: false, lastChunk: true }));
      }
      const stopReason = facts.end?.stopReason;
      return [
        ...updates,
        { statusUpdate: { ...ids, status: statusOf(facts), ...(stopReason !== undefined && { metadata: { stopReason } }) } },
      ];
    },
    artifacts: () => shown.flatMap(({ text }, at) => (text === '' ? [] : [artifact(name, at, { text })])),
  };
}
