/** Without a worker a query is answered by nobody, and Temporal waits for one half a minute. */
const PATIENCE_MS = 10_000;

/** Only a worker can say how the conversation stands; what Temporal knows is worth showing without it. */
export async function orSilence<T>(asked: Promise<T>, instead: T, patienceMs = PATIENCE_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const patience = new Promise<T>((resolve) => (timer = setTimeout(() => resolve(instead), patienceMs)));
  const answer = asked.catch((error: unknown) => {
    if ((error as { kind?: unknown }).kind === 'not-found') throw error;
    return instead;
  });
  answer.catch(() => undefined);
  try {
    return await Promise.race([answer, patience]);
  } finally {
    clearTimeout(timer);
  }
}
