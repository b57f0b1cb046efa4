/** A server's tool as one of the agent's. Whatever the server does is a result that the model reads. */
import type { JsonObject, JsonValue } from '../../records/message.js';
import { examineLeaving } from '../egress-scan.js';
import { errorText } from '../result-text.js';
import type { Examined, Tool, ToolResult } from '../tool.js';
import { ServerDown, type ServerLink } from './link.js';
import { toPin, type ToolPin } from './pins.js';
import { toToolResult } from './result.js';
import type { ServerTool } from './server-tool.js';
import { withoutHidden } from '../hidden-text.js';
import { isRecord } from '../../platform/json.js';

export interface OfferedTool {
  readonly name: string;
  readonly agent: string;
  readonly link: ServerLink;
  /** As a person, or the first sight, has accepted it. */
  readonly accepted: ServerTool;
  readonly pin: ToolPin;
}

/** How long a call waits for a server that is just being connected. */
export const CONNECT_PATIENCE_MS = 8_000;

export function toTool({ name, agent, link, accepted, pin }: OfferedTool): Tool {
  const { server, tool, description, inputSchema } = accepted;
  const { timeout, trustAnnotations } = link.server;
  return {
    name,
    description,
    inputSchema,
    policy: { repeatable: trustAnnotations && (accepted.readOnly || accepted.idempotent), quick: false, timeoutMs: timeout },
    examine: (input) => Promise.resolve(leavingFor(link, input)),
    async run(input, { signal }) {
      try {
        await link.refresh(CONNECT_PATIENCE_MS);
        const refusal = findRefusal({ name, agent, link, accepted, pin });
        if (refusal !== undefined) return { ok: false, error: refusal };
        return toToolResult(await link.ask('tools/call', { name: tool, arguments: argumentsIn(input) }, signal), link.redact);
      } catch (error) {
        return failed(`The tool ${tool} of the MCP server ${server}`, link, error);
      }
    },
  };
}

/** A server with an address may read all that it is sent; for a server on this machine only known secrets need approval. */
export function leavingFor({ server, secrets }: Pick<ServerLink, 'server' | 'secrets'>, input: JsonValue): Examined {
  const text = JSON.stringify(input);
  const to = `the MCP server ${server.name}`;
  if (server.type === 'http') return examineLeaving(text, to, secrets);
  return secrets?.isIn(text) === true ? examineLeaving(text, to, secrets) : {};
}

/** For a server's tools, resources and prompts alike. */
export function failed(what: string, { server, redact }: Pick<ServerLink, 'server' | 'redact'>, error: unknown): ToolResult {
  if (error instanceof ServerDown) return { ok: false, error: `The MCP server ${server.name} is down: ${withoutHidden(error.message)}` };
  const reason = redact(withoutHidden(errorText(error).slice(0, 8_000))).slice(0, 4_000);
  const isLost = /connection closed/i.test(reason);
  return {
    ok: false,
    error: isLost ? `${what} was running when the server went away: whether it was done is unknown.` : `${what} failed: ${reason}`,
  };
}

function findRefusal({ name, agent, link, accepted, pin }: OfferedTool): string | undefined {
  const listing = link.listing();
  // Not connected: asking it says why.
  if (listing === undefined) return undefined;
  const { server, tool } = accepted;
  const live = listing.tools.find((one) => one.tool === tool);
  if (live === undefined) {
    const now = listing.tools.map((one) => one.tool).join(', ');
    return `The MCP server ${server} has no tool ${tool} any more. It has now: ${now.slice(0, 2_000) || 'none'}.`;
  }
  if (toPin(live).hash === pin.hash) return undefined;
  return (
    `The MCP server ${server} has changed what it says about its tool ${tool} since that was accepted, so the tool does not run. ` +
    // Our name for it, since a server could write anything into its name for a person to paste.
    `A person can look at the change and accept it: perdura mcp accept ${agent} ${name}`
  );
}

/** What is no object the server would refuse with less words. */
function argumentsIn(input: JsonValue): JsonObject {
  return isRecord(input) ? (input as JsonObject) : {};
}
