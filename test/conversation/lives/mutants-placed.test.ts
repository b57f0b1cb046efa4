/** Each mutant finds its place in the sources, which the test that breaks them finds out only in the second tier. */
import { placesOf } from './mutated.js';
import { mutants } from './mutants.js';

test.each(mutants.map((mutant) => [mutant.name, mutant] as const))('one that %s finds its place', (_name, mutant) => {
  expect(placesOf(mutant)).toBe(1);
});
