/** A model that says what a test or an eval has written for it, and keeps the requests. */
import { estimatedUsage, offlineConsolidation } from '../models/offline.js';
import { ModelFailure, ModelInterrupted, type Model, type ModelRequest, type ModelResponse, type ModelUsage } from '../models/model.js';
import { shownText, type AssistantBlock, type JsonObject } from '../records/message.js';
import { truncate } from '../records/text.js';

/** A tool call as a model makes it. */
export interface ScriptedCall {
  /** Of the tool. */
  readonly name: string;
  /** Its arguments; `{}` without it. */
  readonly input?: JsonObject;
}

/** One answer of the model: text, calls of tools, or both. */
export interface ScriptedAnswer {
  readonly text?: string;
  readonly calls?: readonly ScriptedCall[];
  /** Tokens, in place of an estimate from the length of the texts. */
  readonly usage?: Partial<ModelUsage>;
}

/**
 * What the model does with a request: says a text, answers with calls, fails, or decides from the request. A function may return a
 * promise, and the model then thinks until it is resolved or the turn is stopped.
 */
export type ScriptedLine = string | ScriptedAnswer | ModelFailure | ((request: ModelRequest) => ScriptedLine | Promise<ScriptedLine>);

/** What `createScriptedModel` makes. */
export interface ScriptedModel extends Model {
  /** Its requests, oldest first: system prompt, tools and messages as a provider would get them. */
  readonly requests: readonly ModelRequest[];
  /** How many lines of the script are left. */
  readonly left: number;
  /** Adds lines to the end of the script. */
  say(...lines: readonly ScriptedLine[]): void;
}

/** An answer that calls one tool, and says nothing beside it. */
export function callTool(name: string, input: JsonObject = {}): ScriptedAnswer {
  return { calls: [{ name, input }] };
}

/** An answer that calls several tools at once. */
export function callTools(...calls: readonly ScriptedCall[]): ScriptedAnswer {
  return { calls };
}

/**
 * A model with a script: one line for each request, of sub-agents too. A function in place of the list answers
 * every request. When the script is over, the turn fails with `invalid-request` and a message that says so. Requests to consolidate
 * long-term memory take no line: a rule answers them, which adds to MEMORY.md what a person wants remembered and changes nothing else.
 *
 * ```ts
 * const model = createScriptedModel([callTool('book_expense', { what: 'tea', cents: 350 }), 'Booked.']);
 * ```
 */
export function createScriptedModel(
  script: readonly ScriptedLine[] | ((request: ModelRequest) => ScriptedLine | Promise<ScriptedLine>) = [],
): ScriptedModel {
  const lines: ScriptedLine[] = typeof script === 'function' ? [] : [...script];
  const requests: ModelRequest[] = [];

  const nextLine = (request: ModelRequest): ScriptedLine | Promise<ScriptedLine> => {
    const line = lines.shift();
    if (line !== undefined) return line;
    return typeof script === 'function' ? script(request) : scriptIsOver(requests);
  };

  return {
    provider: 'scripted',
    requests,
    get left() {
      return lines.length;
    },
    say: (...more) => void lines.push(...more),

    async stream(request, { signal, onDelta }): Promise<ModelResponse> {
      const memory = offlineConsolidation(request);
      if (memory === undefined) requests.push(request);
      let line: ScriptedLine | Promise<ScriptedLine> = memory ?? nextLine(request);
      while (typeof line === 'function' || line instanceof Promise) {
        line = typeof line === 'function' ? line(request) : await unlessStopped(line, signal, request);
      }
      if (line instanceof ModelFailure) throw line;
      const { text, calls = [], usage } = typeof line === 'string' ? { text: line } : line;
      if (text !== undefined) onDelta({ kind: 'text', text });
      for (const { name } of calls) onDelta({ kind: 'tool-call', name });
      const blocks: AssistantBlock[] = [
        ...(text === undefined ? [] : [{ kind: 'text' as const, text }]),
        ...calls.map(({ name, input = {} }, i) => ({ kind: 'tool-call' as const, callId: `call_${i + 1}`, name, input })),
      ];
      return { blocks, stop: calls.length > 0 ? 'tool-calls' : 'end', usage: { ...estimatedUsage(request, text ?? ''), ...usage } };
    },
  };
}

function unlessStopped<T>(work: Promise<T>, signal: AbortSignal, request: ModelRequest): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(new ModelInterrupted([], estimatedUsage(request, '')));
    if (signal.aborted) return stop();
    signal.addEventListener('abort', stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}

/** An answer of this kind is tried once, so the turn ends with these words. */
function scriptIsOver(requests: readonly ModelRequest[]): ModelFailure {
  return new ModelFailure(
    'invalid-request',
    `the scripted model was asked for answer ${requests.length} and its script has ${requests.length - 1}: ` +
      `add a line to createScriptedModel for what follows ${lastWords(requests.at(-1))}`,
  );
}

function lastWords(request: ModelRequest | undefined): string {
  const last = request?.messages.at(-1);
  if (last === undefined) return 'an empty conversation';
  if (last.role === 'tool') return `the ${last.outcome} result of ${last.name}: ${quoteBeginning(shownText(last.text))}`;
  if (last.role === 'user') return `the message ${quoteBeginning(shownText(last.text))}`;
  return 'its own answer';
}

function quoteBeginning(text: string): string {
  return JSON.stringify(truncate(text, 200));
}
