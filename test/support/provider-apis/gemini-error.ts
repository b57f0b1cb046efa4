/** A refusal in the words and the shape of the Gemini API. */
import type { ApiError } from './api-error.js';

const statusWords: ReadonlyMap<number, string> = new Map([
  [400, 'INVALID_ARGUMENT'],
  // What the API says of a wrong key, with status 400; a proxy may say 401.
  [401, 'UNAUTHENTICATED'],
  [403, 'PERMISSION_DENIED'],
  [404, 'NOT_FOUND'],
  [429, 'RESOURCE_EXHAUSTED'],
  [500, 'INTERNAL'],
  [503, 'UNAVAILABLE'],
  [504, 'DEADLINE_EXCEEDED'],
]);

const messageOfStatus: ReadonlyMap<number, string> = new Map([
  [401, 'Request had invalid authentication credentials.'],
  [403, 'The caller does not have permission'],
  [404, 'models/gemini-none is not found for API version v1beta, or is not supported for generateContent.'],
  [429, 'You exceeded your current quota, please check your plan and billing details.'],
  [500, 'An internal error has occurred. Please retry or report in https://developers.generativeai.google/guide/troubleshooting'],
  [503, 'The model is overloaded. Please try again later.'],
]);

/** An overload is a 503 here. */
export function geminiError(asked: number, message?: string, type?: string): ApiError {
  const status = asked === 529 ? 503 : asked;
  const usual = statusWords.get(status) ?? (status < 500 ? 'INVALID_ARGUMENT' : 'INTERNAL');
  return { status, type: type ?? usual, message: message ?? messageOfStatus.get(status) ?? `HTTP ${status}` };
}

/** `code` is the reason among the details. */
export function geminiErrorBody({ status, type, message, code }: ApiError): object {
  const details = code === undefined ? [] : [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: code }];
  return { error: { code: status, message, status: type, ...(details.length > 0 && { details }) } };
}
