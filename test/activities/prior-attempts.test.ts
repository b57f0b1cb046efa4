import { type Asker, createPriorAttempts, type PriorAttempts } from '../../src/activities/ask-model.js';
import type { Usage } from '../../src/records/message.js';

/** Asks for 10 tokens each time, and answers with the question. */
function countingAsker(): Asker & { readonly asked: string[] } {
  const asked: string[] = [];
  const spent = (): Usage => ({ inputTokens: 10 * asked.length, cachedTokens: 0, outputTokens: 0, costUsd: 0 });
  return { asked, spent, model: () => 'own/model', ask: (_, text) => (asked.push(text), Promise.resolve(`of ${text}`)) };
}

/** As Temporal does it: the last beat of an attempt, as JSON, is what the next one finds. */
function attempts(): { readonly next: () => PriorAttempts } {
  let last: unknown;
  return {
    next: () =>
      createPriorAttempts({ heartbeat: (details) => void (last = JSON.parse(JSON.stringify(details))), info: { heartbeatDetails: last } }),
  };
}

test('another attempt asks no piece again, asks for the summary again, and counts what both have cost', async () => {
  const life = attempts();
  const [first, firstPieces, firstSummary] = [life.next(), countingAsker(), countingAsker()];
  const ask = first.counted(firstPieces, { keeps: true });
  await Promise.all([ask('notes', 'piece 1'), ask('notes', 'piece 2')]);
  await first.counted(firstSummary)('summary', 'all');
  expect(first.spent().inputTokens).toBe(30);

  const [second, pieces, summary] = [life.next(), countingAsker(), countingAsker()];
  const again = second.counted(pieces, { keeps: true });
  expect(await again('notes', 'piece 1')).toBe('of piece 1');
  await again('notes', 'piece 3');
  await second.counted(summary)('summary', 'all');
  expect([pieces.asked, summary.asked]).toEqual([['piece 3'], ['all']]);
  expect(second.spent().inputTokens).toBe(50);
});

test('what is too much for a heartbeat is not kept, and its cost is', async () => {
  const life = attempts();
  const huge = { ...countingAsker(), spent: () => ({ inputTokens: 7, cachedTokens: 0, outputTokens: 0, costUsd: 0 }) };
  await life.next().counted({ ...huge, ask: () => Promise.resolve('x'.repeat(200_000)) }, { keeps: true })('notes', 'piece');
  const second = life.next();
  expect(second.details()).toEqual({ usage: { inputTokens: 7, cachedTokens: 0, outputTokens: 0, costUsd: 0 }, answers: {} });
});
