/** What happened in a long conversation, without anybody having had it: the loop with canned results, and what it told. */
import { apply } from '../../src/conversation/apply.js';
import type { ConversationEvent } from '../../src/conversation/event.js';
import { nextStep } from '../../src/conversation/next-step.js';
import type { Run } from '../../src/conversation/rebuild.js';
import { answer, asking, finished, memoryEvents, open, recorded, said } from '../conversation/drive.js';

/** Every tenth turn calls two tools. */
export function manyTurns(turns: number): Run {
  const opened = open();
  const events: ConversationEvent[] = [];
  let state = opened;
  const tell = (...told: ConversationEvent[]): void => {
    events.push(...told);
    state = told.reduce(apply, state);
  };
  for (let n = 1; n <= turns; n++) {
    tell(said(`message-${n}`, { at: state.now + 1 }));
    for (let isWaiting = false; !isWaiting;) {
      const step = nextStep(state);
      const at = state.now + 1;
      switch (step.kind) {
        case 'record':
          tell({ kind: 'record-started', at }, { kind: 'recorded', recorded: recorded(step.input), at });
          break;
        case 'call-model': {
          const asks = n % 10 === 0 && state.turn?.toolCalls === 0;
          tell(
            { kind: 'model-call-started', call: step.input.call, at },
            { kind: 'model-answered', answer: asks ? asking(step.input, 2) : answer(step.input), at },
          );
          break;
        }
        case 'run-tools':
          tell(
            { kind: 'tools-started', callIds: step.runs.map(({ input }) => input.callId), at },
            ...step.runs.map(({ input }) => ({ kind: 'tool-finished', result: finished(input), at }) as const),
          );
          break;
        case 'wait':
          isWaiting = true;
          break;
        default: {
          const told = memoryEvents(step, at);
          if (!told) throw new Error(`nobody answers ${step.kind}`);
          tell(...told);
        }
      }
    }
  }
  return { opened, events };
}
