/** `perdura heal`: writes again what the store has lost, from Temporal's history. */
import { connectTemporal } from '../../client.js';
import { heal as healConversation, type Healed } from '../../heal/heal.js';
import { createRememberedBy } from '../../heal/restore-memory.js';
import { openStore } from '../../stores/open.js';
import { loadUserConfig } from '../../extensions/user-config.js';
import type { CliContext } from '../session/context.js';
import { EXIT } from '../terminal/exit.js';
import { findConversation } from '../args/find-conversation.js';
import { toTerminalJson } from '../terminal/terminal-text.js';
import { withClient, temporalCommand } from '../session/with-client.js';
import { formatCount } from '../views/quantities.js';

export function heal(context: CliContext, given: string): Promise<number> {
  return withClient(context, {}, async (desk) => {
    const { client, config, output, globals, temporal, withSlowNotice } = desk;
    const id = await findConversation(desk, given);
    const key = await client.key(id);
    const { connection } = await connectTemporal(config);
    const own = await loadUserConfig(config.cwd);
    const store = openStore(config);
    try {
      const { workflowService: service } = connection;
      const rememberedBy = createRememberedBy(service, { namespace: key.namespace, taskQueue: config.taskQueue });
      const dependencies = { service, store, processors: own.processors?.input, rememberedBy };
      const healed = await withSlowNotice(`reading the history of ${id}`, healConversation(dependencies, key));
      if (globals.output !== 'text') output.line(toTerminalJson({ id, ...healed }, globals.output === 'json' ? 2 : undefined));
      else for (const line of inWords(id, healed)) output.line(line);
      for (const problem of healed.problems) output.problem(problem);
      if (globals.output === 'text') output.explain(temporalCommand(temporal, ['workflow', 'show', '-w', id]));
      return isWhole(healed) ? EXIT.ok : EXIT.failed;
    } finally {
      await store.close();
      await connection.close();
    }
  });
}

/** What `perdura heal` found, in words. */
function isWhole({ missing, restored, problems }: Healed): boolean {
  return missing === restored && problems.length === 0;
}

export function inWords(id: string, { runs, known, missing, restored, lostBodies, complete }: Healed): string[] {
  const read = `${id}: history has ${counted(known, 'entry', 'entries')} in ${counted(runs, 'run', 'runs')}`;
  const found =
    missing === 0
      ? 'the store has them all'
      : restored === missing
        ? `${counted(missing, 'was', 'were')} missing in the store and ${missing === 1 ? 'is' : 'are'} back`
        : `${counted(missing, 'was', 'were')} missing in the store, ${formatCount(restored)} back; run it again, and look at the store if it stays so`;
  return [
    `${read}; ${found}`,
    ...lostBodies.map((ref) => `a long text is lost, history had only its beginning: ${ref}`),
    ...(complete ? [] : ['earlier runs have passed their retention: what only they knew cannot be brought back']),
  ];
}

function counted(count: number, one: string, many: string): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}
