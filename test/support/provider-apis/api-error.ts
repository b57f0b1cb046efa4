/** A refusal, and the words and the shape that it has in the Messages API. */

export interface ApiError {
  readonly status: number;
  readonly type: string;
  readonly message: string;
  /** A second word for machines, with APIs that have one. */
  readonly code?: string;
}

const typeOfStatus: ReadonlyMap<number, string> = new Map([
  [400, 'invalid_request_error'],
  [401, 'authentication_error'],
  [402, 'billing_error'],
  [403, 'permission_error'],
  [404, 'not_found_error'],
  [409, 'conflict_error'],
  [413, 'request_too_large'],
  [429, 'rate_limit_error'],
  [500, 'api_error'],
  [502, 'api_error'],
  [504, 'timeout_error'],
  [529, 'overloaded_error'],
]);

const messageOfStatus: ReadonlyMap<number, string> = new Map([
  [400, 'Your credit balance is too low to access the Anthropic API.'],
  [401, 'invalid x-api-key'],
  [402, 'Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.'],
  [403, 'Your API key does not have permission to use the specified resource.'],
  [404, 'model: claude-none'],
  [409, 'The request conflicts with the current state of the resource.'],
  [413, 'Request exceeds the maximum size'],
  [429, "This request would exceed your organization's rate limit. Please try again later."],
  [500, 'Internal server error'],
  [504, 'The request timed out.'],
  [529, 'Overloaded'],
]);

/** The error that a status stands for, in the API's usual words unless told others. */
export function apiError(status: number, message?: string, type?: string): ApiError {
  return {
    status,
    type: type ?? typeOfStatus.get(status) ?? (status < 500 ? 'invalid_request_error' : 'api_error'),
    message: message ?? messageOfStatus.get(status) ?? `HTTP ${status}`,
  };
}

export function invalidRequest(message: string): ApiError {
  return apiError(400, message);
}

/** The body of an error; too large a request is refused at the door, in a shape without the outer type. */
export function errorBody(error: ApiError, requestId: string): object {
  const inner = { type: error.type, message: error.message };
  return error.status === 413 ? { error: inner } : { type: 'error', error: inner, request_id: requestId };
}
