/** Errors as OpenAI's clients read them. */
import type { Context } from 'hono';
import { isUntaken, toProblem, type Problem } from '../core/errors.js';

export interface OpenaiError {
  readonly message: string;
  readonly type: string;
  readonly param: string | null;
  readonly code: string | null;
}

const CODES: Readonly<Record<string, string>> = {
  unauthorized: 'invalid_api_key',
  'too-many-requests': 'rate_limit_exceeded',
  'queue-full': 'rate_limit_exceeded',
  'model-not-found': 'model_not_found',
  unsupported: 'unsupported_parameter',
};

export function toOpenaiError({ status, type, message, param }: Problem): OpenaiError {
  const kind = status === 429 ? 'rate_limit_error' : status >= 500 ? 'server_error' : 'invalid_request_error';
  return { message, type: kind, param: param ?? null, code: CODES[type] ?? type.replaceAll('-', '_') };
}

export function answerOpenaiProblem(context: Context, problem: Problem): Response {
  if (!isUntaken(problem)) context.header('x-should-retry', 'false');
  return context.json({ error: toOpenaiError(problem) }, problem.status);
}

export function explainError(error: unknown): OpenaiError {
  return toOpenaiError(toProblem(error));
}
