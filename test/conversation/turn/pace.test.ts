/** Whose prompts are kept for an hour: those of a conversation that rests longer than five minutes between its turns. */
import { apply } from '../../../src/conversation/apply.js';
import { answered, open, said, take } from '../drive.js';

const MINUTE = 60_000;

function isSlowAfter(...minutes: readonly number[]): boolean[] {
  let state = open();
  let at = 1_000_000;
  return [0, ...minutes].map((gap, n) => {
    at += gap * MINUTE;
    const begun = take(apply(state, said(`m${n}`, { at })), 'model-step');
    state = apply(begun.state, begun.done(answered(begun.input)));
    return begun.input.call.isSlow === true;
  });
}

test.each([
  ['a quick one', [1, 2, 1], [false, false, false, false]],
  ['one with a single pause', [10, 1, 1, 1], [false, false, true, false, false]],
  ['a slow one', [10, 20, 30], [false, false, true, true]],
  ['one whose pauses outlast an hour too', [90, 600, 90], [false, false, false, false]],
])('%s', (_, gaps, slow) => {
  expect(isSlowAfter(...gaps)).toEqual(slow);
});
