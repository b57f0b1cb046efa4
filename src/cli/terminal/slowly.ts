import type { Output } from './output.js';

/** Says what is being done once it has taken a second. */
export async function slowly<T>(output: Output, what: string, work: Promise<T>): Promise<T> {
  const timer = setTimeout(() => output.note(`${what} …`), 1000);
  try {
    return await work;
  } finally {
    clearTimeout(timer);
  }
}
