/**
 * A model that is instant, as the floors' is: the request is rendered to the bytes that would go out, and answered here.
 * The wire and whoever is at its other end are no part of what a turn costs us; the row `first-delta` has them.
 */
import type { ConversationMessage } from '../src/records/message.js';
import { renderRequest } from '../src/models/anthropic/render.js';
import type { Model, ModelResponse } from '../src/models/model.js';
import { ANSWER } from './bodies.js';
import { wishIn } from './wish.js';

const usage = { inputTokens: 1_234, cachedTokens: 0, outputTokens: 123 };

export const instantModel: Model = {
  provider: 'anthropic',
  stream(request, { onDelta }): Promise<ModelResponse> {
    JSON.stringify(renderRequest(request));
    const wish = latestWish(request.messages);
    if (wish.kind === 'tool') {
      const { name, input } = wish;
      onDelta({ kind: 'tool-call', name });
      return Promise.resolve({ blocks: [{ kind: 'tool-call', callId: 'toolu_1', name, input }], stop: 'tool-calls', usage });
    }
    onDelta({ kind: 'text', text: ANSWER });
    return Promise.resolve({ blocks: [{ kind: 'text', text: ANSWER }], stop: 'end', usage });
  },
};

function latestWish(messages: readonly ConversationMessage[]): ReturnType<typeof wishIn> {
  const at = messages.findLastIndex((message) => message.role === 'user');
  const asked = messages[at];
  const calls = messages.slice(at + 1).filter((message) => message.role === 'tool').length;
  return wishIn(asked?.role === 'user' && typeof asked.text === 'string' ? asked.text : '', calls);
}
