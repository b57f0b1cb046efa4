/** OpenAI's API, for its clients: an agent is a model, and a conversation is what goes on behind it. */
import type { GatewayApp } from '../context.js';
import { addChatCompletions } from './chat.js';
import { addModels } from './models.js';
import { addResponses } from './responses.js';

export { answerOpenaiProblem } from './errors.js';

export function addOpenaiRoutes(app: GatewayApp): void {
  for (const add of [addModels, addChatCompletions, addResponses]) add(app);
}
