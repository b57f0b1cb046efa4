/** Undefined where it takes longer; the promise can be waited for again. */
export async function within<T>(ms: number, waited: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => (timer = setTimeout(resolve, ms, undefined)));
  try {
    return await Promise.race([waited, late]);
  } finally {
    clearTimeout(timer);
  }
}
