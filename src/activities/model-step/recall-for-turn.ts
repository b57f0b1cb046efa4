/**
 * Messages of earlier conversations that may help with a turn (`memory.recall` of agent.json): chosen once, before its first model call, by
 * the words of its message. Tool results, and messages that are in the context, are never recalled.
 */
import { log } from '@temporalio/activity';
import type { ModelStepInput } from '../../conversation/turn/model-step-effects.js';
import { readText } from '../../memory/bodies.js';
import { recalledNotice } from '../../memory/recall/question.js';
import { lifeMark } from '../../memory/recall/indexed-texts.js';
import type { Recalled } from '../../memory/recall/recalled.js';
import { isFromPerson } from '../../records/message.js';
import { listSlots } from '../../records/slots.js';
import { timeoutSignal } from '../../platform/promises.js';
import type { ConversationDependencies } from '../dependencies.js';
import { errorMessage } from '../../platform/errors.js';

/** Hits per search; those with enough confidence are candidates. */
const HITS = 20;
/** From 0 to 1. */
const MIN_CONFIDENCE = 0.5;
/** Milliseconds: a new worker may have to build the index first, and a turn does not wait for that. */
const PATIENCE_MS = 2_000;
/** Of these, for the embedding of the question. */
const EMBED_MS = 1_000;
/** Slots at the end of the context that are searched for the turn's messages. */
const LOOKED_AT = 16;
/** No tool results and no memory items. MEMORY.md and the first facts are in the prompt anyway. */
const KINDS = ['user', 'assistant', 'history', 'episode'] as const;

/** The text of the notice; undefined if nothing fits, the time is up, or the store fails. */
export async function recallForTurn(
  dependencies: ConversationDependencies,
  input: ModelStepInput,
  { agentHash, stop }: { readonly agentHash: string; readonly stop: AbortSignal },
): Promise<string | undefined> {
  const { call, tools, deferred = [] } = input;
  const isFirstCall = call.soFar === undefined && tools.length === 0;
  if (!isFirstCall || deferred.includes('recall')) return undefined;
  try {
    const { agent, scope } = dependencies.identity;
    const { config } = await dependencies.agents(agent, scope, agentHash);
    const turns = config.memory.recall?.turns ?? 0;
    if (turns === 0) return undefined;
    const end = AbortSignal.any([stop, timeoutSignal(PATIENCE_MS)]);
    const late = new Promise<undefined>((resolve) => end.addEventListener('abort', () => resolve(undefined), { once: true }));
    return await Promise.race([noticeFor(dependencies, input, turns), late]);
  } catch (error) {
    log.warn('nothing was recalled for this turn', { reason: errorMessage(error) });
    return undefined;
  }
}

async function noticeFor(
  dependencies: ConversationDependencies,
  { turn, call }: ModelStepInput,
  turns: number,
): Promise<string | undefined> {
  const { store, key, recall, now = Date.now } = dependencies;
  const shown = listSlots(call.context);
  const entries = await store.entries.read(key, shown.slice(-LOOKED_AT));
  const texts = entries.flatMap((entry) => (entry?.turn === turn && isFromPerson(entry.message) ? [entry.message.text] : []));
  const question = (await Promise.all(texts.map((text) => readText(store, key, text)))).join('\n');
  if (!recall || question.trim() === '') return undefined;
  const except = { conversation: key.conversation, life: key.life, turn };
  const payer = { key, agent: dependencies.identity.agent };
  const found = await recall.search(key, { question, limit: HITS, kinds: KINDS, except, payer, embedMs: EMBED_MS, now: new Date(now()) });
  const here = new Set(shown.map((slot) => `${lifeMark(key)}/${slot}`));
  // The prompt already has the summaries of this conversation's older turns.
  const isKnown = ({ address, kind }: Recalled): boolean =>
    here.has(address) || (kind === 'episode' && address.startsWith(`${lifeMark(key)}/`));
  const chosen = found.filter((hit) => hit.confidence >= MIN_CONFIDENCE && !isKnown(hit)).slice(0, turns);
  return chosen.length === 0 ? undefined : recalledNotice(chosen);
}
