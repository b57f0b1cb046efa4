/** Long-term memory gets each turn once: the lives in which it did not, or got some twice. */
import { closeWorld, openWorld, tryLives, type Action } from './consolidated-once.js';

beforeAll(openWorld);
afterAll(closeWorld);

const on = (kind: 'say' | 'reset' | 'compact' | 'end' | 'edit' | 'resume', which = 0): Action => ({
  kind: kind === 'resume' ? 'say' : kind,
  which,
});
const to = (turn: number): Action => ({ kind: 'rewind', which: 0, turn: turn - 1 });
const fork = (turn: number): Action => ({ kind: 'fork', which: 0, turn: turn - 1 });

test.each<[string, number, Action[]]>([
  ['edited after a compaction, the summarized turns too', 7, [on('compact'), on('say'), on('say'), on('edit')]],
  ['rewound past a compaction', 7, [on('compact'), on('say'), on('say'), to(8), on('say')]],
  ['terminated and resumed after a compaction', 7, [on('compact'), on('end'), on('resume')]],
  ['a fork of one that is terminated and never goes on', 3, [fork(2), on('end')]],
  ['a fork, and its original that ends first', 3, [fork(3), on('say', 1), on('reset'), on('say')]],
  ['back, and forward into the branch that was cut', 4, [to(1), on('say'), to(4), on('say')]],
  ['back past a reset', 2, [on('reset'), on('say'), to(2), on('say')]],
])('%s', (_name, first, actions) => tryLives('default', first, actions));

test('a window that is full while turns are cut', () => tryLives('small', 9, [to(3), on('say'), on('say'), on('say'), to(9), on('say')]));
