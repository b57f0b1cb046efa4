import { FORMS, tryLives } from './nothing-is-lost.js';

jest.mock('@temporalio/activity', () => ({ log: { warn: () => undefined, info: () => undefined } }));

test.each(FORMS)(
  'trimming %s, compaction by itself %p, a model that takes %p tokens: no request is without the question, the goal and the open tasks',
  async (...form) => expect((await tryLives(form, 4))['calls']).toBeGreaterThan(20),
);
