/** Tools that a request brings, checked before anything is sent. */
import type { ClientTool } from '../../records/message.js';
import { readClientTools } from '../../conversation/protocol/client-tools.js';
import { clientToolsRefusal } from '../../tools/client-tools.js';
import { invalid } from './read-body.js';

/** As the conversation takes them, and as providers do. */
export function checkedTools(tools: readonly ClientTool[]): readonly ClientTool[] {
  const read = readClientTools(tools);
  if (!read.ok) throw invalid(read.reason.replace(/^message\./, ''), 'tools');
  const refusal = clientToolsRefusal(read.value);
  if (refusal !== undefined) throw invalid(refusal, 'tools');
  return read.value;
}
