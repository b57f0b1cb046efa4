/** `perdura heal`: writes again what the store has lost, from Temporal's history. */
import { connectTemporal } from '../../client.js';
import { heal as healConversation } from '../../heal/heal.js';
import { createRememberedBy } from '../../heal/restore-memory.js';
import { openStore } from '../../stores/open.js';
import { loadUserConfig } from '../../extensions/user-config.js';
import type { CliContext } from '../session/context.js';
import { EXIT } from '../terminal/exit.js';
import { findConversation } from '../args/find-conversation.js';
import { temporalCommand } from '../session/temporal-command.js';
import { toTerminalJson } from '../terminal/terminal-text.js';
import { inWords, isWhole } from '../views/healed.js';
import { withClient } from '../session/with-client.js';

export function heal(context: CliContext, given: string): Promise<number> {
  return withClient(context, {}, async (desk) => {
    const { client, config, output, globals, temporal, slowly } = desk;
    const id = await findConversation(desk, given);
    const key = await client.key(id);
    const { connection } = await connectTemporal(config);
    const own = await loadUserConfig(config.cwd);
    const store = openStore(config);
    try {
      const { workflowService: service } = connection;
      const rememberedBy = createRememberedBy(service, { namespace: key.namespace, taskQueue: config.taskQueue });
      const dependencies = { service, store, processors: own.processors?.input, rememberedBy };
      const healed = await slowly(`reading the history of ${id}`, healConversation(dependencies, key));
      if (globals.output !== 'text') output.line(toTerminalJson({ id, ...healed }, globals.output === 'json' ? 2 : undefined));
      else for (const line of inWords(id, healed)) output.line(line);
      for (const problem of healed.problems) output.problem(problem);
      if (globals.output === 'text') output.note(temporalCommand(temporal, ['workflow', 'show', '-w', id]));
      return isWhole(healed) ? EXIT.ok : EXIT.failed;
    } finally {
      await store.close();
      await connection.close();
    }
  });
}
