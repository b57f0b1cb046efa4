/** A played call beside the recorded one: what the model was sent, and what it answered. */
import type { ConversationDependencies } from '../activities/dependencies.js';
import { prepareRequest, toCall } from '../activities/model-step/prepare-request.js';
import { withLearnedBudget } from '../conversation/state/settings.js';
import type { PromptHead } from '../conversation/state/compaction-state.js';
import type { ModelAnswer } from '../conversation/turn/model-step-effects.js';
import type { ModelRequest } from '../models/model.js';
import { shownText, type AssistantBlock, type ConversationMessage } from '../records/message.js';
import type { Part } from './part.js';
import type { RecordedStep } from './recording.js';
import type { Divergence, PlayedLane } from './report.js';
import { callsIn, describeTurn, shorten, textIn } from './turn-log.js';

/** A request as it was sent, and by which model it was to be answered: `provider/model`. */
export interface SentRequest {
  readonly model: string;
  readonly request: Pick<ModelRequest, 'system' | 'tools' | 'messages' | 'maxTokens' | 'answerSchema' | 'mustCall' | 'oneCall' | 'stopAt'>;
}

type Difference = Pick<Divergence, 'what' | 'recorded' | 'played'>;

/**
 * What was sent then, made again from what was recorded: the system prompt and the tools as they were stored, the messages as they are in the
 * store. Undefined where the recording lacks a part of it.
 */
async function rebuildRequest(
  dependencies: ConversationDependencies,
  step: RecordedStep,
  head: PromptHead | undefined,
): Promise<SentRequest | undefined> {
  const { input, result } = step;
  const configured = result?.configured;
  const settings = configured?.kind === 'settings' ? withLearnedBudget(configured.settings, input.learned) : input.settings;
  if (!settings || !result || !head) return undefined;
  const { store, key } = dependencies;
  const [system, tools] = await Promise.all([store.bodies.get(key, head.system), store.bodies.get(key, head.tools)]);
  if (system === undefined || tools === undefined) return undefined;
  const { written, base } = result;
  const call = toCall(input, settings, { written, ...(base && { base }) });
  const { request } = await prepareRequest(dependencies, call, () => undefined);
  return { model: settings.model, request: { ...request, system, tools: JSON.parse(tools) as ModelRequest['tools'] } };
}

/** What a model reads: a cache's key and the like are no part of it. */
function sentIn({ model, request }: SentRequest): unknown {
  return [model, request.system, request.tools, request.messages, pickRest(request)];
}

function compareRequests(recorded: SentRequest, played: SentRequest): Difference | undefined {
  if (isSame(sentIn(recorded), sentIn(played))) return undefined;
  const [then, now] = [recorded.request, played.request];
  if (recorded.model !== played.model) return { what: 'model', recorded: recorded.model, played: played.model };
  if (then.system !== now.system) return differing('system', then.system, now.system);
  if (!isSame(then.tools, now.tools)) return compareTools(then.tools, now.tools);
  const at = now.messages.findIndex((message, i) => !isSame(message, then.messages[i]));
  const first = at < 0 ? now.messages.length : at;
  const [before, after] = [then.messages[first], now.messages[first]];
  if (before !== undefined || after !== undefined)
    return differing(
      'messages',
      before ? describeMessage(before) : '(no more messages)',
      after ? describeMessage(after) : '(no more messages)',
    );
  return differing('messages', JSON.stringify(pickRest(then)), JSON.stringify(pickRest(now)));
}

function compareAnswers(recorded: ModelAnswer, played: ModelAnswer): Difference | undefined {
  const [then, now] = [describeCalls(recorded.blocks), describeCalls(played.blocks)];
  if (then !== now) return differing('tool-calls', then, now);
  if (recorded.stop !== played.stop) return { what: 'stop', recorded: recorded.stop, played: played.stop };
  // Long ones by their hashes.
  if (isSame(textsIn(recorded.blocks), textsIn(played.blocks))) return undefined;
  return differing('text', textIn(recorded.blocks), textIn(played.blocks));
}

function textsIn(blocks: readonly AssistantBlock[]): readonly unknown[] {
  return blocks.flatMap((block) => (block.kind === 'text' ? [block.text] : []));
}

function describeCalls(blocks: readonly AssistantBlock[]): string {
  return callsIn(blocks)
    .map(({ name, input }) => `${name} ${input}`)
    .join('\n');
}

function compareTools(recorded: ModelRequest['tools'], played: ModelRequest['tools']): Difference {
  const names = [recorded, played].map((tools) => tools.map(({ name }) => name).join(', '));
  if (names[0] !== names[1]) return differing('tools', names[0] ?? '', names[1] ?? '');
  const at = recorded.findIndex((tool, i) => !isSame(tool, played[i]));
  return differing('tools', JSON.stringify(recorded[at]), JSON.stringify(played[at]));
}

function describeMessage(message: ConversationMessage): string {
  switch (message.role) {
    case 'user':
      return `user: ${shownText(message.text)}`;
    case 'tool':
      return `${message.name} (${message.outcome}): ${shownText(message.text)}`;
    case 'assistant':
      return `assistant: ${[textIn(message.blocks), describeCalls(message.blocks)].filter((text) => text !== '').join('\n')}`;
  }
}

/** From a little before the first character that differs to a little after the last one. */
const AROUND = 120;

function differing(what: Divergence['what'], recorded: string, played: string): Difference {
  let from = 0;
  while (from < recorded.length && from < played.length && recorded[from] === played[from]) from++;
  let left = 0;
  const most = Math.min(recorded.length, played.length) - from;
  while (left < most && recorded.at(-1 - left) === played.at(-1 - left)) left++;
  const part = (text: string): string => {
    const [begin, end] = [Math.max(0, from - AROUND), Math.min(text.length, text.length - left + AROUND)];
    return shorten(`${begin > 0 ? '…' : ''}${text.slice(begin, end).toWellFormed()}${end < text.length ? '…' : ''}`);
  };
  return { what, recorded: part(recorded), played: part(played) };
}

function pickRest({ maxTokens, answerSchema, mustCall, oneCall, stopAt }: SentRequest['request']): unknown {
  return [maxTokens, answerSchema ?? null, mustCall ?? false, oneCall ?? false, stopAt ?? null];
}

function isSame(a: unknown, b: unknown): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}

export interface Comparison {
  readonly requests: { equal: number; compared: number };
  /** Once all is played, or was stopped. */
  end(isStopped: boolean): Pick<PlayedLane, 'divergence' | 'answerDivergence'>;
  sends(part: Part, step: RecordedStep | undefined, sent: SentRequest, rebuild: Parameters<typeof rebuildRequest>[0]): Promise<boolean>;
  answered(part: Part, call: string): void;
}

/** Of a sub-agent's call: the turn of the conversation in which it works. */
function findPlace(part: Part, root: Part, id: string): Pick<Divergence, 'turn' | 'call' | 'of'> {
  const place = describeTurn(id);
  const [turn] = part === root ? [] : part.id.slice(root.id.length + 1).split(':');
  return turn === undefined ? place : { ...place, turn, of: part.id };
}

/** Finds the first request and the first answer that differ. */
export function createComparison(root: Part, isOtherModel: boolean): Comparison {
  const requests = { equal: 0, compared: 0 };
  let request: Divergence | null = null;
  let answer: Divergence | null = null;
  /** A sub-agent's answer comes before the request that tells of it, whatever their numbers are. */
  let isAnswerFirst = false;
  const parts = new Set([root]);
  const findMissing = (): Divergence | null => {
    for (const part of parts) {
      const missing = [...(part.track?.log.answers.keys() ?? [])].find((call) => !part.log.answers.has(call));
      if (missing !== undefined)
        return { ...findPlace(part, root, missing), what: 'missing', recorded: '(a call)', played: '(no such call)' };
    }
    return null;
  };
  return {
    requests,
    end(isStopped) {
      const other = answer ?? (isStopped ? null : findMissing());
      const first = isAnswerFirst ? other : ([request, other].flatMap((one) => one ?? []).sort(byPlace)[0] ?? null);
      return { divergence: first, ...(other && other !== first && { answerDivergence: other }) };
    },
    async sends(part, step, sent, rebuild) {
      if (request) return false;
      const place = findPlace(part, root, part.present()?.input.call.id ?? '');
      if (!step) {
        request = { ...place, what: 'missing', recorded: '(no such call)', played: '(a call)' };
        return false;
      }
      const then = await rebuildRequest(rebuild, step, part.head());
      if (!then) return false;
      requests.compared += 1;
      const differs = compareRequests(
        isOtherModel ? { ...then, model: sent.model, request: { ...then.request, maxTokens: sent.request.maxTokens } } : then,
        sent,
      );
      if (!differs) requests.equal += 1;
      else request = { ...place, ...differs };
      return !differs;
    },
    answered(part, call) {
      parts.add(part);
      if (answer) return;
      const played = part.log.answers.get(call);
      const step = part.track?.steps(call).findLast(({ result }) => result?.kind === 'answered');
      const then = step?.result?.kind === 'answered' ? step.result.answer : undefined;
      if (!played) return;
      const differs = then ? compareAnswers(then, played) : ({ what: 'missing', recorded: '(no such call)', played: '(a call)' } as const);
      if (!differs) return;
      answer = { ...findPlace(part, root, call), ...differs };
      isAnswerFirst = request === null;
    },
  };
}

/** A request comes before its answer. */
function byPlace(a: Divergence, b: Divergence): number {
  return a.turn.length - b.turn.length || (a.turn < b.turn ? -1 : a.turn > b.turn ? 1 : a.call - b.call);
}
