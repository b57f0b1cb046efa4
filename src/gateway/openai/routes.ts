/** OpenAI's API, for its clients: an agent is a model, and a conversation is what goes on behind it. */
import type { GatewayApp } from '../context.js';
import { addChatCompletions } from './chat.js';
import { addResponses } from './responses.js';
import { GatewayError } from '../core/errors.js';

export { answerOpenaiProblem } from './errors.js';

export function addOpenaiRoutes(app: GatewayApp): void {
  for (const add of [addModels, addChatCompletions, addResponses]) add(app);
}

/** `/v1/models`: the agents, as both OpenAI's and Anthropic's clients read them. */

/** When an agent was made is not known. */
const CREATED = 0;

function addModels(app: GatewayApp): void {
  app.get('/v1/models', async (context) => {
    const agents = await context.get('agents')();
    return context.json({
      object: 'list',
      data: agents.map(toModel),
      has_more: false,
      first_id: agents[0] ?? null,
      last_id: agents.at(-1) ?? null,
    });
  });
  app.get('/v1/models/:model', async (context) => {
    const name = context.req.param('model').replace(/^agent:/, '');
    if (!(await context.get('agents')()).includes(name)) {
      throw new GatewayError({ status: 404, type: 'model-not-found', message: 'there is no agent of that name', param: 'model' });
    }
    return context.json(toModel(name));
  });
}

function toModel(name: string): object {
  return {
    id: name,
    object: 'model',
    created: CREATED,
    owned_by: 'perdura',
    type: 'model',
    display_name: name,
    created_at: new Date(CREATED).toISOString(),
  };
}
