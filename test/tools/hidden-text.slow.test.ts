/** A mebibyte and more of what looks endless: hidden-text.test.ts has what is read. */
import { plainOutput } from '../../src/tools/hidden-text.js';
import { ends } from '../support/ends.js';

it.each([
  ['hidden', '\u200b'],
  ['joiners', 'ک\u200cک'],
  ['emoji', '👩\u200d'],
  ['escapes that do not end', '\u001b]'],
  ['escapes that do not end, of another kind', '\u001b[1;'],
])('a mebibyte and more of what is read by its length: %s', (_, piece) => {
  ends(() => plainOutput(piece.repeat(1_000_000)));
});
