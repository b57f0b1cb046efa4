import { FORMS, tryLives } from './nothing-is-lost.js';

jest.mock('@temporalio/activity', () => ({ log: { warn: () => undefined, info: () => undefined } }));

test.each(FORMS)(
  'trimming %s, compaction by itself %p, a model that takes %p tokens: no request is without the question, the goal and the open tasks',
  async (...form) => {
    const all = await tryLives(form, 30);
    // What was to be tried was tried.
    const names = form[1] ? ['rewinds', 'forks', 'tooLarge', 'compactions'] : ['rewinds', 'forks', 'tooLarge', 'truncations'];
    expect(Math.min(...names.map((name) => all[name] ?? 0))).toBeGreaterThan(0);
  },
);
