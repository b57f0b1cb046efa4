/** Reads what was thrown. Not by `instanceof`: an error may come from another realm, or from another copy of its class. */

/** Its message; the name of an error that has none. */
export function errorMessage(error: unknown): string {
  const { message, name } = errorFields(error);
  if (typeof message !== 'string') return String(error);
  return message || String(name ?? '');
}

/** Its code where that is a word, as Node's `ENOENT` is. */
export function errorCode(error: unknown): string | undefined {
  const { code } = errorFields(error);
  return typeof code === 'string' ? code : undefined;
}

/** The first code of the error and its causes: fetch says `fetch failed`, and its cause has the code. */
export function firstErrorCode(error: unknown): string | undefined {
  for (let at = error; at !== undefined && at !== null; at = errorFields(at).cause) {
    const code = errorCode(at);
    if (code !== undefined) return code;
  }
  return undefined;
}

interface ErrorFields {
  readonly message?: unknown;
  readonly name?: unknown;
  readonly code?: unknown;
  readonly cause?: unknown;
  /** Of HTTP. */
  readonly status?: unknown;
  readonly data?: unknown;
}

/** None of what is no object. */
export function errorFields(error: unknown): ErrorFields {
  return typeof error === 'object' && error !== null ? error : {};
}

/** A setting has a value that cannot be used; the message names it and says what to write instead. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}
