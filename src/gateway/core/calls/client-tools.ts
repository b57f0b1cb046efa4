/** Tools that a request brings, checked before anything is sent. */
import type { ClientTool } from '../../../records/message.js';
import { readClientTools } from '../../../conversation/protocol/client-tools.js';
import { clientToolsRefusal } from '../../../tools/client-tools.js';
import { invalid, unsupported } from '../read-body.js';

/** Which of them the turn must begin with a call of: any, or the one of that name. */
export type MustCall = 'any' | { readonly name: string } | undefined;

/** As the conversation takes them, and as providers do. */
export function checkedTools(tools: readonly ClientTool[], mustCall?: MustCall): readonly ClientTool[] {
  if (mustCall && !tools.some(({ name }) => mustCall === 'any' || mustCall.name === name)) {
    throw invalid('tool_choice names no tool of the request', 'tool_choice');
  }
  const read = readClientTools(tools);
  if (!read.ok) throw invalid(read.reason.replace(/^message\./, ''), 'tools');
  const refusal = clientToolsRefusal(read.value);
  if (refusal !== undefined) throw invalid(refusal, 'tools');
  return read.value.map((tool) => (mustCall === 'any' || mustCall?.name === tool.name ? { ...tool, mustCall: true } : tool));
}

/** What goes on is a turn that has begun: a choice for it would come too late, and be passed over in silence. */
export function refuseLateChoice(tools: readonly ClientTool[] = []): void {
  if (tools.some(({ mustCall }) => mustCall))
    throw unsupported('a tool_choice that forces a call, beside tool outputs that a turn goes on with,', 'tool_choice');
}
