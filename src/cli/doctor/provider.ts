/** Whether the provider takes the key: by asking for a few tokens, since nothing else tells. */
import { needsStandIn, providerSettings, type Config } from '../../config.js';
import { createModels } from '../../models/choose.js';
import { splitModel } from '../../models/registry.js';
import { messageOf } from '../terminal/exit.js';
import type { Finding } from './finding.js';
import { broken, ok, skipped } from './finding.js';

const PATIENCE = 20_000;

export async function checkProvider(config: Config): Promise<Finding> {
  if (needsStandIn(config)) {
    return skipped('Model', 'ANTHROPIC_API_KEY is not set: a scripted stand-in answers, which is not a model');
  }
  const { model } = config;
  const begin = Date.now();
  try {
    const { model: name } = splitModel(model);
    const found = createModels(providerSettings(config))(model);
    await found.stream(
      // OpenAI's Responses refuse fewer.
      { model: name, maxTokens: 16, system: '', tools: [], messages: [{ role: 'user', text: 'hi' }] },
      { signal: AbortSignal.timeout(PATIENCE), onDelta: () => {}, idleMs: PATIENCE, totalMs: PATIENCE },
    );
    return ok('Model', `${model} answers, ${Date.now() - begin} ms for a few tokens`);
  } catch (error) {
    return broken(
      'Model',
      messageOf(error),
      'export a key that is valid for this provider (ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY), or correct PERDURA_MODEL',
    );
  }
}
