import { runInNewContext } from 'node:vm';
import { errorCode, errorMessage, firstErrorCode } from '../../src/platform/errors.js';

test.each<[what: string, thrown: unknown, message: string]>([
  ['an error', new Error('no'), 'no'],
  ['an error of another realm', runInNewContext('new Error("far")'), 'far'],
  ['an error without a message', new RangeError(''), 'RangeError'],
  ['a text', 'text', 'text'],
  ['nothing', undefined, 'undefined'],
  ['null', null, 'null'],
  ['an object whose message is no text', { message: 7 }, '[object Object]'],
])('the message of %s', (_, thrown, message) => {
  expect(errorMessage(thrown)).toBe(message);
});

test('a code is a word, and the first one of a chain of causes is found', () => {
  const reset = Object.assign(new Error('socket'), { code: 'ECONNRESET' });
  const failed = new Error('fetch failed', { cause: new Error('other', { cause: reset }) });
  expect([errorCode(reset), errorCode(failed), errorCode({ code: 5 }), errorCode(null)]).toEqual([
    'ECONNRESET',
    undefined,
    undefined,
    undefined,
  ]);
  expect([firstErrorCode(failed), firstErrorCode(new Error('none')), firstErrorCode('text')]).toEqual(['ECONNRESET', undefined, undefined]);
});
