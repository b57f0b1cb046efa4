/**
 * Puts an answer together from the stream parts of the AI SDK's interface, versions 2 to 4, as any package may send them.
 *
 * - An answer is whole once it has a finish part that names a reason. Packages send one at the end of every stream, so that of a stream
 *   that broke names none: `other`, `unknown` or `interrupted`, without a word of the server's.
 * - Which part a piece belongs to, its id says; a piece without a beginning begins one. A call that has begun and never came whole counts
 *   with what came of its input.
 * - Tool calls count unless the answer was cut off. Those that the provider makes itself are not ours to make.
 * - Parts of a type that is not known do no harm, and neither do fields of another kind than they should be.
 */
import type { AssistantBlock, JsonValue } from '../../records/message.js';
import { isRecord } from '../../platform/json.js';
import { createDeltaEmitter, hasText, NO_USAGE, readStop, settleStop, type Answer } from '../draft.js';
import type { ModelDelta, ModelUsage } from '../model.js';
import {
  asCount,
  asObject,
  asText,
  brokenStream,
  isDeeperThan,
  isWellFormed,
  MAX_DEPTH,
  readCall,
  toFunctionName,
  toWellFormed,
} from '../wire.js';
import { toAttachment, toSignature, type ProviderFields } from './render.js';

/** What a request has cost that failed in the middle: ours, in the place of its finish part. */
export const BILLED = 'perdura-billed';

type Item =
  | { readonly kind: 'text' | 'thinking'; text: string; metadata: ProviderFields | undefined; hasEnded: boolean }
  | {
      readonly kind: 'call';
      id: string;
      name: string;
      json: string;
      input: JsonValue;
      metadata: ProviderFields | undefined;
      hasEnded: boolean;
      isTheirs: boolean;
    }
  | { readonly kind: 'whole'; readonly block: AssistantBlock; readonly hasEnded: true };
type Text = Extract<Item, { kind: 'text' | 'thinking' }>;
type Call = Extract<Item, { kind: 'call' }>;

export interface AnswerContext {
  /** Under which it is configured. */
  readonly provider: string;
  /** The provider's name of the model. */
  readonly model: string;
  /** Of the tools that were offered. */
  readonly toolNames: readonly string[];
  readonly onDelta: (delta: ModelDelta) => void;
}

export function createAiSdkAnswer({ provider, model, toolNames, onDelta }: AnswerContext): Answer<unknown> {
  const items: Item[] = [];
  const texts = new Map<string, Text>();
  const calls = new Map<string, Call>();
  const namesByWire = new Map(toolNames.map((name) => [toFunctionName(name), name]));
  const emit = createDeltaEmitter(onDelta);
  let usage = NO_USAGE;
  let finish: Finish | undefined;
  let stoppedAt = '';

  const begin = <New extends Item>(item: New): New => {
    emit.flush();
    items.push(item);
    return item;
  };

  const takeText = (kind: Text['kind'], step: string, part: Fields): void => {
    const key = `${kind} ${asText(part.id)}`;
    const found = step === 'start' ? undefined : texts.get(key);
    const item = found && !found.hasEnded ? found : begin({ kind, text: '', metadata: undefined, hasEnded: false });
    texts.set(key, item);
    const piece = asText(part.delta) || asText(part.text);
    item.text += piece;
    item.metadata = joinMetadata(item.metadata, part.providerMetadata);
    item.hasEnded = step === 'end';
    if (piece !== '') emit(kind, piece);
  };

  const takeCall = (step: string, part: Fields): void => {
    const id = asText(part.toolCallId) || asText(part.id);
    const name = asText(part.toolName);
    const found = step === 'start' ? undefined : calls.get(id);
    const call =
      found && !found.hasEnded
        ? found
        : begin({ kind: 'call', id, name: '', json: '', input: {}, metadata: undefined, hasEnded: false, isTheirs: false });
    calls.set(id, call);
    call.isTheirs ||= part.providerExecuted === true;
    if (name !== '' && call.name === '') {
      call.name = namesByWire.get(name) ?? toWellFormed(name);
      if (!call.isTheirs) onDelta({ kind: 'tool-call', name: call.name });
    }
    call.metadata = joinMetadata(call.metadata, part.providerMetadata);
    if (step === 'delta') call.json += asText(part.delta);
    if (step !== 'whole') return;
    call.hasEnded = true;
    if (typeof part.input === 'string') call.json = part.input;
    else if (part.input !== undefined && part.input !== null) [call.json, call.input] = ['', part.input as JsonValue];
  };

  const toBlocks = (item: Item, withCalls: boolean): AssistantBlock[] => {
    switch (item.kind) {
      case 'text':
        return item.text === '' ? [] : [...attachment(item), { kind: 'text', text: toWellFormed(item.text) }];
      case 'thinking': {
        if (item.text === '' && item.metadata === undefined) return [];
        // A signature holds for the exact text; mended, it is for reading only.
        const signature = isWellFormed(item.text) && { signature: toSignature(model, item.metadata) };
        return [{ kind: 'thinking', text: toWellFormed(item.text), ...signature, provider }];
      }
      case 'call':
        if (!withCalls || item.isTheirs) return [];
        return [
          ...attachment(item),
          readCall({ kind: 'unparsed-call', callId: item.id, name: item.name, json: item.json, input: item.input }),
        ];
      case 'whole':
        return [item.block];
      default:
        return item satisfies never;
    }
  };
  const attachment = ({ metadata }: Text | Call): AssistantBlock[] => (metadata ? [toAttachment(provider, model, metadata)] : []);
  const hasCalls = (): boolean => items.some((item) => item.kind === 'call' && !item.isTheirs);

  return {
    take(value) {
      const part: Fields = isRecord(value) ? value : {};
      const type = asText(part.type);
      const [, family, step] = /^(text|reasoning|tool-input)(?:-(start|delta|end))?$/.exec(type) ?? [];
      if (family === 'tool-input' && step !== undefined) return takeCall(step, part);
      if (family === 'text' || family === 'reasoning') return takeText(family === 'text' ? 'text' : 'thinking', step ?? 'end', part);
      switch (type) {
        case 'tool-call':
          return takeCall('whole', part);
        case 'file': {
          const text = `[a file of type ${JSON.stringify(toWellFormed(asText(part.mediaType)).slice(0, 40))}, which cannot be shown]`;
          return takeText('text', 'end', { text });
        }
        case 'custom': {
          const metadata = toMetadata(part.providerMetadata);
          const value = { type: 'ai-sdk-custom', kind: asText(part.kind), model, ...(metadata && { metadata }) };
          begin({ kind: 'whole', block: { kind: 'opaque', provider, value }, hasEnded: true });
          return;
        }
        case BILLED:
          usage = toUsage(part);
          return;
        case 'finish':
          usage = toUsage(part);
          stoppedAt = asText(asObject(asObject(part.providerMetadata).anthropic).stopSequence);
          finish = readFinish(part.finishReason, usage);
      }
    },
    end() {},
    isWhole: () => finish !== undefined,
    response() {
      if (finish === undefined) throw brokenStream('the stream ended before its finish part');
      const { word, meaning } = finish;
      if (word === '') throw brokenStream('the stream ended before its finish reason');
      const known = meaning === 'end' && hasCalls() ? 'tool-calls' : meaning;
      const all = items.flatMap((item) => toBlocks(item, known === 'tool-calls'));
      if (known === 'refusal' && !hasText(all)) all.push({ kind: 'text', text: `The provider gave no answer: ${toWellFormed(word)}.` });
      return { ...settleStop(known, word, all), ...(stoppedAt && { stoppedAt }), usage };
    },
    soFar: () => ({
      blocks: items.flatMap((item, at) => (item.hasEnded || at < items.length - 1 ? toBlocks(item, false) : [])),
      usage,
    }),
  };
}

interface Fields {
  readonly [name: string]: unknown;
}

interface Finish {
  /** As the server says it, else as the package does; empty where the stream came to no end. */
  readonly word: string;
  readonly meaning: ReturnType<typeof readStop>;
}

/** Version 2 has one word, later ones the package's and the server's. */
function readFinish(reason: unknown, usage: ModelUsage): Finish {
  const { unified, raw } = isRecord(reason)
    ? { unified: asText(reason.unified), raw: asText(reason.raw) }
    : { unified: asText(reason), raw: '' };
  const isUnsaid =
    raw === '' &&
    (isRecord(reason) ? ['', 'other', 'unknown'].includes(unified) : unified === '' || (unified === 'unknown' && usage === NO_USAGE));
  if (isUnsaid || unified === 'interrupted') return { word: '', meaning: undefined };
  const theirs = readWord(raw);
  return { word: raw || unified, meaning: theirs === undefined || theirs === 'end' ? (readWord(unified) ?? theirs) : theirs };
}

function readWord(word: string): ReturnType<typeof readStop> {
  return readStop(word.replaceAll('-', '_'));
}

/** Version 2 has numbers, and its packages for Anthropic's models leave what was cached out of them; later ones have objects. */
function toUsage({ usage, providerMetadata }: Fields): ModelUsage {
  const { inputTokens: input, outputTokens: output, cachedInputTokens: flatCached, reasoningTokens: flatThought } = asObject(usage);
  const { total, noCache, cacheRead, cacheWrite } = asObject(input);
  const { anthropic, bedrock } = asObject(providerMetadata);
  const cached = asCount(cacheRead, asCount(flatCached));
  const written = asCount(
    cacheWrite,
    asCount(asObject(anthropic).cacheCreationInputTokens, asCount(asObject(asObject(bedrock).usage).cacheWriteInputTokens)),
  );
  const isApart = !isRecord(input) && (asCount(input) < cached || anthropic !== undefined || bedrock !== undefined);
  const counted = isRecord(input) ? asCount(total, asCount(noCache) + cached + written) : asCount(input) + (isApart ? cached + written : 0);
  const { total: whole, text, reasoning } = asObject(output);
  const answered = isRecord(output) ? asCount(whole, asCount(text) + asCount(reasoning)) : asCount(output);
  if (counted === 0 && answered === 0) return NO_USAGE;
  const thought = asCount(reasoning, asCount(flatThought));
  return {
    ...{ inputTokens: counted, cachedTokens: cached, outputTokens: answered },
    ...(written > 0 && { cacheWriteTokens: written }),
    ...(thought > 0 && { reasoningTokens: thought }),
  };
}

/** Of plain JSON, and of a size that can be stored. */
const MAX_METADATA = 1024 * 1024;

function toMetadata(value: unknown): ProviderFields | undefined {
  if (!isRecord(value)) return undefined;
  try {
    const json = JSON.stringify(value);
    const plain = JSON.parse(json) as ProviderFields;
    return json.length > MAX_METADATA || Object.keys(plain).length === 0 || isDeeperThan(plain as JsonValue, MAX_DEPTH) ? undefined : plain;
  } catch {
    return undefined;
  }
}

/** What comes later counts, field by field. */
function joinMetadata(before: ProviderFields | undefined, value: unknown): ProviderFields | undefined {
  const more = toMetadata(value);
  if (before === undefined || more === undefined) return more ?? before;
  return {
    ...before,
    ...Object.fromEntries(Object.entries(more).map(([name, fields]) => [name, { ...before[name], ...asObject(fields) }])),
  };
}
