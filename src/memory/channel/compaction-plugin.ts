/**
 * What stands for a long result once the model has seen it (seed 003, "Compaction Strategies", option A): made by the plugin of its
 * tool, bounded, and stored with the result, so that it stays the same bytes whatever becomes of the plugin.
 */
import type { JsonObject, JsonValue, ToolOutcome } from '../../records/message.js';
import { errorMessage } from '../../platform/errors.js';
import { isRecord } from '../../platform/json.js';

/** What a tool has answered (seed 003). */
export interface ActionResult {
  /** All of the text that the tool answered with. */
  readonly message: string;
  readonly outcome: ToolOutcome;
}

/** The call that was answered. */
export interface AgentAction {
  readonly name: string;
  readonly input: JsonValue;
}

/** Where the whole result can be retrieved. */
export interface CompactionContext {
  readonly memoryId: string;
}

/** What stands for a long result: at most 1 KiB as JSON. */
export type CompactedResult = JsonObject;

/** Says in short what a long result of one tool was. */
export interface CompactionPlugin {
  /** Quick and pure. What it throws, or what is longer than 1 KiB as JSON, is replaced by the result's beginning and end. */
  compact(result: ActionResult, action: AgentAction, context: CompactionContext): CompactedResult;
}

/** By the name of the tool. */
export type CompactionPlugins = Readonly<Record<string, CompactionPlugin>>;

export interface Compactors {
  /** Never throws. */
  compact(result: ActionResult, action: AgentAction, context: CompactionContext): CompactedResult;
}

/** UTF-8 bytes of a citation's JSON. */
export const CITATION_BYTES = 1_024;

/** Custom plugins win over built-in ones. `onFailure` is called for a plugin that threw, or returned too much. */
export function createCompactors(
  {
    byTool,
    byShape,
    otherwise,
  }: {
    readonly byTool: CompactionPlugins;
    /** For tools without a plugin: the first that has something to say. */
    readonly byShape: readonly ((result: ActionResult) => CompactionPlugin | undefined)[];
    readonly otherwise: CompactionPlugin;
  },
  onFailure: (tool: string, reason: string) => void = () => undefined,
): Compactors {
  const known = new Map(Object.entries(byTool));
  return {
    compact(result, action, context) {
      const plugin =
        known.get(action.name) ?? byShape.reduce<CompactionPlugin | undefined>((found, find) => found ?? find(result), undefined);
      if (plugin) {
        try {
          const compacted = plugin.compact(result, action, context);
          const problem = findProblem(compacted);
          // Once through JSON: what is left is plain data.
          if (problem === undefined) return JSON.parse(JSON.stringify(compacted)) as CompactedResult;
          onFailure(action.name, problem);
        } catch (error) {
          onFailure(action.name, errorMessage(error));
        }
      }
      return otherwise.compact(result, action, context);
    },
  };
}

function findProblem(compacted: unknown): string | undefined {
  if (!isRecord(compacted)) return 'it answered with no object';
  const bytes = Buffer.byteLength(JSON.stringify(compacted, null, 2));
  return bytes > CITATION_BYTES ? `it answered with ${bytes} bytes, more than ${CITATION_BYTES}` : undefined;
}
