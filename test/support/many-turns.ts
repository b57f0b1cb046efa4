/** What happened in a long conversation, without anybody having had it: the loop with canned results, and what it told. */
import { apply } from '../../src/conversation/apply.js';
import type { ConversationEvent } from '../../src/conversation/event.js';
import type { Run } from '../../src/conversation/replay/past.js';
import { answer, asking, open, said, settle, type Script } from '../conversation/drive.js';

/** Every tenth turn calls two tools. */
export function manyTurns(turns: number): Run {
  const opened = open();
  const events: ConversationEvent[] = [];
  let state = opened;
  for (let n = 1; n <= turns; n++) {
    const asks: Script['model'] = (input) => (input.call.firstToolCall === 1 ? asking(input, 2) : answer(input));
    const message = said(`message-${n}`, { at: state.now + 1 });
    const settled = settle(apply(state, message), n % 10 === 0 ? { model: asks } : {});
    events.push(message);
    for (const event of settled.events) events.push(event);
    state = settled.state;
  }
  return { opened, events };
}
