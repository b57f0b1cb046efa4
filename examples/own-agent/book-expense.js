import { appendFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { defineTool, z } from 'perdura';

export const bookExpense = defineTool({
  name: 'book_expense',
  description: 'Books one expense and answers the new total. Use it for every expense that a person names.',
  input: z.object({ what: z.string().min(1), cents: z.int().positive() }),
  // The line says which call wrote it, so a second attempt at the same call finds it and books nothing: it may be repeated.
  policy: { repeatable: true, timeoutMs: 5_000 },
  async run({ what, cents }, { workspace, idempotencyKey }) {
    const book = join(workspace, 'book.jsonl');
    const lines = (await readFile(book, 'utf8').catch(() => '')).split('\n').filter(Boolean);
    const entries = lines.map((line) => JSON.parse(line));
    const entry = { key: idempotencyKey, what, cents };
    if (!entries.some(({ key }) => key === idempotencyKey)) {
      await appendFile(book, `${JSON.stringify(entry)}\n`);
      entries.push(entry);
    }
    const total = entries.reduce((sum, one) => sum + one.cents, 0);
    return `Booked ${what}. The total is ${(total / 100).toFixed(2)}.`;
  },
});
