/** `care`: duplicates are merged and what is stale is pruned while no conversation runs; by the rules of every consolidation. */
import { Context } from '@temporalio/activity';
import type { MemoryUpdate } from '../../conversation/context/compaction-effects.js';
import type { Cared } from '../../conversation/protocol/memory-contract.js';
import { nearDuplicateFacts, withoutDuplicateLines } from '../../memory/consolidation/merge.js';
import { tendMemory } from '../../memory/consolidation/consolidate.js';
import { careJsonSchema } from '../../memory/consolidation/prompt.js';
import { withProvenance } from '../../memory/consolidation/provenance.js';
import { withoutForgotten } from '../../memory/documents/forgetting.js';
import { createAsker } from '../ask-model.js';
import { noteSpending, toSpending } from '../effect.js';
import { findContextWindow, memoryAnswerTokens, windowFinder, configOrDefaults } from '../model-step/prompt-budget.js';
import type { ActivityDependencies } from '../dependencies.js';
import { scopeKey } from '../key.js';

export interface CareInput {
  readonly scope: string;
  readonly agent: string;
}

export async function care(
  dependencies: ActivityDependencies,
  { scope, agent }: CareInput,
): Promise<Cared & { readonly update: MemoryUpdate | null }> {
  const activity = Context.current();
  const { store, models, defaultModel } = dependencies;
  const key = scopeKey(scope);
  const [memory, tombstones, config, known] = await Promise.all([
    store.documents.memory(key),
    store.documents.forgotten(key),
    configOrDefaults(dependencies, { agent, scope }),
    store.facts.list(key),
  ]);
  const facts = nearDuplicateFacts(known.facts);
  await store.facts.remove(key, facts);
  const model = config.memory.consolidationModel ?? config.model ?? defaultModel;
  const window = await findContextWindow(models, config, { model, agentModel: config.model ?? defaultModel });
  const maxTokens = memoryAnswerTokens(config, models.limits(model), window);
  const answerSchema = { name: 'memory', schema: careJsonSchema };
  const {
    ask: run,
    spent,
    model: answeredBy,
  } = createAsker({
    models,
    name: model,
    activity,
    maxTokens,
    ...(config.models && { others: config.models, circuits: dependencies.circuits }),
    contextWindow: windowFinder(models, config, config.model ?? defaultModel),
    answerSchema,
  });
  const single = withoutDuplicateLines(memory.text);
  const tended =
    single.trim() === '' ? undefined : await tendMemory(run, { currentMemory: single, maxMemorySize: config.memory.maxMemorySize });
  const usage = spent();
  const { runId } = activity.info.workflowExecution ?? { runId: 'care' };
  // Of no conversation: it stands with the workflow that does it.
  const where = { store, key: { ...key, conversation: `memory:${scope}`, life: runId } };
  const { spent: paid } = toSpending({ key: where.key, identity: { agent } }, { kind: 'care', model: answeredBy(), usage });
  await noteSpending(where, `care/${activity.info.activityId}/${activity.info.attempt}`, paid);
  const better = (tended?.kind === 'done' ? tended.memoryUpdate : undefined) ?? single;
  const { text, added } = withProvenance({
    conversation: `memory:${scope}`,
    currentMemory: memory.text,
    memoryUpdate: withoutForgotten(better, tombstones, scope),
    entries: [],
    trustedTools: new Set(),
  });
  const bytesBefore = Buffer.byteLength(memory.text);
  const bytesAfter = Buffer.byteLength(text);
  const changed = text !== memory.text;
  return {
    kind: changed || facts.length > 0 ? 'cared' : 'nothing-to-do',
    bytesBefore,
    bytesAfter,
    facts,
    ...(paid && { usage }),
    update: changed ? { from: memory.version, text, added, limit: config.memory.maxMemorySize } : null,
  };
}
