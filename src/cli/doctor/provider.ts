/** Whether the provider takes the key: by asking for one token, since nothing else tells. */
import type { Config } from '../../config.js';
import { createModels } from '../../models/choose.js';
import { splitModel } from '../../models/registry.js';
import { messageOf } from '../exit.js';
import type { Finding } from './finding.js';
import { broken, ok, skipped } from './finding.js';

const PATIENCE = 20_000;

export async function checkProvider({ anthropicApiKey, anthropicBaseUrl, model }: Config): Promise<Finding> {
  if (anthropicApiKey === undefined) {
    return skipped('Model', 'ANTHROPIC_API_KEY is not set: a scripted stand-in answers, which is not a model');
  }
  const begin = Date.now();
  try {
    const { model: name } = splitModel(model);
    const found = createModels({ anthropic: { apiKey: anthropicApiKey, baseURL: anthropicBaseUrl } })(model);
    await found.stream(
      { model: name, maxTokens: 1, system: '', tools: [], messages: [{ role: 'user', text: 'hi' }] },
      { signal: AbortSignal.timeout(PATIENCE), onDelta: () => {}, idleMs: PATIENCE, totalMs: PATIENCE },
    );
    return ok('Model', `${model} answers with this key, ${Date.now() - begin} ms for one token`);
  } catch (error) {
    return broken('Model', messageOf(error), 'export ANTHROPIC_API_KEY=… with a key that is valid, or correct PERDURA_MODEL');
  }
}
