/** The lives can fail: each mutant of the decisions breaks a rule within what every day's run tries, the lives that once broke one too. */
import type * as Lives from './forms.js';
import type * as Living from './living.js';
import { loadMutated } from './mutated.js';
import { mutants } from './mutants.js';
import { regressions } from './regressions.js';

test.each(mutants)('one that $name is caught', (mutant) => {
  const { FORMS, live } = loadMutated<typeof Lives>('forms.ts', mutant);
  const { problemsOf } = loadMutated<typeof Living>('living.ts', mutant);
  const isCaught = (live: () => boolean): boolean => {
    try {
      return live();
    } catch {
      return true;
    }
  };
  const caught =
    regressions.some(({ choices, kind }) => isCaught(() => problemsOf(choices, kind).length > 0)) ||
    Object.values(FORMS).some((form) => isCaught(() => (live(form, { shrinks: false }), false)));
  expect(caught).toBe(true);
});

test('and the sources as they are, loaded the same way, are not', () => {
  const { FORMS, live } = loadMutated<typeof Lives>('forms.ts');
  expect(() => live({ ...FORMS.own, runs: 100 })).not.toThrow();
});
