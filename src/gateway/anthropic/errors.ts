/** Errors as Anthropic's clients read them. */
import type { Context } from 'hono';
import { isUntaken, type Problem } from '../core/errors.js';
import { THREAD_NOT_FOUND } from './thread.js';

const TYPES: Partial<Record<Problem['status'], string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  500: 'api_error',
  503: 'overloaded_error',
};

export function toAnthropicError({ status, type, message }: Problem): object {
  const details = type === THREAD_NOT_FOUND && { details: { error_code: 'thread_not_found' } };
  return { type: 'error', error: { type: TYPES[status] ?? 'invalid_request_error', message, ...details } };
}

export function answerAnthropicProblem(context: Context, problem: Problem): Response {
  if (!isUntaken(problem)) context.header('x-should-retry', 'false');
  return context.json(toAnthropicError(problem), problem.status);
}
