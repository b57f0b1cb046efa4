import { finishedTools } from 'perdura';
import { bookExpense } from './book-expense.js';

/** What a worker of this project has beside Perdura's own: `npx perdura up` and `npx perdura worker` read it here, `worker.js` too. */
export default {
  tools: [bookExpense],
  observers: [
    // Told of everything that happens; nothing waits for it.
    (event, { conversation }) => {
      for (const { name, outcome, ms } of finishedTools(event)) console.log(`${conversation}: ${name} ended ${outcome} after ${ms} ms`);
    },
  ],
};
