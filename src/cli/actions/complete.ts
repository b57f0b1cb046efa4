/** `perdura complete KIND`: what a shell offers on Tab, a line for each. It says nothing else, asks nothing, and what it cannot know it leaves out. */
import { agentNames, agentsFolder } from '../../agents/agents-folder.js';
import { loadAgent } from '../../agents/load-agent.js';
import { ID_PATTERN } from '../../conversation/protocol/contract.js';
import { knownModels } from '../../models/known-models.js';
import type { Config } from '../../config.js';
import type { CliContext } from '../session/context.js';
import { withClient } from '../session/with-client.js';
import { EXIT } from '../terminal/exit.js';

export type Completable = 'conversations' | 'agents' | 'models';

/** Newest first; who wants an older one types its beginning and looks with `perdura list`. */
const MAX_CONVERSATIONS = 100;

/** Shells read words as code: bash runs `$(…)` in a list of words, and names of folders and models come from anywhere. */
const HARMLESS = /^[A-Za-z0-9][\w./:@-]{0,199}$/;

export async function complete(context: CliContext, kind: Completable): Promise<number> {
  const offer = (words: readonly string[]): number => {
    for (const word of new Set(words)) if (HARMLESS.test(word)) context.output.line(word);
    return EXIT.ok;
  };
  switch (kind) {
    case 'conversations':
      return withClient(context, {}, async ({ client }) => {
        const listed = await client.list({ limit: MAX_CONVERSATIONS });
        // A sub-agent's has a colon, at which bash splits words.
        return offer(listed.map(({ id }) => id).filter((id) => ID_PATTERN.test(id)));
      });
    case 'agents':
      return offer(await agentNames(context.config()));
    case 'models':
      return offer(['default', ...(await modelsOf(context.config())), ...knownModels()]);
  }
}

/** What this folder uses. */
async function modelsOf(config: Config): Promise<readonly string[]> {
  const agents = await agentNames(config);
  const named = await Promise.all(
    agents.map((agent) =>
      loadAgent(agentsFolder(config), agent).then(
        ({ config: { model, models = [] } }) => [...(model ? [model] : []), ...models],
        () => [],
      ),
    ),
  );
  return [config.model, ...named.flat()];
}
