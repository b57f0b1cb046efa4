/**
 * A model's answer, held to what its request wishes where a provider does not: it ends before the first of `stopAt`, and has one call of a
 * client's tools at most with `oneCall`.
 */
import { isClientTool } from '../../conversation/protocol/message.js';
import type { Model, ModelRequest, ModelResponse, StreamOptions } from '../../models/model.js';
import type { AssistantBlock } from '../../records/message.js';

export async function streamHeld(model: Model, request: ModelRequest, options: StreamOptions): Promise<ModelResponse> {
  const { stopAt = [], oneCall } = request;
  const cutter = createCutter(stopAt, (text) => options.onDelta({ kind: 'text', text }));
  const response = await model.stream(request, {
    ...options,
    onDelta: (delta) => {
      if (stopAt.length === 0) options.onDelta(delta);
      else if (delta.kind === 'text') cutter.take(delta.text);
      else if (!cutter.isOver()) {
        cutter.flush();
        options.onDelta(delta);
      }
    },
  });
  cutter.flush();
  const { stoppedAt, ...stopped } = stopAt.length === 0 ? response : endBefore(response, stopAt);
  const blocks = oneCall ? withOneCall(stopped.blocks) : stopped.blocks;
  // A provider may name anything.
  return { ...stopped, blocks, ...(stoppedAt !== undefined && stopAt.includes(stoppedAt) && { stoppedAt }) };
}

function firstStop(text: string, stopAt: readonly string[]): number {
  const places = stopAt.map((stop) => text.indexOf(stop)).filter((at) => at >= 0);
  return places.length === 0 ? -1 : Math.min(...places);
}

function endBefore(response: ModelResponse, stopAt: readonly string[]): ModelResponse {
  for (const [at, block] of response.blocks.entries()) {
    if (block.kind !== 'text' || typeof block.text !== 'string') continue;
    const { text: whole } = block;
    const end = firstStop(whole, stopAt);
    if (end < 0) continue;
    const text = whole.slice(0, end);
    const before = response.blocks.slice(0, at).filter(({ kind }) => kind !== 'tool-call');
    const stoppedAt = stopAt.find((stop) => whole.startsWith(stop, end));
    return { ...response, blocks: text === '' ? before : [...before, { ...block, text }], stop: 'end', ...(stoppedAt && { stoppedAt }) };
  }
  return response;
}

/** The first; a call of the agent's tools is none of them. */
function withOneCall(blocks: readonly AssistantBlock[]): readonly AssistantBlock[] {
  const isCall = (block: AssistantBlock): boolean => block.kind === 'tool-call' && isClientTool(block.name);
  const first = blocks.findIndex(isCall);
  return blocks.filter((block, at) => at === first || !isCall(block));
}

interface Cutter {
  take(text: string): void;
  /** Hands on what was kept back. */
  flush(): void;
  isOver(): boolean;
}

/** Keeps back what may be the beginning of one of them. */
function createCutter(stopAt: readonly string[], onText: (text: string) => void): Cutter {
  let kept = '';
  let isOver = false;
  const hand = (text: string): void => {
    if (text !== '') onText(text);
  };
  return {
    take(text) {
      if (isOver) return;
      kept += text;
      const end = firstStop(kept, stopAt);
      isOver = end >= 0;
      const ready = isOver ? end : kept.length - Math.max(...stopAt.map((stop) => beginningAtEnd(kept, stop)));
      hand(kept.slice(0, ready));
      kept = isOver ? '' : kept.slice(ready);
    },
    flush() {
      hand(kept);
      kept = '';
    },
    isOver: () => isOver,
  };
}

/** How many characters at the end of a text are the beginning of another. */
function beginningAtEnd(text: string, whole: string): number {
  for (let length = Math.min(text.length, whole.length - 1); length > 0; length -= 1)
    if (text.endsWith(whole.slice(0, length))) return length;
  return 0;
}
