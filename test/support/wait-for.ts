/** Asks until the answer is the one that is waited for; a test never sleeps for a time that it guessed. */
const FIRST_PAUSE_MS = 20;
const MAX_PAUSE_MS = 200;

/** The bound is for what hangs: 30 s at least. */
export async function waitFor<T>(ask: () => T | Promise<T>, isThere: (value: T) => boolean, limitMs = 150_000): Promise<T> {
  const until = Date.now() + limitMs;
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(MAX_PAUSE_MS, pause * 1.3)) {
    const value = await ask();
    if (isThere(value)) return value;
    // clock: only a hang meets this bound
    if (Date.now() > until)
      throw new Error(`waited ${limitMs} ms in vain for ${String(isThere)}; last seen: ${JSON.stringify(value)?.slice(0, 1_000)}`);
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

/** Temporal deletes a conversation's runs a moment after it has answered. */
export async function waitUntilGone({ describe }: { describe(id: string): Promise<unknown> }, id: string): Promise<void> {
  const look = (): Promise<unknown> =>
    describe(id).then(
      () => 'there',
      (error: { readonly kind?: string }) => error.kind,
    );
  await waitFor(look, (found) => found === 'not-found');
}
