/**
 * How a model call shows long results. With `memory.compactWithModel` what stands for one of which no plugin says anything is made by a
 * model in the first call after the one that showed it, once, and stored, so that it stays the same bytes. What that costs is written as it
 * is made, and travels with the citation.
 */
import { windowsOf } from './prompt-budget.js';
import { Context, log } from '@temporalio/activity';
import pLimit from 'p-limit';
import type { AgentConfig } from '../../agents/agent-config.js';
import { isKept, newFrom, type KeptResult } from '../../conversation/context/citing.js';
import { isFromPerson, shownText, type ConversationMessage } from '../../records/message.js';
import { textOf } from '../../memory/bodies.js';
import { MEMORY_TOOLS } from '../../records/memory/agent-memory.js';
import { citeOld, frameNew } from '../../memory/channel/cite-results.js';
import { CITATION_SCHEMA, compactByModel } from '../../memory/channel/compact-by-model.js';
import type { MadeCitation } from '../../conversation/activity-io/effects.js';
import { createAsker, summarizers, type Asker } from '../ask-model.js';
import { noteSpending, spendingOf } from '../effect.js';
import type { Citing } from '../context/context.js';
import type { ConversationDependencies } from '../dependencies.js';
import { hasMemoryChannel } from '../tools/tools-of.js';
import { timeoutSignal } from '../../platform/timeout-signal.js';
import { errorMessage } from '../../platform/errors.js';

const CITATION_TOKENS = 512;
const AT_ONCE = 4;
/** Milliseconds for all of one call; what is not there by then is the plugin's. */
const PATIENCE_MS = 30_000;
const NONE: ReadonlyMap<string, string> = new Map();

export interface CitingWanted {
  /** The call that it is for. */
  readonly input: {
    readonly model: string;
    readonly contextBudget: number;
    readonly call: string;
    readonly fallback?: readonly string[] | undefined;
  };
  readonly config: AgentConfig;
  /** Told of each that a model has made. */
  readonly made: (citation: MadeCitation) => void;
}

/** Undefined where the agent has no memory channel. */
export function citingFor(dependencies: ConversationDependencies, { input, config, made }: CitingWanted): Citing | undefined {
  if (!hasMemoryChannel(config, dependencies.tools)) return undefined;
  const { contextBudget: budget } = input;
  return {
    citeOld: async (messages) =>
      citeOld(messages, budget, config.memory.compactWithModel ? await madeByModel(dependencies, { input, config, made, messages }) : NONE),
    frameNew: (messages) => frameNew(messages, budget),
  };
}

interface Making extends CitingWanted {
  readonly messages: readonly ConversationMessage[];
}

/** By item. */
async function madeByModel(
  dependencies: ConversationDependencies,
  { input, config, made, messages }: Making,
): Promise<ReadonlyMap<string, string>> {
  const { store, key } = dependencies;
  const old = messages
    .slice(0, newFrom(messages))
    .filter((message): message is KeptResult => isKept(message) && message.item.isPlain === true && !MEMORY_TOOLS.includes(message.name));
  if (old.length === 0) return NONE;
  const ids = old.map(({ item }) => item.id);
  const known = await store.items.citations(key, ids);
  const missing = old.filter((_, i) => known[i] === undefined);
  if (missing.length === 0) return toMap(ids, known);
  const patience = timeoutSignal(PATIENCE_MS);
  const few = pLimit(AT_ONCE);
  await Promise.all(
    missing.map((message) =>
      few(() => make(dependencies, { message, goal: goalOf(message, messages), config, input, patience, onMade: made })),
    ),
  );
  // The first that was stored counts, whichever attempt made it.
  return toMap(ids, await store.items.citations(key, ids));
}

async function make(
  dependencies: ConversationDependencies,
  {
    message,
    goal,
    config,
    input,
    patience,
    onMade,
  }: Pick<CitingWanted, 'config' | 'input'> & {
    readonly message: KeptResult;
    readonly goal: string;
    readonly patience: AbortSignal;
    readonly onMade: CitingWanted['made'];
  },
): Promise<void> {
  const { store, key } = dependencies;
  const { name, item } = message;
  const { ask, spent, model } = asker(dependencies, input, config, patience);
  const prompt = config.memory.compactionPrompt;
  const asked = {
    goal,
    action: name,
    result: await textOf(store, key, message.text),
    memoryId: item.id,
    ...(prompt !== undefined && { prompt }),
  };
  const made = await compactByModel(ask, asked).catch((error: unknown) => {
    if (Context.current().cancellationSignal.aborted) throw error;
    log.warn('the model that compacts results was not of use: the plugin’s citation stands', {
      tool: name,
      reason: errorMessage(error),
    });
    return undefined;
  });
  // Also that it was of no use: a citation that came later would change what has been sent.
  await store.items.cite(key, item.id, made ?? '');
  const usage = spent();
  const { spent: paid } = spendingOf(dependencies, { kind: 'citation', model: model(), usage });
  await noteSpending(dependencies, `${input.call}/${item.id}`, paid);
  onMade({ item: item.id, citation: made ?? '', ...(paid && { usage }) });
}

function asker(dependencies: ConversationDependencies, input: CitingWanted['input'], config: AgentConfig, patience: AbortSignal): Asker {
  const { models } = dependencies;
  return createAsker({
    models,
    ...summarizers(dependencies, config, input),
    activity: Context.current(),
    signal: patience,
    maxTokens: Math.min(CITATION_TOKENS, config.maxTokens),
    answerSchema: CITATION_SCHEMA,
    contextWindow: windowsOf(models, config, input.model),
  });
}

/** What a person had asked for when the result came. */
function goalOf(result: KeptResult, messages: readonly ConversationMessage[]): string {
  const asked = messages.slice(0, messages.indexOf(result)).findLast(isFromPerson);
  return asked ? shownText(asked.text) : '';
}

function toMap(ids: readonly string[], citations: readonly (string | undefined)[]): ReadonlyMap<string, string> {
  return new Map(ids.flatMap((id, i) => (citations[i] ? [[id, citations[i]] as const] : [])));
}
