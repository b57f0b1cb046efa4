/** In which forms lives are tried, each by a test file of its own, so that they run side by side. By count: a busy machine takes longer, and tries as much. */
import fc from 'fast-check';
import { choices, type Choice } from './choices.js';
import { differences, problemsOf } from './living.js';
import type { Kind } from './world.js';

const LONG = process.env['PERDURA_LONG'] === '1';

export interface Life {
  readonly kind: Kind;
  readonly choices: readonly Choice[];
}

interface Form {
  readonly runs: number;
  readonly lives: fc.Arbitrary<Life>;
  readonly check: (choices: readonly Choice[], kind: Kind) => string[];
}

const of = (kinds: readonly Kind[], made: fc.Arbitrary<Choice[]>): fc.Arbitrary<Life> =>
  fc.record({ kind: fc.constantFrom(...kinds), choices: made });

/** Together about a minute of one processor. */
export const FORMS = {
  own: { runs: 600, lives: of(['own'], choices(120, { steps: false })), check: problemsOf },
  stepped: { runs: 550, lives: of(['own'], choices(120)), check: problemsOf },
  begun: { runs: 600, lives: of(['fork', 'resume', 'sub-agent'], choices(100)), check: problemsOf },
  'handed-over': { runs: 350, lives: of(['own', 'own', 'fork'], choices(100, { due: false })), check: differences },
} satisfies Readonly<Record<string, Form>>;

/** Throws the shortest life that breaks a rule, as an entry of `regressions.ts`. */
export function live({ runs, lives, check }: Form, { shrinks = true } = {}): void {
  const tried = fc.check(
    fc.property(lives, (life) => check(life.choices, life.kind).length === 0),
    { numRuns: LONG ? runs * 25 : runs, endOnFailure: !shrinks },
  );
  if (!tried.failed) return;
  const life = tried.counterexample?.[0];
  if (!life) throw new Error(`no life was found: ${String(tried.errorInstance)}`);
  const problems = (() => {
    try {
      return check(life.choices, life.kind);
    } catch (error) {
      return [String(error)];
    }
  })();
  const lines = life.choices.map((choice) => `    ${JSON.stringify(choice)},`);
  throw new Error(
    [`seed ${tried.seed}: ${problems.join('; ')}`, 'For regressions.ts:', `{ kind: '${life.kind}', choices: [`, ...lines, '] }'].join('\n'),
  );
}
