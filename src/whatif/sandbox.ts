/** What a played conversation has around it: its store, and its tools. */
import type { ToolPlan } from '../conversation/turn/model-step-effects.js';
import { callFingerprint } from '../memory/bodies.js';
import type { ToolDescription } from '../models/model.js';
import { NO_MEMORY_VERSION } from '../records/memory/documents.js';
import type { Entry, JsonValue } from '../records/message.js';
import type { ConversationKey, ScopeKey, Store } from '../stores/store.js';
import { isServerToolName } from '../tools/mcp/server-tool.js';
import { RESOURCE_TOOL_NAMES } from '../tools/mcp/resource-tools.js';
import { SIGN_IN_TOOL } from '../tools/mcp/run-server-tool.js';
import type { ServerTools } from '../tools/mcp/server-tools.js';
import type { Tool } from '../tools/tool.js';

// The store that a played conversation has: what it writes goes to a separate folder, and what it did not write itself it reads where it
// was recorded: other conversations, long texts by their hash, and MEMORY.md as it was at that moment.
// Nothing is written there.

export interface Sandbox {
  /** Whether this life is played here. */
  isPlayed(key: Pick<ConversationKey, 'life'>): boolean;
  /** Slots up to this one were there before it is played: of a fork, and of runs that are no longer retained. */
  before(key: ConversationKey): number;
  /** Version of MEMORY.md, as the present step found it then; undefined: the sandbox keeps a separate memory. */
  memoryVersion(): string | undefined;
  /** The version that a separate memory begins as. */
  firstMemory(): string;
  /** Epoch milliseconds. */
  now(): number;
}

export function createSandboxStore(written: Store, recorded: Store, sandbox: Sandbox): Store {
  const { isPlayed, before, memoryVersion } = sandbox;
  const where = (key: ConversationKey): Store => (isPlayed(key) ? written : recorded);
  const readVersion = async (key: ScopeKey, version: string): Promise<string | undefined> => {
    if (version === NO_MEMORY_VERSION) return '';
    const made = await written.documents.memoryText(key, version);
    if (made !== undefined) return made;
    const there = await recorded.documents.memoryText(key, version);
    if (there !== undefined) return there;
    const now = await recorded.documents.memory(key);
    return now.version === version ? now.text : undefined;
  };
  const beginMemory = async (key: ScopeKey): Promise<void> => {
    const text = await readVersion(key, sandbox.firstMemory());
    if (text === undefined || text === '') return;
    const what = { id: 'as-recorded', ts: sandbox.now() / 1000, cause: 'hand' } as const;
    await written.documents.writeMemory(key, { ...what, from: NO_MEMORY_VERSION, text, lines: [] });
  };
  const begun = new Map<string, Promise<unknown>>();
  const readSeparate: Store['documents']['memory'] = async (key) => {
    const beginning = begun.get(key.scope) ?? beginMemory(key);
    begun.set(key.scope, beginning);
    await beginning;
    return written.documents.memory(key);
  };

  return {
    ...written,
    entries: {
      ...written.entries,
      async read(key, slots) {
        if (!isPlayed(key)) return recorded.entries.read(key, slots);
        const found = await written.entries.read(key, slots);
        const last = before(key);
        const wanted = slots.filter((slot, at) => !found[at] && slot <= last);
        if (wanted.length === 0) return found;
        const there = new Map((await recorded.entries.read(key, wanted)).map((entry, at) => [wanted[at], entry]));
        return found.map((entry, at) => entry ?? there.get(slots[at] ?? 0));
      },
      async page(key, after, limit) {
        if (!isPlayed(key)) return recorded.entries.page(key, after, limit);
        const mine = await written.entries.page(key, after, limit);
        const until = before(key);
        if (after >= until) return mine;
        const theirs = await recorded.entries.page(key, after, Math.min(limit, until - after));
        const known = new Set(mine.entries.map(({ slot }) => slot));
        const entries = [...theirs.entries.filter(({ slot }) => !known.has(slot)), ...mine.entries].sort(bySlot);
        return { entries, last: Math.max(mine.last, until), skipped: mine.skipped + theirs.skipped };
      },
      archived: (key) => where(key).entries.archived(key),
    },
    bodies: {
      ...written.bodies,
      get: async (key, ref) => (isPlayed(key) ? await written.bodies.get(key, ref) : undefined) ?? recorded.bodies.get(key, ref),
    },
    items: {
      ...written.items,
      get: async (key, id) => (isPlayed(key) ? await written.items.get(key, id) : undefined) ?? recorded.items.get(key, id),
      list: (key, which) => where(key).items.list(key, which),
      async citations(key, ids) {
        const mine = await written.items.citations(key, ids);
        if (mine.every((citation) => citation !== undefined)) return mine;
        const theirs = await recorded.items.citations(key, ids);
        return mine.map((citation, at) => citation ?? theirs[at]);
      },
    },
    lives: {
      ...written.lives,
      beginning: (key) => where(key).lives.beginning(key),
      cuts: (key) => where(key).lives.cuts(key),
      claims: (key) => where(key).lives.claims(key),
      deleted: (of) => recorded.lives.deleted(of),
    },
    episodes: { ...written.episodes, list: (key, which) => where(key).episodes.list(key, which) },
    facts: {
      ...written.facts,
      async list(key, which) {
        const { facts, skipped } = await recorded.facts.list(key, which);
        const then = facts.filter(({ ts }) => ts * 1000 <= sandbox.now());
        if (memoryVersion() !== undefined) return { facts: then, skipped };
        const mine = await written.facts.list(key, which);
        const known = new Set(mine.facts.map(({ fact }) => fact));
        return { facts: [...mine.facts, ...then.filter(({ fact }) => !known.has(fact))], skipped: skipped + mine.skipped };
      },
    },
    documents: {
      ...written.documents,
      async memory(key) {
        const version = memoryVersion();
        if (version === undefined) return readSeparate(key);
        return { version, text: (await readVersion(key, version)) ?? '' };
      },
      memoryText: readVersion,
      async changes(key) {
        const version = memoryVersion();
        if (version === undefined) return written.documents.changes(key);
        const { changes, skipped } = await recorded.documents.changes(key);
        // What came later was not known then.
        return { changes: changes.slice(0, changes.findLastIndex((one) => one.version === version) + 1), skipped };
      },
      history: (key) => recorded.documents.history(key),
      forgotten: (key) => recorded.documents.forgotten(key),
    },
    close: () => written.close(),
  };
}

/** Reads what was recorded, and takes nothing. */
export function onlyRead(store: Store): Store {
  const nothing = (): Promise<void> => Promise.resolve();
  return {
    ...store,
    bodies: { ...store.bodies, put: () => Promise.reject(new Error('a recording is only read')) },
    items: { ...store.items, put: nothing, cite: nothing, remove: nothing },
    effects: { ...store.effects, spend: nothing },
  };
}

function bySlot(a: Entry, b: Entry): number {
  return a.slot - b.slot;
}

// The tools that a played conversation is offered: those of the candidate's project, and those of MCP servers as they were recorded, since
// no server is called.
// What a recorded call needed of people, it needs again, whatever lies at its paths now.

/** These look at nothing but the conversation, and change nothing else: they may run. */
export const IN_SANDBOX: ReadonlySet<string> = new Set([
  ...['store_in_memory', 'retrieve_from_memory', 'query_memory', 'set_task', 'read_episode', 'get_time', 'open_memory'],
  ...['search_memory', 'search_history'],
]);

/** How a call was planned then; undefined where it is not recorded. */
export type FindPlan = (name: string, input: JsonValue | undefined) => ToolPlan | undefined;

export function inSandbox(tool: Tool, findPlan: FindPlan): Tool {
  const { examine } = tool;
  if (!examine) return tool;
  return {
    ...tool,
    async examine(input, place) {
      const plan = findPlan(tool.name, input);
      if (!plan) return examine(input, place);
      const { approval } = plan;
      if (approval?.policy !== 'ask') return {};
      return { asks: { why: approval.why ?? 'a person had to allow it', ...(approval.same === undefined && { overRules: true }) } };
    },
  };
}

/** Of one MCP server, or what reads resources and prompts of all of them, or has a person sign in there. */
export function isOfServers(name: string): boolean {
  return isServerToolName(name) || name === SIGN_IN_TOOL || (RESOURCE_TOOL_NAMES as readonly string[]).includes(name);
}

/** `offered`: what the model was told of tools, as it is known now. */
export function recordedServers(offered: () => Promise<readonly ToolDescription[]>, findPlan: FindPlan): ServerTools {
  return {
    async of({ taken }) {
      const theirs = (await offered()).filter(({ name }) => isOfServers(name) && !taken.includes(name));
      return { tools: theirs.map((description) => toTool(description, findPlan)), waiting: new Map(), isSignInNeeded: false };
    },
    close: () => Promise.resolve(),
  };
}

const TIMEOUT_MS = 60_000;

function toTool({ name, description, inputSchema }: ToolDescription, findPlan: FindPlan): Tool {
  const known = findPlan(name, undefined);
  // Those that are of no one server ask for some arguments, and not for others.
  const asks = isServerToolName(name) && known?.approval?.policy === 'ask';
  const tool: Tool = {
    ...{ name, description, inputSchema },
    policy: {
      ...{ repeatable: known?.repeatable ?? false, quick: known?.rides ?? false, timeoutMs: known?.timeoutMs ?? TIMEOUT_MS },
      ...(asks && { approval: 'ask' as const }),
    },
    run: () => Promise.resolve({ ok: false, error: `${name} is a tool of an MCP server, which is not called here` }),
    examine: () => Promise.resolve({}),
  };
  return inSandbox(tool, findPlan);
}

/** Plans of recorded answers, by name and arguments; of any arguments where none are given. */
export function createPlans(answers: () => Iterable<{ readonly plans: readonly ToolPlan[]; readonly names: readonly string[] }>): FindPlan {
  return (name, input) => {
    const wanted = input === undefined ? undefined : callFingerprint(name, input);
    for (const { plans, names } of answers()) {
      const at = wanted === undefined ? names.indexOf(name) : plans.findIndex(({ fingerprint }) => fingerprint === wanted);
      if (at >= 0 && plans[at]) return plans[at];
    }
    return undefined;
  };
}
