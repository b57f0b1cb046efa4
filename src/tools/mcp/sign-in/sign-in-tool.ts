/** How a model has a person asked: a call of this tool waits for an approval whose words hold the link. */
import { z } from 'zod';
import { defineTool } from '../../define-tool.js';
import type { Tool } from '../../tool.js';
import type { ServerLink } from '../link.js';

export const SIGN_IN_TOOL = 'mcp_sign_in';

const PATIENCE_MS = 8_000;

/** None where no server waits for a person; for a run also where none does any more: the call may have waited for that. */
export function signInTool(links: readonly ServerLink[], isRun: boolean): readonly Tool[] {
  const waiting = links.filter(({ signIn }) => (isRun ? signIn() !== undefined : signIn()?.isNeeded() === true));
  if (waiting.length === 0) return [];
  const names = waiting.map(({ server }) => server.name).join(', ');
  return [
    defineTool({
      name: SIGN_IN_TOOL,
      description:
        `Ask the person to sign in at an MCP server that does not answer without it: ${names}. The person gets a link; nothing else is ` +
        'needed of you. Afterwards the tools of that server can be used.',
      input: z.object({ server: z.string().max(200) }),
      policy: { repeatable: true, timeoutMs: 60_000 },
      examine({ server }, { conversation }) {
        const session = links.find((link) => link.server.name === server)?.signIn();
        return session?.isNeeded() === true ? { asks: { why: session.ask(conversation), overRules: true } } : {};
      },
      async run({ server }) {
        const link = links.find((one) => one.server.name === server);
        const session = link?.signIn();
        if (!link || !session) return { ok: false, error: `No MCP server ${JSON.stringify(server)} waits for a person here: ${names}.` };
        await session.look();
        if (session.isNeeded()) return { ok: false, error: `No person has signed in yet: ${session.words}.` };
        await link.refresh(PATIENCE_MS);
        if (session.isNeeded()) return { ok: false, error: `The MCP server ${server} does not take the new sign-in: ${session.words}.` };
        return `A person has signed in at the MCP server ${server}. Its tools can be called now.`;
      },
    }),
  ];
}
