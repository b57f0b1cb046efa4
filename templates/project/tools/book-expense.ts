import { appendFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { defineTool, z } from 'perdura';

interface Expense {
  readonly key: string;
  readonly what: string;
  readonly cents: number;
}

export const bookExpense = defineTool({
  name: 'book_expense',
  description: 'Books one expense and answers the new total. Use it for every expense that a person names.',
  input: z.object({ what: z.string().min(1), cents: z.int().positive() }),
  // A worker may die in the middle of a call; another one then runs the call again. That is safe here, because every attempt at
  // one call has the same `idempotencyKey`, and a line with that key is written once.
  policy: { repeatable: true, timeoutMs: 5_000 },
  async run({ what, cents }, { workspace, idempotencyKey }) {
    const book = join(workspace, 'book.jsonl');
    const expenses = await read(book);
    if (!expenses.some(({ key }) => key === idempotencyKey)) {
      const expense = { key: idempotencyKey, what, cents };
      await appendFile(book, `${JSON.stringify(expense)}\n`);
      expenses.push(expense);
    }
    const total = expenses.reduce((sum, expense) => sum + expense.cents, 0);
    return `Booked ${what}. The total is ${(total / 100).toFixed(2)}.`;
  },
});

async function read(book: string): Promise<Expense[]> {
  const text = await readFile(book, 'utf8').catch(() => '');
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Expense);
}
