/** Each mutant finds its place in the sources once: the tests that run them are in the second tier. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { mutants } from './mutants.js';

test.each(mutants.map((mutant) => [mutant.name, mutant] as const))('a workflow that %s', (_name, { file, from }) => {
  const source = readFileSync(resolve(__dirname, '../../src', file), 'utf8');
  const places = typeof from === 'string' ? source.split(from).length - 1 : [...source.matchAll(new RegExp(from, 'g'))].length;
  expect(places).toBe(1);
});
