import { finishedTools } from 'perdura';
import { createWorker } from 'perdura/worker';
import { bookExpense } from './book-expense.js';

const worker = createWorker({
  tools: [bookExpense],
  // Told of everything that happens; nothing waits for it.
  observers: [
    (event, { conversation }) => {
      for (const { name, outcome, ms } of finishedTools(event)) console.log(`${conversation}: ${name} ended ${outcome} after ${ms} ms`);
    },
  ],
  onReady: () => console.log('ready'),
});

await worker.run();
