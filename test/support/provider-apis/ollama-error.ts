/** A refusal in the words and the shape of Ollama. */
import type { ApiError } from './api-error.js';

const messageOfStatus: ReadonlyMap<number, string> = new Map([
  [401, 'unauthorized'],
  [403, 'forbidden'],
  [404, "model 'none' not found"],
  [429, 'too many concurrent requests'],
  [500, 'model runner has unexpectedly stopped, this may be due to resource limitations or an internal error'],
  [503, 'server busy, please try again.  maximum pending requests exceeded'],
]);

/** An overload is a 503 here. */
export function ollamaError(asked: number, message?: string): ApiError {
  const status = asked === 529 ? 503 : asked;
  return { status, type: '', message: message ?? messageOfStatus.get(status) ?? `HTTP ${status}` };
}

export function ollamaErrorBody({ message }: ApiError): object {
  return { error: message };
}
