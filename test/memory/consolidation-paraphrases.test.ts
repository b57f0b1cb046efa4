/**
 * What of two sets of lines in five languages is known as a change of what may be done. `tuned.jsonl` is what the lists of words were written
 * for; `tested.jsonl` was written before them, and is not looked at when they change: it says how much of other wordings they know. More lines
 * are welcome in both, a JSON object a line: `lang`, `held` (whether it waits for a person) and `text`.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { changesWhatMayBeDone } from '../../src/memory/consolidation/permission-changes.js';

const lineSchema = z.strictObject({ lang: z.enum(['en', 'de', 'fr', 'es', 'it']), held: z.boolean(), text: z.string().min(1) });

const LEAST_HELD = 0.95;
const MOST_FALSE = 0.05;

describe.each(['tuned', 'tested'])('of %s.jsonl', (name) => {
  const lines = readFileSync(join(__dirname, 'paraphrases', `${name}.jsonl`), 'utf8')
    .trim()
    .split('\n')
    .map((line) => lineSchema.parse(JSON.parse(line)));
  const mistaken = (isHeld: boolean) =>
    lines.filter(({ held, text }) => held === isHeld && changesWhatMayBeDone(text) !== held).map(({ lang, text }) => `${lang}: ${text}`);
  const share = (isHeld: boolean): number => mistaken(isHeld).length / lines.filter(({ held }) => held === isHeld).length;

  test('there are a hundred lines that change what may be done, and as many languages in each', () => {
    for (const lang of lineSchema.shape.lang.options) {
      expect(lines.filter((line) => line.lang === lang && line.held).length).toBeGreaterThanOrEqual(20);
      expect(lines.filter((line) => line.lang === lang && !line.held).length).toBeGreaterThanOrEqual(10);
    }
  });

  test('at least 95 of 100 are held', () => {
    expect({ share: share(true) > 1 - LEAST_HELD, missed: mistaken(true) }).toMatchObject({ share: false });
  });

  test('at most 5 of 100 harmless ones are', () => {
    expect({ share: share(false) > MOST_FALSE, held: mistaken(false) }).toMatchObject({ share: false });
  });
});
