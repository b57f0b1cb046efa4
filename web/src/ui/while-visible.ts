/** Does something now, and again after each pause, as long as the page can be seen; at once when it can be seen again. */
export function whileVisible(
  act: () => Promise<unknown>,
  everyMs: number,
  { alsoHidden }: { readonly alsoHidden?: number } = {},
): () => void {
  let timer: number | undefined;
  let isLeft = false;
  const next = (): void => {
    clearTimeout(timer);
    const pause = document.hidden ? alsoHidden : everyMs;
    if (!isLeft && pause !== undefined) timer = setTimeout(run, pause);
  };
  const run = (): void => void act().finally(next);
  const onChange = (): void => (document.hidden ? next() : run());
  document.addEventListener('visibilitychange', onChange);
  run();
  return () => {
    isLeft = true;
    clearTimeout(timer);
    document.removeEventListener('visibilitychange', onChange);
  };
}
