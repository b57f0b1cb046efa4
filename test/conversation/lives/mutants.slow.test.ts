/** The lives can fail: each mutant of the decisions breaks a rule within what every day's run tries. */
import type * as Lives from './forms.js';
import { loadMutated } from './mutated.js';
import { mutants } from './mutants.js';

test.each(mutants)('one that $name is caught', (mutant) => {
  const { FORMS, live } = loadMutated<typeof Lives>('forms.ts', mutant);
  const caught = Object.values(FORMS).some((form) => {
    try {
      live(form, { shrinks: false });
      return false;
    } catch {
      return true;
    }
  });
  expect(caught).toBe(true);
});

test('and the sources as they are, loaded the same way, are not', () => {
  const { FORMS, live } = loadMutated<typeof Lives>('forms.ts');
  expect(() => live({ ...FORMS.own, runs: 100 })).not.toThrow();
});
