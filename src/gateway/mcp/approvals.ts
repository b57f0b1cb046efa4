/** What waits for a person, and what that person decides. */
import { z } from 'zod';
import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js' with { 'resolution-mode': 'import' };
import type { PerduraClient } from '../../client.js';
import type { JsonValue } from '../../records/message.js';
import { mayAct, type Principal } from '../access/principal.js';
import { conversation, json } from './tool-shapes.js';

export function addApprovals(server: McpServer, client: PerduraClient, principal: Principal): void {
  const seesAll = mayAct(principal, 'operator');
  server.registerTool(
    'list_approvals',
    {
      description: `Calls that wait for a person's permission and questions that wait for an answer, with their arguments whole${seesAll ? '; of all conversations without an id' : ''}.`,
      inputSchema: { conversation: seesAll ? conversation.optional() : conversation },
      annotations: { readOnlyHint: true },
    },
    async ({ conversation: id }) => json(id === undefined ? await client.allApprovals() : { approvals: await client.approvals(id) }),
  );
  server.registerTool(
    'decide_approval',
    {
      description:
        'Allow a call, refuse it, answer a question, or say what a tool of a client has answered: for a person, who has seen its arguments. hash is that of the approval that was shown: ' +
        'with other arguments the call does not run.',
      inputSchema: {
        conversation: conversation.describe('the conversation that was asked; `via` of the approval'),
        call_id: z.string().min(1).max(64),
        hash: z.string().min(1).max(128),
        decision: z.enum(['approve', 'deny']),
        note: z.string().max(10_000).optional().describe('a reason, or the answer to a question'),
        output: z
          .json()
          .optional()
          .describe('with approve, of the kind client-tool: what that tool has answered, for the client that runs it'),
        is_error: z.boolean().optional().describe('output says why it failed'),
        sub_agent: z.string().max(200).optional().describe('`conversation` of the approval, where a sub-agent asked'),
      },
      annotations: { destructiveHint: true },
    },
    async ({ conversation: id, call_id, hash, decision, note, output, is_error, sub_agent }) =>
      json(
        await client.decide(id, {
          callId: call_id,
          hash,
          decision,
          ...(note !== undefined && { note }),
          ...(output !== undefined && { output: output as JsonValue }),
          ...(is_error === true && { isError: true }),
          ...(sub_agent !== undefined && { conversation: sub_agent }),
        }),
      ),
  );
}
