import { createWorker } from 'perdura/worker';
import { bookExpense } from './book-expense.js';

const worker = createWorker({
  tools: [bookExpense],
  // Told of everything that happens; nothing waits for it.
  observers: [
    (event, { conversation }) => {
      if (event.kind === 'tool-finished') console.log(`${conversation}: ${event.result.name} ended ${event.result.outcome}`);
    },
  ],
  onReady: () => console.log('ready'),
});

await worker.run();
