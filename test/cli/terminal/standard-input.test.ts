import { PassThrough, Readable } from 'node:stream';
import { createInterface } from 'node:readline';
import { endsEmpty, readAll } from '../../../src/cli/terminal/input.js';

test.each([
  ['nothing', []],
  ['blanks', [' \n', '\n\t']],
])('%s is an empty end', async (_, chunks) => {
  expect(await endsEmpty(Readable.from(chunks.map((chunk) => Buffer.from(chunk))))).toBe(true);
});

test('what has been said stays in it, a character that two chunks share too, and is read as lines', async () => {
  const bytes = Buffer.from('\nfünf\nsix\n');
  const input = new PassThrough();
  input.write(bytes.subarray(0, 3));
  const asked = endsEmpty(input);
  input.write(bytes.subarray(3));
  expect(await asked).toBe(false);
  input.end('seven\n');
  const lines: string[] = [];
  for await (const line of createInterface({ input })) lines.push(line);
  expect(lines).toEqual(['', 'fünf', 'six', 'seven']);
});

test.each(['utf8', 'utf16le'] as const)('a text in %s that begins with a mark is the text', async (encoding) => {
  expect(await readAll(Readable.from([Buffer.from('\ufeff{"a":1}', encoding)]))).toBe('{"a":1}');
});

test('what has ended before anybody looks loses nothing', async () => {
  const input = new PassThrough();
  input.end('said\n');
  expect(await endsEmpty(input)).toBe(false);
  await new Promise((resolve) => setImmediate(resolve));
  const lines: string[] = [];
  for await (const line of createInterface({ input })) lines.push(line);
  expect(lines).toEqual(['said']);
});

test('one that is open and silent may still speak', async () => {
  const input = new PassThrough();
  expect(await endsEmpty(input, 20)).toBe(false);
  input.end('late\n');
  const lines: string[] = [];
  for await (const line of createInterface({ input })) lines.push(line);
  expect(lines).toEqual(['late']);
});
