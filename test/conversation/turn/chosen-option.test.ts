import { chosenOption } from '../../../src/conversation/turn/approvals.js';

const OPTIONS = ['Ship it', 'Ship later', 'Wait for Ada', '2'];

test.each([
  ['1', 'Ship it'],
  [' 3 ', 'Wait for Ada'],
  // What is an option by its text is not one by its number.
  ['2', '2'],
  ['wait for ada', 'Wait for Ada'],
  ['WAIT', 'Wait for Ada'],
  ['ship l', 'Ship later'],
  ['ship', 'ship'],
  ['0', '0'],
  ['9', '9'],
  ['', ''],
  ['neither of them', 'neither of them'],
])('%j is %j', (said, expected) => expect(chosenOption(OPTIONS, said)).toBe(expected));

test('without options what was said stays as it is', () => expect(chosenOption([], '1')).toBe('1'));
