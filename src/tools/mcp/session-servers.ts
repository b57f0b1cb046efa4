/**
 * MCP servers that an editor brings along for one session. They run where the editor is, in the process that it has started, so its paths and
 * its keys stay there: the conversation knows their tools as tools of a client, and neither history nor store has what they are started with.
 *
 * A tool is taken as it is when its server is first seen; one that is added or changed later waits for another session.
 */
import { createHash } from 'node:crypto';
import { LIMITS } from '../../conversation/protocol/limits.js';
import { pickMedia, type ClientTool, type JsonValue, type Media } from '../../records/message.js';
import type { Pins, ServerPins } from '../../stores/store.js';
import { boundText } from '../result-text.js';
import type { Tool, ToolContext } from '../tool.js';
import { mcpConfigSchema, toServers, type Variables } from './server-config.js';
import { createServerTools } from './server-tools.js';

/** As the Agent Client Protocol has it. */
export type BroughtServer = { readonly name: string } & (
  | {
      readonly command: string;
      readonly args: readonly string[];
      readonly env: readonly { readonly name: string; readonly value: string }[];
    }
  | { readonly type: string; readonly url: string; readonly headers: readonly { readonly name: string; readonly value: string }[] }
);

/** Pictures and other files beside the text, for models that take them. */
type ServerAnswer = Media & { readonly output: string; readonly isError: boolean };

export interface SessionServers {
  /** The tools that there are now, as a message brings them; waits a moment for servers that are just starting. */
  offer(): Promise<readonly ClientTool[]>;
  /** Whether a tool of this name is one of theirs. */
  has(name: string): boolean;
  /** What an argument would carry away, for the person who decides. */
  why(name: string, input: JsonValue): Promise<string | undefined>;
  /** Never throws: a failure is what the model reads. */
  call(name: string, input: JsonValue, signal: AbortSignal): Promise<ServerAnswer>;
  close(): Promise<void>;
}

export interface SessionServersOptions {
  readonly variables: Variables;
  readonly version: string;
  readonly log: (line: string) => void;
}

const AGENT = { namespace: 'session', agent: 'session' } as const;
const PATIENCE_MS = 8_000;
/** Of a name of a client's tool. */
const MAX_NAME = 56;
const DIGEST = 8;
const OUTPUT_BYTES = LIMITS.clientResultBytes - 4 * 1024;
const MAX_SERVERS = 32;
const ANOTHER_SESSION = ' Another session takes it as it is then.';

/** Throws for what is no server, in words that name it and none of its values. */
export function openSessionServers(
  brought: readonly BroughtServer[],
  folder: string,
  { variables, version, log }: SessionServersOptions,
): SessionServers {
  const servers = readBrought(brought, folder);
  const theirs = createServerTools({ variables, version, log, pins: pinsOfSession() });
  let known = new Map<string, Tool>();
  const nothing = { workspace: folder };
  return {
    async offer() {
      const { tools } = await theirs.of({ ...AGENT, servers, taken: [] }, { patienceMs: PATIENCE_MS });
      known = new Map(tools.map((tool) => [toClientName(tool.name), tool]));
      const offered: ClientTool[] = [];
      for (const [name, { description, inputSchema }] of known) {
        const next = [...offered, { name, description, inputSchema }];
        if (next.length > LIMITS.tools || Buffer.byteLength(JSON.stringify(next)) > LIMITS.toolsBytes) {
          log(
            `of the ${known.size} tools of this session's MCP servers only the first ${offered.length} are offered: a message takes no more`,
          );
          break;
        }
        offered.push({ name, description, inputSchema });
      }
      return offered;
    },
    has: (name) => known.has(name),
    async why(name, input) {
      return (await known.get(name)?.examine?.(input, nothing))?.asks?.why;
    },
    async call(name, input, signal) {
      const tool = known.get(name);
      if (!tool) return { output: `There is no tool ${name} in this session any more.`, isError: true };
      const result = await tool.run(input, onlySignal(signal));
      // Nothing of a session can be accepted elsewhere.
      const whole = result.ok ? result.content : result.error.replace(/ A person can look at it and accept it: .*$/, ANOTHER_SESSION);
      const text = boundText(whole, OUTPUT_BYTES);
      return { output: text, isError: !result.ok, ...pickMedia(result) };
    },
    close: () => theirs.close(),
  };
}

function readBrought(brought: readonly BroughtServer[], folder: string) {
  if (brought.length > MAX_SERVERS) throw new Error(`a session may have ${MAX_SERVERS} MCP servers, this one has ${brought.length}`);
  const names = brought.map(({ name }) => name);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) throw new Error(`two MCP servers are named ${JSON.stringify(twice.slice(0, 100))}`);
  const mcpServers = Object.fromEntries(
    brought.map((server) => {
      if ('command' in server) return [server.name, { command: server.command, args: server.args, env: toRecord(server.env) }];
      if (server.type !== 'http') throw new Error(`the MCP server ${server.name} is of the type ${server.type}: stdio and http are spoken`);
      return [server.name, { type: 'http', url: server.url, headers: toRecord(server.headers) }];
    }),
  );
  const read = mcpConfigSchema.safeParse({ mcpServers });
  if (read.success) return toServers(read.data, folder);
  throw new Error(read.error.issues.map(({ path, message }) => `${path.map(String).join('.')}: ${message}`).join('; '));
}

function toRecord(pairs: readonly { readonly name: string; readonly value: string }[]): Record<string, string> {
  return Object.fromEntries(pairs.map(({ name, value }) => [name, value]));
}

/** As a worker names it, without what says that it is a worker's. */
function toClientName(name: string): string {
  const short = name.replace(/^mcp__/, '');
  if (short.length <= MAX_NAME) return short;
  return `${short.slice(0, MAX_NAME - DIGEST - 1)}_${createHash('sha256').update(name).digest('hex').slice(0, DIGEST)}`;
}

/** Servers' tools look at nothing else of where they run. */
function onlySignal(signal: AbortSignal): ToolContext {
  return { signal } as ToolContext;
}

/** Of this process: each server is accepted as it is first seen. */
function pinsOfSession(): Pins {
  let pins: ServerPins = { accepted: [], waiting: [], servers: [] };
  return {
    list: async () => pins,
    async acceptServer(_key, server, tools) {
      pins = { ...pins, accepted: [...pins.accepted, ...tools], servers: [...pins.servers, server] };
    },
    accept: async () => undefined,
    wait: async () => undefined,
  };
}
