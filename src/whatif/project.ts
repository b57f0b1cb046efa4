/** What conversations are played with: the project as it is, and the candidate, in which something is changed. */
import { createHash } from 'node:crypto';
import { agentConfigSchema, withOwnModel } from '../agents/agent-config.js';
import { AgentConfigError, createAgentLoader, type AgentLoader, type LoadedAgent } from '../agents/load-agent.js';
import { buildSystemPrompt } from '../agents/system-prompt.js';
import type { Reducers } from '../conversation/context/reducers.js';
import { sharedServers, type Extensions } from '../extensions/user-config.js';
import type { Models } from '../models/known-models.js';
import { isRecord } from '../platform/json.js';
import type { JsonObject, JsonValue } from '../records/message.js';
import type { Tool } from '../tools/tool.js';
import { listIssues } from '../tools/result-text.js';

export interface Project {
  readonly agentsDir: string;
  readonly agents: AgentLoader;
  /** The product's and the project's. */
  readonly tools: readonly Tool[];
  readonly extensions: Pick<Extensions, 'processors' | 'hooks' | 'compactors' | 'compactionPlugins' | 'mcpServers' | 'models'>;
  /** Of events of the application. */
  readonly reducers?: Reducers;
  readonly models: Models;
  readonly defaultModel: string;
}

/** What of a project is changed for the candidate. */
export interface Changes {
  /** `provider/model` in place of the agent's, and of what was chosen for a conversation. */
  readonly model?: string;
  /** In place of SOUL.md. */
  readonly prompt?: string;
  /** Laid over agent.json. */
  readonly settings?: JsonObject;
}

export interface Candidate extends Project {
  /** Answers in every turn, whatever the recording says; absent: the agent's, or what was chosen then. */
  readonly model?: string;
}

export function openProject(parts: Omit<Project, 'agents'> & { readonly cwd: string }): Project {
  const { cwd, ...project } = parts;
  return { ...project, agents: createAgentLoader(parts.agentsDir, Date.now, sharedServers(parts.extensions, cwd)) };
}

export function changeProject(project: Project, { model, prompt, settings: laidOver }: Changes): Candidate {
  const settings = model === undefined ? laidOver : { ...laidOver, model };
  const made = new Map<string, LoadedAgent>();
  const change = (agent: LoadedAgent): LoadedAgent => {
    const name = `${agent.id}/${agent.hash}`;
    const known = made.get(name);
    if (known) return known;
    const files = prompt === undefined ? agent.files : { ...agent.files, soul: prompt };
    const config = settings === undefined ? agent.config : layOver(agent, settings);
    const system = buildSystemPrompt(files);
    const hash = createHash('sha256')
      .update(JSON.stringify([agent.id, config, system, agent.servers]))
      .digest('hex');
    const changed = { ...agent, files, config, system, hash };
    made.set(name, changed);
    return changed;
  };
  const isSame = prompt === undefined && settings === undefined;
  return {
    ...project,
    ...(model !== undefined && { model }),
    agents: isSame ? project.agents : async (id, scope) => change(await project.agents(id, scope)),
  };
}

function layOver({ id, config }: LoadedAgent, settings: JsonObject): LoadedAgent['config'] {
  const { model, models, ...rest } = config as unknown as JsonObject;
  // A list and a model are in each other's place.
  const kept: JsonObject = models === undefined ? (model === undefined ? {} : { model }) : { models };
  const named = 'model' in settings || 'models' in settings ? {} : kept;
  const checked = agentConfigSchema.safeParse(merge({ ...rest, ...named }, settings));
  if (checked.success) return withOwnModel(checked.data);
  throw new AgentConfigError(
    'bad-config',
    `the settings cannot be laid over those of agent "${id}": ${listIssues(checked.error.issues).join('; ')}`,
  );
}

function merge(below: JsonObject, over: JsonObject): JsonObject {
  const changed = Object.entries(over).map(([name, value]): readonly [string, JsonValue] => {
    const before = Object.hasOwn(below, name) ? below[name] : undefined;
    return [name, isRecord(before) && isRecord(value) ? merge(before as JsonObject, value as JsonObject) : value];
  });
  return { ...below, ...Object.fromEntries(changed) };
}
