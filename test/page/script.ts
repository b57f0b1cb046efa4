/** A model that answers by what was said, so that a conversation reads as one of people's own. */
import { saidIn } from '../support/echo-model.js';
import type { ApiRequest } from '../support/provider-apis/api-request.js';
import { text, type Reply } from '../support/provider-apis/reply.js';

export interface Script {
  readonly answer: (request: ApiRequest) => Reply;
  /** What the model says, call after call, to this message; then "Understood.". */
  on(said: string, ...lines: readonly Reply[]): void;
}

export function createScript(): Script {
  const lines = new Map<string, Reply[]>();
  return {
    answer(request) {
      const said = saidIn(request).findLast((words) => lines.has(words)) ?? '';
      return lines.get(said)?.shift() ?? text('Understood.');
    },
    on: (said, ...replies) => void lines.set(said, [...replies]),
  };
}
