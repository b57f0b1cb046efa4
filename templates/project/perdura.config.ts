import type { Extensions } from 'perdura';
import { bookExpense } from './tools/book-expense';

/** What your agents have beside Perdura's own tools. Every worker of this folder reads it. */
const extensions: Extensions = {
  tools: [bookExpense],
};

export default extensions;
