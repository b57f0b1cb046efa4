/** What an agent can do, one tool at a time, and the tools that a worker has. */
import type { z } from 'zod';
import { isClientTool } from '../conversation/protocol/message.js';
import type { WorkflowAction } from '../conversation/turn/model-step-effects.js';
import type { Episode, Task } from '../records/episodes.js';
import type { JsonObject, JsonValue, Media, ToolResultMessage } from '../records/message.js';
import type { AgentMemory } from '../records/memory/agent-memory.js';
import type { HistoryEntry } from '../records/memory/documents.js';
import type { RecallQuery } from '../memory/recall/recall.js';
import type { Recalled } from '../memory/recall/recalled.js';
import type { ToolDescription } from '../models/model.js';
import { ConfigError } from '../platform/errors.js';

/** Seed 002: failures are data that the model reads, never exceptions. */
export type ToolResult = (
  | {
      readonly ok: true;
      readonly content: string;
      /** From now on the conversation's goal and open tasks, word for word in its memory. */
      readonly task?: Task;
      /** What was done to files, so that a summary of these turns can say it. */
      readonly files?: ToolResultMessage['files'];
      /** Replaces these keys of the shared context; null takes one away. */
      readonly context?: JsonObject;
    }
  | { readonly ok: false; readonly error: string }
) &
  /** Pictures, sound and documents, for a model that takes them. */
  Media;

/** What commands of an agent run in (`sandbox` of its agent.json): bubblewrap's, or nothing of the kind. */
export type SandboxKind = 'bwrap' | 'none';

/** What a tool finds around it while it runs. */
export interface ToolContext {
  /** Absolute real path that file tools stay inside. */
  readonly workspace: string;
  /** Aborted by an interrupt, the tool's timeout or the worker's end. */
  readonly signal: AbortSignal;
  readonly conversation: string;
  /** Whose conversation it is; absent: of no tenant. */
  readonly tenant?: string;
  /** Absent: `none`. */
  readonly sandbox?: SandboxKind;
  /** Hosts that commands in a sandbox may reach. */
  readonly commandHosts?: readonly string[];
  readonly turn: string;
  readonly callId: string;
  /** The same for every attempt at this call; hand it to services that take one. */
  readonly idempotencyKey: string;
  /** The time, as tests can set it. */
  readonly now: () => Date;
  /** What this conversation has stored in this session, and long results of its tools (seed 003). */
  readonly memory: AgentMemory;
  /** What the application shares with its tools and the model never sees (seed 003, Context). */
  readonly context: JsonObject;
  /** HISTORY of the conversation's scope, newest first: what earlier conversations were about. */
  readonly history: () => AsyncIterable<HistoryEntry>;
  /** All messages and memories of the conversation's scope. */
  readonly recall: {
    /** Best first. */
    readonly search: (query: RecallQuery) => Promise<readonly Recalled[]>;
    /** The messages at an address and around it, in their order; empty where nothing is there. */
    readonly open: (address: string, around?: number) => Promise<readonly Recalled[]>;
    /** The pictures and documents that came with the message at an address. */
    readonly files: (address: string) => Promise<Media>;
  };
  /**
   * Why this tool, called with these arguments, would not run as this call does, by the agent's rules: where a page redirects to, for one.
   * Undefined where it would.
   */
  readonly refusalOf?: (input: JsonValue) => string | undefined;
  /** Summaries of this session's older turns, newest first; `read` gives the messages of one of the turns, or a line for each. */
  readonly episodes: () => Promise<readonly OpenEpisode[]>;
}

/** A summary of older turns. */
export interface OpenEpisode extends Episode {
  /** The messages of one of the turns, or a line for each. */
  readonly read: (turn?: number) => Promise<string>;
}

/** How the workflow runs a tool; travels with each call, so that settings never come from the workflow's bundle. */
export interface ToolPolicy {
  /** True: running it twice does no harm, so a crash repeats it. False: a crash leaves "outcome unknown". */
  readonly repeatable: boolean;
  /**
   * True only for quick (at most a second), repeatable tools without network that never block the event loop: its call may ride on the
   * model step that needs its result.
   */
  readonly quick: boolean;
  /** After that it is stopped. Default 60 s; 1 s for a quick tool. */
  readonly timeoutMs: number;
  /** Of a repeatable tool: how often it is run until it succeeds; its error is the model's only after the last. Default 1. */
  readonly attempts?: number;
  /**
   * The task queue whose workers alone run it, as `perdura worker --tools NAME` does: on a machine with a GPU, a browser or a licence. Such a
   * call waits for one as long as it takes. Default: the workers of the conversation.
   */
  readonly taskQueue?: string;
  /** `ask`: a person must allow each call, unless a rule of the agent says otherwise. Default `allow`. */
  readonly approval?: ApprovalPolicy;
}

/** What a look at the world says of a call whose attempt was broken off: it has been done, it has not, or that is unknown. */
export type Verified = { readonly done: true; readonly content: string } | { readonly done: false } | 'unknown';

/** What an agent says about calls that the conversation carries out itself. */
export interface WorkflowActionContext {
  readonly agent: string;
  /** Milliseconds that a person is waited for. */
  readonly approvalExpiryMs: number;
  readonly delegation: {
    readonly agents: readonly string[];
    readonly maxDepth: number;
    readonly maxChildren: number;
    readonly maxTotal: number;
    /** Seed 003: how far sub-agents see the items of this conversation's memory. */
    readonly memory?: 'shared' | 'snapshot';
  };
}

/** What a tool can see of the world when it examines a call. */
export interface ExamineContext {
  readonly workspace: string;
  /** Which one asks. */
  readonly conversation?: string;
  /** As in `ToolContext`. */
  readonly tenant?: string;
  readonly sandbox?: SandboxKind;
}

/** What a tool reports of one call before the call is allowed. */
export interface Examined {
  /**
   * A person is to allow it, unless a rule of the agent does; with `overRules` also then. `why` is for the person; with `isPrivate` it holds
   * what no log may have.
   */
  readonly asks?: { readonly why: string; readonly overRules?: boolean; readonly isPrivate?: boolean };
  /** Why it cannot run, whatever rules and people say. */
  readonly refused?: string;
  /** By argument: where a path really leads, relative to the workspace. Rules look at it too. */
  readonly real?: Readonly<Record<string, string>>;
}

/** A tool as workers have it; `defineTool` makes one. */
export interface Tool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonObject;
  /** Of what it answers, where its author declares it. Models do not see it. */
  readonly outputSchema?: JsonObject;
  readonly policy: ToolPolicy;
  /**
   * For tools that must not run twice: called before another attempt at a call whose first was broken off. Without it such a call is
   * answered "outcome unknown".
   */
  readonly verify?: (input: JsonValue, context: ToolContext) => Promise<Verified>;
  /** Why these arguments do not fit: a call that cannot run needs no approval. Never throws. */
  readonly schemaViolation?: (input: JsonValue) => Promise<string | undefined>;
  /** Arguments that do not fit are refused although the call needs no approval: it runs elsewhere, or the model has not seen the schema as it is. */
  readonly mustFit?: boolean;
  /** Looked at when a call is planned, and once more when it runs. Never throws. */
  readonly examine?: (input: JsonValue, context: ExamineContext) => Promise<Examined>;
  /** What the conversation does in place of a run. Undefined for arguments that do not fit, which a run then says. */
  readonly workflowAction?: (input: JsonValue, context: WorkflowActionContext) => WorkflowAction | undefined;
  /** Checks `input` against the schema first; never throws. */
  readonly run: (input: JsonValue, context: ToolContext) => Promise<ToolResult>;
}

/** What `defineTool` is given. */
export interface ToolDefinition<Schema extends z.ZodObject> {
  /** `^[a-zA-Z0-9_-]{1,64}$`, as providers ask. */
  readonly name: string;
  readonly description: string;
  readonly input: Schema;
  /**
   * What `run` answers with, as JSON. `perdura whatif --tools stub` answers with a value of it where no recording has the call. Models do not see
   * it, and results are not checked against it.
   */
  readonly output?: z.ZodType;
  /** Defaults: not repeatable, not quick, 60 s, one attempt, no approval. */
  readonly policy?: Partial<ToolPolicy>;
  /** May throw: then it is unknown. */
  readonly verify?: (input: z.output<Schema>, context: ToolContext) => Promise<Verified> | Verified;
  /**
   * Whether a person is to allow a call with these arguments. May throw: then a person has to. Not called for what does not fit the schema.
   */
  readonly examine?: (input: z.output<Schema>, context: ExamineContext) => Promise<Examined> | Examined;
  /** What the conversation does in place of a run, such as waiting. For built-in tools. */
  readonly workflowAction?: (input: z.output<Schema>, context: WorkflowActionContext) => WorkflowAction | undefined;
  /** May throw: the message becomes the error the model reads. */
  readonly run: (input: z.output<Schema>, context: ToolContext) => Promise<ToolResult | string> | ToolResult | string;
}

/** Whether a call runs, waits for a person, or is refused. */
export type ApprovalPolicy = 'allow' | 'ask' | 'deny';

// The tools that a worker has, by name.

export interface ToolRegistry {
  readonly find: (name: string) => Tool | undefined;
  /** The named tools in the order given, each once. Throws UnknownTools for names that are not here. */
  readonly select: (names: readonly string[]) => readonly Tool[];
  /** What a model is offered: the named tools in the order given, or all, sorted by name, so that the prompt stays byte-stable. */
  readonly describe: (names?: readonly string[]) => readonly ToolDescription[];
  /** Sorted. */
  readonly names: readonly string[];
}

/**
 * The task queue of which a worker takes nothing but these tools. Throws `ConfigError`: Temporal hands out what comes to a queue, so its worker
 * must have all tools of it, and of no other.
 */
export function findToolQueue(tools: readonly Tool[], names: readonly string[], conversations: string): string {
  const refuse = (why: string): never => {
    throw new ConfigError(`no worker for the tools ${names.join(', ')}: ${why}`);
  };
  const missing = names.find((name) => !tools.some((tool) => tool.name === name));
  if (names.length === 0) refuse('name at least one');
  if (missing !== undefined)
    refuse(`${missing} is none of the project's tools, which are ${tools.map(({ name }) => name).join(', ') || 'none'}`);
  const served = tools.filter(({ name }) => names.includes(name));
  const queues = [...new Set(served.map(({ policy }) => policy.taskQueue))];
  const without = served.find(({ policy }) => policy.taskQueue === undefined);
  if (without) refuse(`${without.name} has no task queue, so each worker of its conversations runs it; give it one with policy.taskQueue`);
  const [queue = ''] = queues;
  if (queues.length > 1) refuse(`they have different task queues (${queues.join(', ')}); start a worker for each`);
  if (queue === conversations) refuse(`their task queue, ${queue}, is that of conversations; give them another one with policy.taskQueue`);
  const left = tools.find(({ name, policy }) => policy.taskQueue === queue && !names.includes(name));
  if (left) refuse(`${left.name} has the same task queue, ${queue}, so its calls come here too; name it as well, or give it another one`);
  return queue;
}

export class UnknownTools extends Error {
  override readonly name = 'UnknownTools';
  constructor(
    readonly unknown: readonly string[],
    known: readonly string[],
  ) {
    super(`no tool is named ${unknown.map((name) => JSON.stringify(name)).join(', ')}; there are: ${known.join(', ') || 'none'}`);
  }
}

export function createToolRegistry(tools: readonly Tool[]): ToolRegistry {
  // A Map, since an object would answer to `constructor` and `__proto__`.
  const byName = new Map<string, Tool>();
  for (const tool of tools) {
    if (byName.has(tool.name)) throw new Error(`two tools are named ${tool.name}; a model could not tell them apart: rename one`);
    if (isClientTool(tool.name))
      throw new Error(`no tool may be named ${tool.name}: so begin the names of tools that clients bring; rename it`);
    byName.set(tool.name, tool);
  }
  const names = [...byName.keys()].sort();

  const select = (wanted: readonly string[]): readonly Tool[] => {
    const unknown = [...new Set(wanted)].filter((name) => !byName.has(name));
    if (unknown.length > 0) throw new UnknownTools(unknown, names);
    return [...new Set(wanted)].flatMap((name) => byName.get(name) ?? []);
  };

  return {
    names,
    select,
    find: (name) => byName.get(name),
    describe: (wanted = names) => select(wanted).map(({ name, description, inputSchema }) => ({ name, description, inputSchema })),
  };
}
