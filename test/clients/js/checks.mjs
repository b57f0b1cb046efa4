/** Each check is printed as a line of JSON, whatever becomes of it. */
import { deepStrictEqual } from 'node:assert';

export const URL = process.env.PERDURA_URL;
export const TOKEN = process.env.PERDURA_TOKEN;

export async function check(name, act) {
  const outcome = await act().then(
    () => ({ check: name, result: 'passed' }),
    (error) => ({ check: name, result: 'failed', why: `${error?.name}: ${error?.message}`.replace(/\s+/g, ' ').slice(0, 500) }),
  );
  console.log(JSON.stringify(outcome));
}

/** What is there with this library alone, or not with what stands behind this gateway. */
export function cannot(name, why) {
  console.log(JSON.stringify({ check: name, result: 'apart', why }));
}

/** Without the classes that libraries make of what they are given. */
export function same(found, expected) {
  deepStrictEqual(found === undefined ? undefined : JSON.parse(JSON.stringify(found)), expected);
}

/** The error of what has to fail. */
export async function failing(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('it did not fail');
}

/** A picture of one pixel. */
export const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
export const DATA_URL = `data:image/png;base64,${PNG}`;
export const BOTH = 'call weather {"city": "Oslo"}\ncall time_in {"city": "Oslo"}';
