/** A workflow of an application's own, beside ours in one bundle. */
export function adds(...numbers: readonly number[]): Promise<number> {
  return Promise.resolve(numbers.reduce((sum, number) => sum + number, 0));
}
