/** What `agent.json` may say. Every field is optional: `{}` is an agent. */
import { z } from 'zod';
import { ID_PATTERN } from '../conversation/protocol/contract.js';
import { TENANT_PATTERN } from '../conversation/protocol/limits.js';
import { MAX_EPISODIC_ITEMS, MAX_SEMANTIC_ITEMS, RAW_TAIL_TURNS } from '../records/memory/items.js';
import { thresholdsAt } from '../records/token-usage.js';
import { TOOL_NAME_PATTERN } from '../tools/define-tool.js';

/** A name, or all tools of one server. */
const TOOL_NAMES_PATTERN = new RegExp(`${TOOL_NAME_PATTERN.source}|^mcp__[a-zA-Z0-9_-]{1,50}__\\*$`);

const DAY_MS = 24 * 60 * 60 * 1000;

const timeoutMs = z.int().min(1).max(DAY_MS);

const agentLimits = z.strictObject({
  /** Rounds of tool calls in one turn; after these the turn ends with `tool-limit`. */
  maxToolRounds: z.int().min(1).max(10_000).default(50).meta({ common: true }),
  /** Milliseconds for a tool, in place of the tool's timeout. */
  toolTimeoutMs: timeoutMs.optional(),
  /** Dollars that a conversation may use in all, sub-agents included. The budget of its start goes first. */
  maxCostUsd: z.number().min(0).optional().meta({ common: true }),
  /** The same in tokens, of prompts and answers together. */
  maxTokens: z.int().min(0).optional(),
  /** How often each of `models` is tried before the next one. The last is tried as often as a single model would be. */
  modelTries: z.int().min(1).max(4).default(2),
  /** Milliseconds for one whole model call. */
  modelTimeoutMs: timeoutMs.optional(),
  /** When a run hands over to the next (continue-as-new), earlier than the product's limits. */
  handOver: z
    .strictObject({
      /** After this many events of history. */
      events: z.int().min(20).max(3_000).optional(),
      /** After this many updates. */
      updates: z.int().min(1).max(1_500).optional(),
    })
    .prefault({}),
});

const agentContext = z
  .strictObject({
    /** Tokens that the model takes, answer included. Overrules what is known of the model. */
    maxTokens: z.int().min(4_000).max(10_000_000).optional(),
    /**
     * When older turns are compacted: tokens, or a share of what the model takes. Default: 80,000 tokens, and less for models that take less.
     * All other sizes follow from it.
     */
    compactAt: z
      .union([z.number().min(0.05).max(0.8), z.int().min(1_000).max(10_000_000)])
      .optional()
      .meta({ common: true }),
    /** Share of the prompt's budget at which older turns are compacted at the latest. Default: the model's. */
    compactionRatio: z.number().min(0.1).max(1).optional(),
    /** Tokens that stay free for errors of estimates. Default: the model's. */
    safetyMargin: z.int().min(0).max(100_000).optional(),
    /** Tokens, as seed 004 has them (reached at exactly the number), in place of what follows from `compactAt`; less for models that take less. */
    advanced: z
      .strictObject({
        /** From here the model is advised to compact, if it has `compact_context`. Default: 5/8 of `hardThreshold`. */
        softThreshold: z.int().min(100).max(10_000_000).optional(),
        /** From here older turns are compacted before the next call. Default: `compactAt`. */
        hardThreshold: z.int().min(100).max(10_000_000).optional(),
        /** From here the oldest messages leave the prompt, until `hardThreshold` is reached. Default: 5/4 of `hardThreshold`. */
        truncationThreshold: z.int().min(100).max(10_000_000).optional(),
      })
      .prefault({}),
    /** How many of the newest turns a compaction does not summarize, if there is room (seed 000, `raw_tail_turns`). */
    keepTurns: z.int().min(0).max(50).default(RAW_TAIL_TURNS),
    /** How many summaries of the session the prompt shows one by one. Older ones are folded into one text. */
    maxEpisodic: z.int().min(1).max(10).default(MAX_EPISODIC_ITEMS),
    /** How many facts of the scope the prompt shows. */
    maxSemantic: z.int().min(0).max(100).default(MAX_SEMANTIC_ITEMS),
    /** False: older turns are compacted only on request. Beyond `advanced.truncationThreshold` the oldest messages leave the prompt all the same. */
    autoCompactEnabled: z.boolean().default(true),
    /** Name of a custom compactor (createWorker's `compactors`), in place of `WorkingFlowCompactor`. */
    compactor: z.string().min(1).max(100).optional(),
    /** Puts the time of arrival before each message of a person. */
    clock: z.boolean().default(false),
    /** `provider/model` that writes summaries. Default: that of the conversation. */
    summaryModel: z
      .string()
      .max(200)
      .regex(/^[a-z0-9][a-z0-9._-]*\/[^\s/][^\s]*$/i, 'expected `provider/model`')
      .optional(),
  })
  .refine(
    ({ compactAt, advanced }) => {
      // A share is of a window that is not known here: it is put in order with what is set beside it once it is.
      const { softThreshold, hardThreshold, truncationThreshold } = thresholdsAt(
        compactAt !== undefined && compactAt > 1 ? compactAt : undefined,
        advanced,
      );
      return (compactAt !== undefined && compactAt <= 1) || (softThreshold < hardThreshold && hardThreshold < truncationThreshold);
    },
    { path: ['advanced'], message: 'must be in order: softThreshold < hardThreshold < truncationThreshold' },
  );

/** Long-term memory (seed 001, Configuration), and the memory channel (seed 003, "Agent Configuration"). */
const agentMemory = z
  .strictObject({
    /** UTF-8 bytes that MEMORY.md may have: beyond them the model has to compress it, and adds nothing. */
    maxMemorySize: z.int().min(256).max(65_536).default(8_192),
    /** Milliseconds that `/new`, or a full window, waits for a consolidation. */
    consolidationTimeout: z.int().min(100).max(600_000).default(30_000),
    /** Messages (of people, and final answers) beyond which older ones are consolidated. */
    memoryWindow: z.int().min(2).max(10_000).default(50),
    /** How many of the newest messages are not consolidated. */
    keepCount: z.int().min(0).max(9_999).default(10),
    /**
     * When consolidated messages leave the prompt: `at-window` at once; `when-needed` once the prompt has passed `context.advanced.softThreshold`.
     */
    trim: z.enum(['when-needed', 'at-window']).default('when-needed'),
    /** `provider/model` that consolidates. Default: that of the conversation. */
    consolidationModel: z
      .string()
      .max(200)
      .regex(/^[a-z0-9][a-z0-9._-]*\/[^\s/][^\s]*$/i, 'expected `provider/model`')
      .optional(),
    /**
     * Tools whose results alone may become lines of MEMORY.md, unless these change what may be done. Lines from other tools alone wait for
     * a person.
     */
    trustedTools: z.array(z.string().regex(TOOL_NAME_PATTERN)).max(200).default([]),
    /**
     * Which lines wait for a person after other tools have run or files were read: instructions and addresses (`true`), all (`"strict"`),
     * only those that change what may be done (`false`).
     */
    reviewWhenToolsSpoke: z.union([z.boolean(), z.literal('strict')]).default(true),
    /** Long tool results are shown once, then cited; the three memory tools read them again. */
    enabled: z.boolean().default(true),
    /** Sub-agents share this memory; with `"snapshot"` they see what was there when they began. */
    shareWithSubAgents: z.union([z.boolean(), z.literal('snapshot')]).default(true),
    /** If no plugin of yours cites a result, a model that knows its purpose writes the citation; if it fails, a built-in plugin does. */
    compactWithModel: z.boolean().default(false),
    /** The prompt for that model, in place of the built-in one. */
    compactionPrompt: z.string().trim().min(1).max(8_000).optional(),
    /** UTF-8 bytes of a result beyond which it is stored and cited. */
    inlineLimit: z.int().min(256).max(262_144).default(4_096),
    /** Before the first model call of a turn, passages of earlier conversations that fit its message. Absent: nothing. */
    recall: z
      .strictObject({
        /** Earlier messages that a turn begins with, at most. Without `recall` there are none. */
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
  /** Agents that it may delegate to, besides itself. */
  agents: z.array(z.string().regex(ID_PATTERN)).max(100).default([]),
  /** Levels of sub-agents below a conversation that a person began. */
  maxDepth: z.int().min(0).max(8).default(2),
  /** Sub-agents in one turn. */
  maxChildren: z.int().min(1).max(1_000).default(16),
  /** Sub-agents in one turn on all levels. Each of `maxChildren` has an equal share. */
  maxTotal: z.int().min(0).max(10_000).default(64),
});

const MODEL_NAME = /^[a-z0-9][a-z0-9._-]*\/[^\s/][^\s]*$/i;
const EXPECTED_MODEL = 'expected `provider/model`, such as `anthropic/claude-sonnet-5-5`';

export const agentConfigSchema = z
  .strictObject({
    /** The name that people see. */
    name: z.string().trim().min(1).max(200).optional().meta({ common: true }),
    /** What it is for: other agents read it when they delegate. */
    description: z.string().max(2_000).optional().meta({ common: true }),
    /** `provider/model`. Default: that of the conversation's start, then `PERDURA_MODEL`. */
    model: z.string().max(200).regex(MODEL_NAME, EXPECTED_MODEL).optional().meta({ common: true }),
    /** In place of `model`: if one cannot answer (timeout, rate limit, overload, server error), the next one does. */
    models: z
      .array(z.string().max(200).regex(MODEL_NAME, EXPECTED_MODEL))
      .min(1)
      .max(8)
      .refine((models) => new Set(models).size === models.length, 'must name each model once')
      .optional()
      .meta({ common: true }),
    /** For conversations whose start names no mode. Default: `PERDURA_DEFAULT_EXECUTION_MODE`. */
    defaultExecutionMode: z.enum(['auto', 'stepping']).optional(),
    /** Titles of conversations without a name: the first words, or a title that a model writes. */
    titles: z.enum(['first-words', 'model']).default('first-words'),
    /** The most tokens of one answer. */
    maxTokens: z.int().min(1).max(128_000).default(8_192).meta({ common: true }),
    /**
     * Names of tools, in the order the model sees them; `mcp__<server>__*` stands for all of that MCP server. Absent: all built-in tools
     * and all of the servers in `mcp.json`; `[]`: none.
     */
    tools: z
      .array(z.string().regex(TOOL_NAMES_PATTERN, 'expected the name of a tool: 1 to 64 letters, digits, "_" or "-"; or mcp__<server>__*'))
      .max(200)
      .optional()
      .meta({ common: true }),
    /** Which calls run, ask a person, or never run. The first rule that fits counts, then the policy of the tool. */
    approvals: z.array(approvalRule).max(200).default([]).meta({ common: true }),
    /** Milliseconds that a call waits for a person. Default: 7 days. */
    approvalExpiryMs: z
      .int()
      .min(1_000)
      .max(365 * DAY_MS)
      .default(7 * DAY_MS),
    /**
     * What `run_command` runs in: bubblewrap's sandbox, or nothing of the kind. Where none can be made, each command waits for a person,
     * and tenants have none.
     */
    sandbox: z.enum(['bwrap', 'none']).default('bwrap'),
    /** Hosts that commands in the sandbox may reach, such as `registry.npmjs.org`, `*.github.com`, `example.org:8443`. Others there are none. */
    commandHosts: z
      .array(
        z
          .string()
          .max(260)
          .regex(
            /^(\*\.)?[a-z0-9-]+(\.[a-z0-9-]+)*(:\d{1,5})?$/i,
            'expected a host such as `example.org`, `*.example.org` or `example.org:8443`',
          ),
      )
      .max(100)
      .default([]),
    /** After how many days without a message its conversations are closed, such as `30d`. Default: they stay open. */
    idle: z
      .string()
      .regex(/^[1-9]\d{0,3}d$/, 'expected days, such as `30d`')
      .optional(),
    delegation: agentDelegation.prefault({}),
    /** The format in which a model without native tools writes calls in its text; `"off"`: it has tools. Default: by the model. */
    textTools: z.enum(['xml', 'json', 'off']).optional(),
    /** Tenants whose conversations may use it, beside conversations of no tenant. Default: all. */
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

/** The first of a list is the default model of the agent, for everything that needs one. */
export function withOwnModel(config: AgentConfig): AgentConfig {
  const [first] = config.models ?? [];
  return first === undefined ? config : { ...config, model: first };
}

/**
 * The same without what lets an agent do more than one of `{}` may, which a person has to approve (cli/trust/folder-contents.ts).
 * Rules that ask or deny stay, in their order.
 */
export function withoutGrants(config: AgentConfig): AgentConfig {
  const { approvals, memory } = config;
  const reviewWhenToolsSpoke = memory.reviewWhenToolsSpoke === false ? true : memory.reviewWhenToolsSpoke;
  return {
    ...config,
    approvals: approvals.filter(({ policy }) => policy !== 'allow'),
    sandbox: 'bwrap',
    commandHosts: [],
    memory: { ...memory, trustedTools: [], reviewWhenToolsSpoke },
  };
}
