/** What lives have found stays found. */
import { apply } from '../../../src/conversation/apply.js';
import type { ConversationEvent } from '../../../src/conversation/event.js';
import { open } from '../drive.js';
import { problemsOf } from './living.js';
import { regressions } from './regressions.js';

test.each(regressions)('$story', ({ choices, kind }) => expect(problemsOf(choices, kind)).toEqual([]));

test.each([{ kind: 'of-tomorrow' }, { kind: 'effect-started', effect: 'of-tomorrow' }, { kind: 'effect-completed', effect: 'x', id: 'x' }])(
  'an event of a newer version is kept out, and never thrown at: %j',
  (event) => expect(apply(open(), { ...event, at: 5 } as unknown as ConversationEvent).rejected.count).toBe(1),
);
