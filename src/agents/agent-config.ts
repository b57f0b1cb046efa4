/** What `agent.json` may say. Every field is optional: `{}` is an agent. */
import { z } from 'zod';
import { ID_PATTERN } from '../conversation/protocol/contract.js';
import { TENANT_PATTERN } from '../conversation/protocol/tenant.js';
import { MAX_EPISODIC_ITEMS, MAX_SEMANTIC_ITEMS, RAW_TAIL_TURNS } from '../records/memory/items.js';
import { DEFAULT_THRESHOLDS } from '../records/token-usage.js';
import { TOOL_NAME_PATTERN } from '../tools/define-tool.js';

/** A name, or all tools of one server. */
const TOOL_NAMES_PATTERN = new RegExp(`${TOOL_NAME_PATTERN.source}|^mcp__[a-zA-Z0-9_-]{1,50}__\\*$`);

const DAY_MS = 24 * 60 * 60 * 1000;

const timeoutMs = z.int().min(1).max(DAY_MS);

const agentLimits = z.strictObject({
  /** Rounds of tool calls in one turn, after which it ends with `tool-limit`. */
  maxToolRounds: z.int().min(1).max(10_000).default(50),
  /** Instead of each tool's own timeout. */
  toolTimeoutMs: timeoutMs.optional(),
  /** What a conversation may use in all, sub-agents included; the start argument's budget wins. */
  maxCostUsd: z.number().min(0).optional(),
  maxTokens: z.int().min(0).optional(),
  /** How often each of `models` is asked, a wait between, before the next is; the last is asked as long as one alone would be. */
  modelTries: z.int().min(1).max(4).default(2),
  /** For one whole model call. */
  modelTimeoutMs: timeoutMs.optional(),
  /** When a run hands over to the next (continue-as-new), earlier than the product's own limits. */
  handOver: z
    .strictObject({
      events: z.int().min(20).max(3_000).optional(),
      updates: z.int().min(1).max(1_500).optional(),
    })
    .prefault({}),
});

const agentContext = z.strictObject({
  /** Tokens that the model takes, answer included, where the registry does not know or should be overruled. */
  maxTokens: z.int().min(4_000).max(10_000_000).optional(),
  /** Share of the prompt's budget from which older turns become memory; the model's own by default. */
  compactionRatio: z.number().min(0.1).max(1).optional(),
  /** Tokens kept free for what estimates miss; the model's own by default. */
  safetyMargin: z.int().min(0).max(100_000).optional(),
  /** Tokens (seed 004); scaled down for models that take less. */
  thresholds: z
    .strictObject({
      soft: z.int().min(100).max(10_000_000).default(DEFAULT_THRESHOLDS.softThreshold),
      hard: z.int().min(100).max(10_000_000).default(DEFAULT_THRESHOLDS.hardThreshold),
      truncation: z.int().min(100).max(10_000_000).default(DEFAULT_THRESHOLDS.truncationThreshold),
    })
    .refine(({ soft, hard, truncation }) => soft < hard && hard < truncation, 'must be in order: soft < hard < truncation')
    .prefault({}),
  /** How many of the newest turns a compaction leaves as they were, where there is room (seed 000, `raw_tail_turns`). */
  keepTurns: z.int().min(0).max(50).default(RAW_TAIL_TURNS),
  /** How many summaries of the session stand in the prompt one by one; those before them are folded into one text. */
  maxEpisodic: z.int().min(1).max(10).default(MAX_EPISODIC_ITEMS),
  /** How many facts of the scope stand in the prompt. */
  maxSemantic: z.int().min(0).max(100).default(MAX_SEMANTIC_ITEMS),
  /** False: older turns become memory only when somebody asks for it; beyond `thresholds.truncation` the oldest leaves the prompt all the same. */
  autoCompactEnabled: z.boolean().default(true),
  /** Name of a custom compactor (createWorker's `compactors`), in place of `WorkingFlowCompactor`. */
  compactor: z.string().min(1).max(100).optional(),
  /** Puts the time of its arrival before each message of a person. */
  clock: z.boolean().default(false),
  /** `provider/model` that summarizes; the conversation's own by default. */
  summaryModel: z
    .string()
    .max(200)
    .regex(/^[a-z0-9][a-z0-9._-]*\/[^\s/][^\s]*$/i, 'expected `provider/model`')
    .optional(),
});

/** Long-term memory (seed 001, Configuration), and the memory channel (seed 003, "Agent Configuration"). */
const agentMemory = z
  .strictObject({
    /** UTF-8 bytes of MEMORY.md beyond which the model is asked to compress it. */
    maxMemorySize: z.int().min(256).max(65_536).default(8_192),
    /** Milliseconds that a reset, or a full window, waits for a consolidation. */
    consolidationTimeout: z.int().min(100).max(600_000).default(30_000),
    /** Messages (of people, and final answers) beyond which older ones are consolidated. */
    memoryWindow: z.int().min(2).max(10_000).default(50),
    /** How many of the newest are not. */
    keepCount: z.int().min(0).max(9_999).default(10),
    /**
     * When consolidated messages leave the context: `at-window` at once, as in the seed; `when-needed` once the context has passed
     * `thresholds.soft`.
     */
    trim: z.enum(['when-needed', 'at-window']).default('when-needed'),
    /** `provider/model` that consolidates; the conversation's own by default. */
    consolidationModel: z
      .string()
      .max(200)
      .regex(/^[a-z0-9][a-z0-9._-]*\/[^\s/][^\s]*$/i, 'expected `provider/model`')
      .optional(),
    /** Tools whose word alone is enough for a line of MEMORY.md; what only others say waits for a person. */
    trustedTools: z.array(z.string().regex(TOOL_NAME_PATTERN)).max(200).default([]),
    /**
     * Lines that a model adds where other tools spoke: instructions and addresses wait for a person, with `strict` all of them, with
     * `false` none.
     */
    reviewWhenToolsSpoke: z.union([z.boolean(), z.literal('strict')]).default(true),
    /** Long results of tools are shown once, then cited, and the three memory tools are there to read them again. */
    enabled: z.boolean().default(true),
    /** Sub-agents have this memory, not a copy of it. */
    shareWithSubAgents: z.union([z.boolean(), z.literal('snapshot')]).default(true),
    /** Where no plugin says anything of a result, a model that knows what it was for makes its citation. */
    compactWithModel: z.boolean().default(false),
    /** The prompt of that model, instead of the built-in one. */
    compactionPrompt: z.string().trim().min(1).max(8_000).optional(),
    /** UTF-8 bytes of a result beyond which it is stored and cited. */
    inlineLimit: z.int().min(256).max(262_144).default(4_096),
    /** Before the first model call of a turn, what was said in earlier conversations and fits its message. Absent: nothing. */
    recall: z
      .strictObject({
        /** Messages at most. */
        turns: z.int().min(1).max(10).default(3),
      })
      .optional(),
  })
  .refine(({ keepCount, memoryWindow }) => keepCount < memoryWindow, {
    path: ['keepCount'],
    message: 'must be smaller than memory.memoryWindow',
  });

const pattern = z.string().min(1).max(500);
const approvalRule = z
  .strictObject({
    tool: z.string().min(1).max(100),
    where: z.record(z.string().min(1).max(100), z.union([pattern, z.array(pattern).max(50)])).optional(),
    /** All arguments of one call, without patterns: that call and no other. `perdura approve --always agent` writes such rules. */
    exactly: z.record(z.string().max(100), z.json()).optional(),
    policy: z.enum(['allow', 'ask', 'deny']),
    why: z.string().max(500).optional(),
  })
  .refine(({ where, exactly }) => where === undefined || exactly === undefined, 'takes `where` or `exactly`, not both');

/** Sub-agents, by the tool `delegate`. */
const agentDelegation = z.strictObject({
  /** Agents that may be asked, besides itself. */
  agents: z.array(z.string().regex(ID_PATTERN)).max(100).default([]),
  /** Levels below a conversation that people began. */
  maxDepth: z.int().min(0).max(8).default(2),
  /** In one turn. */
  maxChildren: z.int().min(1).max(1_000).default(16),
  /** In one turn with those that they start, to the last level. Each of `maxChildren` has an equal share of it. */
  maxTotal: z.int().min(0).max(10_000).default(64),
});

const MODEL_NAME = /^[a-z0-9][a-z0-9._-]*\/[^\s/][^\s]*$/i;
const EXPECTED_MODEL = 'expected `provider/model`, such as `anthropic/claude-sonnet-5-5`';

export const agentConfigSchema = z
  .strictObject({
    name: z.string().trim().min(1).max(200).optional(),
    description: z.string().max(2_000).optional(),
    /** Absent: the conversation's start or `PERDURA_MODEL` says. */
    model: z.string().max(200).regex(MODEL_NAME, EXPECTED_MODEL).optional(),
    /** In place of `model`: where one cannot answer (a time-out, a limit, an overload, a fault of its server), the next does. */
    models: z
      .array(z.string().max(200).regex(MODEL_NAME, EXPECTED_MODEL))
      .min(1)
      .max(8)
      .refine((models) => new Set(models).size === models.length, 'must name each model once')
      .optional(),
    /** Of its conversations whose start names no mode (seed 004); absent: `PERDURA_DEFAULT_EXECUTION_MODE` says. */
    defaultExecutionMode: z.enum(['auto', 'stepping']).optional(),
    /** Titles that no person gives: the first words of the first message, or what a model makes of the first exchange (`context.summaryModel`, or its own). */
    titles: z.enum(['first-words', 'model']).default('first-words'),
    /** The most tokens of one answer. */
    maxTokens: z.int().min(1).max(128_000).default(8_192),
    /**
     * Names of tools, in the order the model sees them; `mcp__<server>__*` stands for all of that MCP server. Absent: all built-in tools
     * and all of the servers in `mcp.json`; `[]`: none.
     */
    tools: z
      .array(z.string().regex(TOOL_NAMES_PATTERN, 'expected the name of a tool: 1 to 64 letters, digits, "_" or "-"; or mcp__<server>__*'))
      .max(200)
      .optional(),
    /** Which calls run, ask a person, or never run; the first rule that fits counts, then the tool's own policy. */
    approvals: z.array(approvalRule).max(200).default([]),
    /** Milliseconds that a person is waited for. */
    approvalExpiryMs: z
      .int()
      .min(1_000)
      .max(365 * DAY_MS)
      .default(7 * DAY_MS),
    delegation: agentDelegation.prefault({}),
    /** Calls are written in the model's text, in this format, or `off`: it has tools of its own. Absent: what is known of the model says. */
    textTools: z.enum(['xml', 'json', 'off']).optional(),
    /** Whose conversations may use it, beside those of no tenant. Absent: everyone's. */
    tenants: z.array(z.string().regex(TENANT_PATTERN)).max(1_000).optional(),
    limits: agentLimits.prefault({}),
    context: agentContext.prefault({}),
    memory: agentMemory.prefault({}),
  })
  .refine(({ model, models }) => model === undefined || models === undefined, {
    path: ['models'],
    message: 'takes the place of `model`: give one of them',
  });

export type AgentConfig = Readonly<z.output<typeof agentConfigSchema>>;

/** The first of a list is the agent's own model, for everything that asks for one. */
export function withOwnModel(config: AgentConfig): AgentConfig {
  const [first] = config.models ?? [];
  return first === undefined ? config : { ...config, model: first };
}

/**
 * The same without what lets an agent do more than one of `{}` may, which is what a person is asked about (cli/trust/folder-contents.ts).
 * Rules that ask or deny stay, in their order.
 */
export function withoutGrants(config: AgentConfig): AgentConfig {
  const { approvals, memory } = config;
  const reviewWhenToolsSpoke = memory.reviewWhenToolsSpoke === false ? true : memory.reviewWhenToolsSpoke;
  return {
    ...config,
    approvals: approvals.filter(({ policy }) => policy !== 'allow'),
    memory: { ...memory, trustedTools: [], reviewWhenToolsSpoke },
  };
}
